"""A gang inside one topology domain: one plan per value of a node label, and the best of them.

The best has the most pods, then the highest sum of scores, then the first name. The scores of a pod are those among all
nodes that fit it, so that they can be compared between domains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from situate.core.gang.plan import Member, Plan, Planner, plan_enough
from situate.core.state.columns import Mask
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class Domain:
    value: str
    rows: Mask


def domains(view: View, key: str) -> list[Domain]:
    """All domains of a key, by name. Nodes without the label are in none."""
    ids, values = view.label(key)
    present = view.present
    found = np.unique(ids[present & (ids >= 0)]).tolist()
    made = [Domain(values.names[one], present & (ids == one)) for one in found]
    return sorted(made, key=lambda domain: domain.value)


def taken(view: View, key: str, nodes: Iterable[str]) -> list[str]:
    """The domains of these nodes, each once; empty for a node that is in none."""
    ids, values = view.label(key)
    rows = (view.find(node) for node in nodes)
    found = (int(ids[row]) for row in rows if row >= 0)
    return list(dict.fromkeys(values.names[one] if one >= 0 else "" for one in found))


def plan_in_one(planner: Planner, members: Sequence[Member], needed: int, within: Sequence[Domain]) -> Plan | None:
    """The best plan within one of these domains; None if none has as many pods as are needed."""
    for kind in dict.fromkeys(member.kind for member in members):
        planner.prepare(kind)  # once, for all domains
    best: Plan | None = None
    for domain in within:
        found = replace(plan_enough(planner, members, needed, domain.rows)[0], domain=domain.value)
        if found.count >= needed and (best is None or (found.count, found.score) > (best.count, best.score)):
            best = found
    return best


class Confined(View):
    """A view as if the cluster had only the nodes of a domain: to explain why a pod fits on none of them."""

    __slots__ = ("_rows",)

    def __init__(self, view: View, rows: Mask) -> None:
        super().__init__(view.cluster, removed=view.removed, added=view.added, given=view.given)
        self._rows = rows

    @property
    def present(self) -> Mask:
        return super().present & self._rows

    @property
    def node_count(self) -> int:
        return int(np.count_nonzero(self.present))
