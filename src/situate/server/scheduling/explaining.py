"""Why a pod goes where it goes, or nowhere: read off the engine at the moment of the choice. Looks only.

An engine tells its witness of each choice before anything is done about it. What is asked here is what placing has
just worked out, so it costs a look at the best ten nodes and, where some were refused, a count of the reasons. Gangs
and pods that extenders decide on have no witness: their decisions say less.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from operator import is_
from typing import Final

import msgspec
import numpy as np

from situate.core.contract import FITS, Detailed, Filter
from situate.core.effects import SetCondition
from situate.core.engine.engine import Engine
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import Filtered, run_filters
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE
from situate.core.place.standing import Standing
from situate.core.queue.waiting import Waiting
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.view import View
from situate.server.placing.decisions import Details, Refusals, Score

__all__ = ["BEST", "Explainer"]

BEST: Final = 10
"""How many nodes a decision tells the scores of."""
ALTERNATIVES: Final = 3
FEW_RANKS: Final = 3
"""So many ranks are looked at whole; with nodes that differ more, each of the best is looked for by itself."""
PEERS: Final = 256
"""How many equally good nodes are remembered."""
BOARDS: Final = 32
"""Of how many classes of pods the scores that were said last are kept."""
KEPT: Final = 1 << 14
"""How many explanations are kept for whoever carries the decision out. More, and the oldest is forgotten."""

_encode: Final = msgspec.json.Encoder().encode


class Explainer:
    """The witness of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: OrderedDict[str, Details] = OrderedDict()
        self._boards: dict[PodClass, _Board] = {}
        engine.cycle.witness = self.chosen

    def take(self, uid: str) -> Details | None:
        """What was seen when this pod was last decided on; once."""
        return self._kept.pop(uid, None)

    def refused(self, said: SetCondition) -> Details | None:
        """The same, of one that was told that it must wait, with what it waits for."""
        details = self.take(said.pod.uid)
        if said.type != "PodScheduled":
            return details
        entry = self._engine.queue.get(said.pod.key)
        wakes = () if entry is None else self._wakes(entry)
        return Details(
            reason=said.reason,
            message=said.message,
            nodes=len(self._engine.cluster.nodes.rows),
            feasible=0 if details is None else details.feasible,
            attempts=0 if entry is None else entry.attempts,
            refusals=() if details is None else details.refusals,
            wakes_on=wakes,
        )

    def _wakes(self, entry: Waiting) -> tuple[str, ...]:
        """The kinds of change that the filters which refused the pod wait for."""
        deciding = self._engine.profiles.get(entry.pod.spec.scheduler_name)
        if deciding is None:
            return ()
        filters: Mapping[str, Filter] = {one.name: one for one in deciding.profile.filters}
        names = {wake.name for name in entry.refused_by if name in filters for wake in filters[name].wakes_on}
        return tuple(sorted(names))

    # -- at the moment of the choice ---------------------------------------------------------------------------------

    def chosen(self, entry: Waiting, row: int) -> None:
        """A node was chosen for a pod, or none."""
        profile = self._engine.profiles[entry.pod.spec.scheduler_name].profile
        details = self._refused_everywhere(profile, entry) if row == NOWHERE else self._placed(profile, entry, row)
        self._kept[entry.ref.uid] = details
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _placed(self, profile: Profile, entry: Waiting, row: int) -> Details:
        standing = self._engine.cycle.standing_for(entry)
        if standing is None:  # the first of its class: nothing is kept yet, and may never be
            standing = Standing(self._engine.cluster, profile, entry.kind)
            board = _Board(standing, self._engine.cluster)
        else:
            board = self._board(entry.kind, standing)
        rows = board.best(row)
        names = self._engine.cluster.nodes.names
        nodes, feasible = len(self._engine.cluster.nodes.rows), int(np.count_nonzero(standing.feasible))
        if board.refusals is None:
            filtered = Filtered(standing.codes, standing.feasible)
            board.refusals = () if feasible == nodes else self._refusals(profile, entry.kind, filtered)
        return Details(
            score=int(standing.rank[row]),
            nodes=nodes,
            feasible=feasible,
            attempts=entry.attempts,
            scores=tuple([board.score(one, names[one]) for one in rows]),
            alternatives=tuple([names[one] for one in rows[1 : ALTERNATIVES + 1]]),
            refusals=board.refusals,
        )

    def _board(self, kind: PodClass, standing: Standing) -> _Board:
        board = self._boards.get(kind)
        if board is None or not board.keeps_up(standing, self._engine.cluster):
            board = self._boards[kind] = _Board(standing, self._engine.cluster)
            if len(self._boards) > BOARDS:
                del self._boards[next(iter(self._boards))]
        return board

    def _refused_everywhere(self, profile: Profile, entry: Waiting) -> Details:
        filtered = run_filters(profile, entry.kind, View(self._engine.cluster))
        return Details(
            nodes=len(self._engine.cluster.nodes.rows),
            feasible=int(np.count_nonzero(filtered.feasible)),
            attempts=entry.attempts,
            refusals=self._refusals(profile, entry.kind, filtered),
        )

    def _refusals(self, profile: Profile, kind: PodClass, filtered: Filtered) -> tuple[Refusals, ...]:
        view = View(self._engine.cluster)
        plain = counted(profile, filtered, view.present)
        if plain is not None:
            return plain
        diagnosis = diagnose(profile, kind, view, filtered)
        away = diagnosis.turned_away
        if away is not None:
            return (Refusals(away.refusal.text, away.plugin, view.node_count),)
        said = [Refusals(one.text, one.plugin, int(np.count_nonzero(one.rows))) for one in diagnosis.told]
        if diagnosis.absent_text:
            said.append(Refusals(diagnosis.absent_text, "", int(np.count_nonzero(diagnosis.absent))))
        return _sorted(said)


