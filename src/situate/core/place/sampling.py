"""Which nodes are considered, for profiles that do not consider all of them.

There are two ways. `nodeSample: N` draws N nodes for each attempt of each pod. A key decides the draw, so the same
attempt draws the same nodes again. `percentageOfNodesToScore` goes round robin as kube-scheduler does: from where the
last pod stopped, zone by zone in turns, until enough feasible nodes are found.

Other nodes do not exist for that decision: scores are compared among the considered nodes only.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

import numpy as np

from situate.core.contract import RULED_OUT
from situate.core.place.diagnosis import Diagnosis
from situate.core.place.filtering import Filtered
from situate.core.place.profile import Profile
from situate.core.state.columns import IdColumn, Mask
from situate.core.state.view import View

FEWEST: Final = 100
"""kube-scheduler looks for at least this many feasible nodes, whatever the percentage."""

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_IN_TURNS: Final[Hashable] = "nodes in turns over the zones"
REGION: Final = "topology.kubernetes.io/region"
ZONE: Final = "topology.kubernetes.io/zone"
OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class Draw:
    """The rows that were considered for one pod, and where it fits among them."""

    rows: IdColumn
    fitting: Mask


def samples(profile: Profile, node_count: int) -> bool:
    """Whether not all nodes of a cluster of this size may be considered."""
    sampling = profile.sampling
    if sampling.nodes:
        return sampling.nodes < node_count
    return sampling.percentage > 0 and enough(profile, node_count) < node_count


# -- nodes drawn by a key ----------------------------------------------------------------------------------------------


def mix64(number: int) -> int:
    """A 64-bit mixing function: every bit of the result depends on all bits of the number."""
    number = (number + _GOLDEN) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)


def draw_key(pod: str, attempt: int) -> int:
    """The key that decides which nodes an attempt draws. `pod` must be unique to the pod."""
    return mix64(int.from_bytes(blake2b(pod.encode(), digest_size=8).digest(), "big") ^ mix64(attempt))


def drawn(rows: IdColumn, count: int, key: int) -> IdColumn:
    """`count` of these rows, each once and each equally likely; all if there are no more."""
    size = len(rows)
    if count >= size:
        return rows
    moved: dict[int, int] = {}
    taken = []
    for at in range(count):
        # The first steps of a shuffle. Only the moved positions are stored.
        other = at + mix64(key + at) % (size - at)
        taken.append(moved.get(other, other))
        moved[other] = moved.get(at, at)
    return rows[taken]


def sample(view: View, count: int, key: int) -> IdColumn:
    return drawn(np.flatnonzero(view.present), count, key)


# -- enough nodes that fit, from where the last pod left off ----------------------------------------------------------


def enough(profile: Profile, node_count: int) -> int:
    """How many feasible nodes are looked for. Without scorers, one is as good as another."""
    if not profile.scorers and not profile.sampling.for_extenders:
        return min(1, node_count)
    if node_count < FEWEST:
        return node_count
    return max(FEWEST, node_count * profile.sampling.percentage // 100)


def in_turns(view: View) -> IdColumn:
    """The rows of all nodes: the first of every zone, then the second of every zone, and so on."""
    return view.memo(_IN_TURNS, _in_turns)


def _in_turns(view: View) -> IdColumn:
    taken: dict[tuple[str, str], int] = {}
    order: dict[tuple[str, str], int] = {}
    turns = []
    for row in np.flatnonzero(view.present).tolist():
        node = view.node(row)
        labels = {} if node is None else node.metadata.labels
        zone = (labels.get(REGION) or labels.get(OLD_REGION, ""), labels.get(ZONE) or labels.get(OLD_ZONE, ""))
        turn = taken[zone] = taken.get(zone, 0) + 1
        turns.append((turn, order.setdefault(zone, len(order)), row))
    return np.array([row for _, _, row in sorted(turns)], np.intp)


def looked_at(order: IdColumn, feasible: Mask, start: int, wanted: int) -> IdColumn:
    """The rows from `start`, wrapping around, up to the one that makes it enough; all if it never is."""
    if not len(order):
        return order
    around = np.roll(order, -(start % len(order)))
    found = np.flatnonzero(feasible[around])
    return around if len(found) < wanted else around[: found[wanted - 1] + 1]


class Rounds:
    """The round robin over the nodes, pod after pod."""

    __slots__ = ("start",)

    def __init__(self) -> None:
        self.start = 0

    def next(self, profile: Profile, view: View, filtered: Filtered, feasible: Mask) -> IdColumn:
        """The rows to consider for one pod. The next pod continues behind them."""
        order = in_turns(view)
        if not len(order):
            return order
        absent = np.zeros(view.size, np.bool_)
        for codes in filtered.codes:
            if codes is not None:
                absent |= codes == RULED_OUT
        left = order[~absent[order]]
        rows = looked_at(left, feasible, self.start, enough(profile, len(left)))
        self.start = (self.start + len(rows)) % len(order)
        return rows


# -- messages ------------------------------------------------------------------------------------------------------


def restricted(diagnosis: Diagnosis, rows: IdColumn) -> Diagnosis:
    """The diagnosis of these rows alone."""
    drew = np.zeros(len(diagnosis.absent), np.bool_)
    drew[rows] = True
    absent = diagnosis.absent & drew
    return replace(
        diagnosis,
        node_count=len(rows),
        rejections=tuple(
            left for one in diagnosis.rejections if (left := replace(one, rows=one.rows & drew)).rows.any()
        ),
        absent=absent,
        absent_text=diagnosis.absent_text if absent.any() else "",
    )


def sample_message(diagnosis: Diagnosis, rows: IdColumn) -> str:
    """The FailedScheduling message of a pod that fits on none of the nodes it drew, but on others."""
    return restricted(diagnosis, rows).message(f"{len(rows)} of {diagnosis.node_count} nodes were looked at.")
