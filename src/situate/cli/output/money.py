"""What the nodes in use cost, if the configuration has prices."""

from collections.abc import Mapping
from typing import Any

from situate.core.engine.framework import Framework
from situate.core.plugins.cost import Cost
from situate.core.plugins.support.prices import NodeCost, PriceList, format_price


def price_list(profiles: Mapping[str, Framework]) -> PriceList | None:
    """The prices of the first profile with the plugin Cost; None if there is none."""
    scorers = (weighted.scorer for deciding in profiles.values() for weighted in deciding.profile.scorers)
    return next((scorer.prices for scorer in scorers if isinstance(scorer, Cost)), None)


def before_and_after(before: NodeCost, after: NodeCost) -> str:
    """One line: what the nodes cost now, and how much more or less than before."""
    difference = after.millionths - before.millionths
    moved = "unchanged" if not difference else f"{format_price(abs(difference))} {'more' if difference > 0 else 'less'}"
    return f"{after}; before, {before.amount} for {before.nodes}: {moved}"


def as_values(cost: NodeCost) -> dict[str, Any]:
    """For programs. Money is text, so that no float rounds it."""
    return {"currency": cost.currency, "anHour": cost.amount, "nodes": cost.nodes, "unpriced": cost.unpriced}