def counted(profile: Profile, filtered: Filtered, present: Mask) -> tuple[Refusals, ...] | None:
    """The first refusals on all nodes, where each has one plain reason; None where somebody has more to say."""
    if filtered.turned_away is not None or filtered.failed is not None:
        return None
    said: list[Refusals] = []
    left = present
    for plugin, codes in zip(profile.filters, filtered.codes, strict=True):
        if codes is None or not np.count_nonzero(codes):
            continue
        refused = left & (codes != FITS)
        counts = np.bincount(codes[refused])
        if len(counts) > len(plugin.reasons) + 1 or (len(counts) and _is_detailed(type(plugin))):
            return None
        said += [
            Refusals(plugin.reasons[code - 1].text, plugin.name, count)
            for code, count in enumerate(counts.tolist())
            if count
        ]
        left = left & ~refused
    return _sorted(said)


@cache
def _is_detailed(plugin: type[Filter]) -> bool:
    """Asked once for each kind of filter: to ask a protocol takes as long as to count."""
    return issubclass(plugin, Detailed)


def _sorted(said: Sequence[Refusals]) -> tuple[Refusals, ...]:
    return tuple(sorted(said, key=lambda one: (-one.nodes, one.reason)))


class _Board:
    """What was said of the best nodes for one class; what has not changed since need not be worked out again."""

    __slots__ = ("_base", "_codes", "_epoch", "_loads", "_peers", "_scores", "_seen", "_standing", "refusals")

    def __init__(self, standing: Standing, cluster: Cluster) -> None:
        self._standing = standing
        self._base = standing.base_scores
        self._codes = standing.codes
        self._epoch = cluster.epoch
        self._seen = cluster.touched_base + len(cluster.touched)
        self._scores: dict[int, msgspec.Raw] = {}
        self._loads: dict[int, dict[str, int]] = {}
        self._peers: _Peers | None = None
        self.refusals: tuple[Refusals, ...] | None = None

    def keeps_up(self, standing: Standing, cluster: Cluster) -> bool:
        """Forget what has changed; False if nothing is known of what has."""
        if standing is not self._standing or self._epoch != cluster.epoch or self._seen < cluster.touched_base:
            return False
        base, codes = standing.base_scores, standing.codes
        if not all(map(is_, base, self._base)):
            self._base = base
            self._scores.clear()
            self._peers = None
        if not all(map(is_, codes, self._codes)):
            self._codes = codes
            self.refusals = None
            self._peers = None
        for row in cluster.touched[self._seen - cluster.touched_base :]:
            self._scores.pop(row, None)
            self._loads.pop(row, None)
            rank = int(standing.rank[row])
            if rank < 0:
                self.refusals = None  # it may have been refused for something else before, or not at all
            if self._peers is not None and not self._peers.keeps_up(row, rank):
                self._peers = None
        self._seen = cluster.touched_base + len(cluster.touched)
        return True

    def best(self, chosen: int) -> list[int]:
        """The best rows, the chosen one first: see below."""
        rank = self._standing.rank
        if self._peers is None or len(self._peers.rows) <= BEST:
            self._peers = _Peers(rank)
        rows = [chosen, *(row for row in self._peers.rows[:BEST] if row != chosen)][:BEST]
        return rows if len(rows) == BEST else best(rank, chosen)

    def score(self, row: int, node: str) -> msgspec.Raw:
        known = self._scores.get(row)
        if known is None:
            load = self._loads.get(row)
            if load is None:
                load = self._loads[row] = self._standing.load_parts(row)
            base = self._standing.base_parts(row)
            parts = {name: part for name, part in (base | load).items() if part}
            known = msgspec.Raw(_encode(Score(node, int(self._standing.rank[row]), parts)))
            self._scores[row] = known
        return known


class _Peers:
    """The first nodes of the highest rank, in node order. Each of a row of like pods goes to the next of them, and none
    has to look at all nodes to say so."""

    __slots__ = ("_highest", "rows")

    def __init__(self, rank: IntColumn) -> None:
        self._highest = int(rank[rank.argmax()])
        self.rows: list[int] = np.flatnonzero(rank == max(self._highest, 0))[:PEERS].tolist()

    def keeps_up(self, row: int, rank: int) -> bool:
        """This row has that rank now. False: who the first are has to be found out anew."""
        place = bisect_left(self.rows, row)
        known = place < len(self.rows) and self.rows[place] == row
        if rank < self._highest:
            if known:
                del self.rows[place]
            return True
        return rank == self._highest and (known or (len(self.rows) > 0 and row > self.rows[-1]))


def best(rank: IntColumn, chosen: int) -> list[int]:
    """The best rows: the chosen first, then by rank, then in node order. A rank below 0 is that of no node."""
    rows = [chosen]
    # Most nodes are as good as many others: those of one rank are found together, and a few ranks are enough.
    highest = rank[rank.argmax()]
    for _ in range(FEW_RANKS):
        if highest < 0:
            return rows
        equal = (rank == highest).tobytes()
        row = equal.find(1)
        while row >= 0:
            if row != chosen:
                rows.append(row)
                if len(rows) == BEST:
                    return rows
            row = equal.find(1, row + 1)
        below = np.where(rank < highest, rank, -1)
        highest = below[below.argmax()]
    left = rank.copy()
    left[rows] = -1
    while len(rows) < BEST and left[row := int(left.argmax())] >= 0:
        rows.append(row)
        left[row] = -1
    return rows
