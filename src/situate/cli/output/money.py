"""What the nodes in use cost, where the configuration has prices: the line of money that reports end with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from situate.core.engine.framework import Framework
from situate.core.plugins.cost import Cost
from situate.core.plugins.support.prices import NodeCost, PriceList, format_price


def price_list(profiles: Mapping[str, Framework]) -> PriceList | None:
    """The prices of the first profile that the plugin Cost scores for; None if there is none."""
    scorers = (weighted.scorer for deciding in profiles.values() for weighted in deciding.profile.scorers)
    return next((scorer.prices for scorer in scorers if isinstance(scorer, Cost)), None)


def before_and_after(before: NodeCost, after: NodeCost) -> str:
    """One line: what it costs now, and by how much that is more or less than it was."""
    difference = after.millionths - before.millionths
    moved = "unchanged" if not difference else f"{format_price(abs(difference))} {'more' if difference > 0 else 'less'}"
    return f"{after}; before, {before.amount} for {before.nodes}: {moved}"


def as_values(bill: NodeCost) -> dict[str, Any]:
    """For programs. Money is text, so that nobody's floats round it."""
    return {"currency": bill.currency, "anHour": bill.amount, "nodes": bill.nodes, "unpriced": bill.unpriced}
