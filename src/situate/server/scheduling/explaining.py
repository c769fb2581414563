"""Why a pod goes where it goes, or nowhere: read off the engine at the moment of the choice. Looks only.

An engine tells its witness of each choice before anything is done about it. What is asked here is what placing has
just worked out, so it costs a look at the best ten nodes and, where some were refused, a count of the reasons. Gangs
and pods that extenders decide on have no witness: their decisions say less.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cache
from operator import is_
from typing import Final, TypeAlias

import msgspec
import numpy as np

from situate.core.contract import FITS, Codes, Detailed, Filter
from situate.core.effects import SetCondition
from situate.core.engine.engine import Engine
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import Filtered, run_filters
from situate.core.place.profile import Profile
from situate.core.place.selecting import NOWHERE
from situate.core.place.verdict_cache import VerdictCache
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IntColumn
from situate.core.state.view import View
from situate.server.placing.decisions import Details, Refusals, Score

__all__ = ["BEST", "Explainer"]

BEST: Final = 10
"""How many nodes a decision tells the scores of."""
ALTERNATIVES: Final = 3
FEW_RANKS: Final = 3
"""So many ranks are looked at whole; with nodes that differ more, each of the best is looked for by itself."""
LEADERS: Final = 16
"""How many of the best nodes are known at most. The more, the seldomer, and the longer, all nodes are looked at."""
BOARDS: Final = 32
"""Of how many classes of pods the scores that were said last are kept."""
ROWS: Final = 512
"""Of how many nodes a class keeps what each scorer said. With more, all of it is forgotten."""
KEPT: Final = 1 << 14
"""How many explanations are kept for whoever carries the decision out. More, and the oldest is forgotten."""

_encode: Final = msgspec.json.Encoder().encode

Place: TypeAlias = tuple[int, int]
"""Minus the rank, and the row: of two nodes, the better one has the lower place."""
AFTER_ALL: Final[Place] = (1, 0)
"""No node that fits comes after this."""


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

    def _wakes(self, entry: QueuedPod) -> tuple[str, ...]:
        """The kinds of change that the filters which refused the pod wait for."""
        deciding = self._engine.profiles.get(entry.pod.spec.scheduler_name)
        if deciding is None:
            return ()
        filters: Mapping[str, Filter] = {one.name: one for one in deciding.profile.filters}
        names = {
            wake.name for name in entry.unschedulable_plugins if name in filters for wake in filters[name].wakes_on
        }
        return tuple(sorted(names))

    # -- at the moment of the choice ---------------------------------------------------------------------------------

    def chosen(self, entry: QueuedPod, row: int) -> None:
        """A node was chosen for a pod, or none."""
        profile = self._engine.profiles[entry.pod.spec.scheduler_name].profile
        details = self._refused_everywhere(profile, entry) if row == NOWHERE else self._placed(profile, entry, row)
        self._kept[entry.ref.uid] = details
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)

    def _placed(self, profile: Profile, entry: QueuedPod, row: int) -> Details:
        # Who was promised a node gets it without a question to anybody: what is kept may be of long ago.
        standing = None if entry.nominated else self._engine.cycle.selection.verdicts_for(entry)
        if standing is None:  # or the first of its class: nothing is kept yet, and may never be
            standing = VerdictCache(self._engine.cluster, profile, entry.kind)
            board = _Board(standing, self._engine.cluster)
        else:
            board = self._board(entry.kind, standing)
        nodes, feasible = len(self._engine.cluster.nodes.rows), int(np.count_nonzero(standing.feasible))
        refusals = board.refusals_of(feasible)
        if refusals is None:
            filtered = Filtered(board.codes, standing.feasible)
            refusals = () if feasible == nodes else self._refusals(profile, entry.kind, filtered)
            board.refused(feasible, refusals)
        rows = board.best(row)
        names = self._engine.cluster.nodes.names
        return Details(
            score=int(standing.rank[row]),
            nodes=nodes,
            feasible=feasible,
            attempts=entry.attempts,
            scores=board.scores(rows, names),
            alternatives=tuple([names[one] for one in rows[1 : ALTERNATIVES + 1]]),
            refusals=refusals,
        )

    def _board(self, kind: PodClass, standing: VerdictCache) -> _Board:
        board = self._boards.get(kind)
        if board is None or not board.keeps_up(standing, self._engine.cluster):
            board = self._boards[kind] = _Board(standing, self._engine.cluster)
            if len(self._boards) > BOARDS:
                del self._boards[next(iter(self._boards))]
        return board

    def _refused_everywhere(self, profile: Profile, entry: QueuedPod) -> Details:
        filtered = run_filters(profile, entry.kind, View(self._engine.cluster))
        return Details(
            nodes=len(self._engine.cluster.nodes.rows),
            feasible=int(np.count_nonzero(filtered.feasible)),
            attempts=entry.attempts,
            refusals=self._refusals(profile, entry.kind, filtered),
        )

    def _refusals(self, profile: Profile, kind: PodClass, filtered: Filtered) -> tuple[Refusals, ...]:
        view = View(self._engine.cluster)
        plain = counted(profile, filtered, view)
        if plain is not None:
            return plain
        diagnosis = diagnose(profile, kind, view, filtered)
        away = diagnosis.turned_away
        if away is not None:
            return (Refusals(away.refusal.text, away.plugin, view.node_count),)
        said = [Refusals(one.text, one.plugin, int(np.count_nonzero(one.rows))) for one in diagnosis.rejections]
        if diagnosis.absent_text:
            said.append(Refusals(diagnosis.absent_text, "", int(np.count_nonzero(diagnosis.absent))))
        return _sorted(said)


def counted(profile: Profile, filtered: Filtered, view: View) -> tuple[Refusals, ...] | None:
    """The first refusals on all nodes, where each has one plain reason; None where somebody has more to say."""
    if filtered.turned_away is not None or filtered.failed is not None:
        return None
    said: list[Refusals] = []
    untold = view.node_count - int(np.count_nonzero(filtered.feasible))
    left = None if view.node_count == view.size else view.present
    for plugin, codes in zip(profile.filters, filtered.codes, strict=True):
        if not untold:
            break
        if codes is None or not np.count_nonzero(codes):
            continue
        first = codes if left is None else codes * left
        here = _by_reason(plugin, first)
        if here is None:
            return None
        said += here
        untold -= sum(one.nodes for one in here)
        if untold:
            fits = first == FITS
            left = fits if left is None else left & fits
    return _sorted(said)


def _by_reason(plugin: Filter, codes: Codes) -> list[Refusals] | None:
    """How many nodes a filter refused for which reason; None where it has more to say of them."""
    refused = int(np.count_nonzero(codes))
    if refused and _is_detailed(type(plugin)):
        return None
    said: list[Refusals] = []
    for code, reason in enumerate(plugin.reasons, 1):
        if not refused:
            break
        nodes = int(np.count_nonzero(codes == code))
        if nodes:
            said.append(Refusals(reason.text, plugin.name, nodes))
            refused -= nodes
    return None if refused else said


@cache
def _is_detailed(plugin: type[Filter]) -> bool:
    """Asked once for each kind of filter: to ask a protocol takes as long as to count."""
    return issubclass(plugin, Detailed)


def _sorted(said: Sequence[Refusals]) -> tuple[Refusals, ...]:
    return tuple(sorted(said, key=lambda one: (-one.nodes, one.reason)))


class _Board:
    """What was said of the best nodes for one class; what has not changed since need not be worked out again."""

    __slots__ = (
        "_base",
        "_bases",
        "_epoch",
        "_feasible",
        "_leaders",
        "_loads",
        "_refusals",
        "_scores",
        "_seen",
        "_standing",
        "codes",
    )

    def __init__(self, standing: VerdictCache, cluster: Cluster) -> None:
        self._standing = standing
        self._base = standing.base_scores
        self.codes = standing.codes
        self._epoch = cluster.epoch
        self._seen = cluster.touched_base + len(cluster.touched)
        self._scores: dict[int, msgspec.Raw] = {}
        self._bases: dict[int, dict[str, int]] = {}
        self._loads: dict[int, dict[str, int]] = {}
        self._leaders: Leaders | None = None
        self._refusals: tuple[Refusals, ...] | None = None
        self._feasible = 0

    def keeps_up(self, standing: VerdictCache, cluster: Cluster) -> bool:
        """Forget what has changed; False if nothing is known of what has."""
        if standing is not self._standing or self._epoch != cluster.epoch or self._seen < cluster.touched_base:
            return False
        base, codes = standing.base_scores, standing.codes
        if not all(map(is_, base, self._base)):
            self._base = base
            self._bases.clear()
            self._scores.clear()
            self._leaders = None
        if not all(map(is_, codes, self.codes)):
            self.codes = codes
            self._refusals = None
            self._leaders = None
        for row in cluster.touched[self._seen - cluster.touched_base :]:
            self._scores.pop(row, None)
            self._loads.pop(row, None)
            rank = int(standing.rank[row])
            if rank < 0:
                self._refusals = None  # it may have been refused for something else before, or not at all
            if self._leaders is not None:
                self._leaders.moved(row, rank)
        self._seen = cluster.touched_base + len(cluster.touched)
        return True

    def refusals_of(self, feasible: int) -> tuple[Refusals, ...] | None:
        """Why the others were refused, where so many nodes are feasible; None if that is not known any more."""
        return self._refusals if feasible == self._feasible else None

    def refused(self, feasible: int, refusals: tuple[Refusals, ...]) -> None:
        self._feasible, self._refusals = feasible, refusals

    def best(self, chosen: int) -> list[int]:
        """The best rows: the chosen first, then by rank, then in node order."""
        if self._leaders is None or not self._leaders.suffice:
            self._leaders = Leaders(self._standing.rank)
        others = [row for _, row in self._leaders.places[:BEST] if row != chosen]
        return [chosen, *others[: BEST - 1]]

    def scores(self, rows: Sequence[int], names: Sequence[str]) -> tuple[msgspec.Raw, ...]:
        known = self._scores
        if len(self._bases) > ROWS or len(self._loads) > ROWS:
            self._bases.clear()
            self._loads.clear()
            known.clear()
        for row in rows:
            if row not in known:
                known[row] = self._score(row, names[row])
        return tuple([known[row] for row in rows])

    def _score(self, row: int, node: str) -> msgspec.Raw:
        base, load = self._bases.get(row), self._loads.get(row)
        if base is None:
            base = self._bases[row] = _counting(self._standing.base_parts(row))
        if load is None:
            load = self._loads[row] = _counting(self._standing.load_parts(row))
        return msgspec.Raw(_encode(Score(node, int(self._standing.rank[row]), base | load)))


def _counting(parts: dict[str, int]) -> dict[str, int]:
    """Those that add something."""
    return {name: part for name, part in parts.items() if part}


class Leaders:
    """The best nodes in their order. One that changes finds its place among them, or leaves them, so that few pods need
    a look at all nodes."""

    __slots__ = ("_last", "places")

    def __init__(self, rank: IntColumn) -> None:
        self.places = leading(rank, LEADERS)
        self._last = self.places[-1] if len(self.places) == LEADERS else AFTER_ALL
        """All that are not after this are in `places`."""

    @property
    def suffice(self) -> bool:
        """Whether these are as many as a decision tells of, or all that there are."""
        return len(self.places) >= BEST or self._last == AFTER_ALL

    def moved(self, row: int, rank: int) -> None:
        """This row has that rank now."""
        place = (-rank, row)
        if place in self.places:
            return
        self.places = [one for one in self.places if one[1] != row]
        if rank >= 0 and place <= self._last:
            insort(self.places, place)
            if len(self.places) > LEADERS:
                del self.places[LEADERS:]
                self._last = self.places[-1]


def leading(rank: IntColumn, count: int) -> list[Place]:
    """So many of the best rows: by rank, then in node order. A rank below 0 is that of no node."""
    places: list[Place] = []
    left, looks = rank, 0
    while (highest := int(left[row := int(left.argmax())])) >= 0:
        # Most nodes are as good as many others: those of one rank are found together, and a few ranks are enough.
        rows = _equal(rank, highest, row, count - len(places)) if looks < FEW_RANKS else [row]
        places += [(-highest, row) for row in rows]
        if len(places) == count:
            break
        if not looks:
            left = rank.copy()
        left[rows] = -1
        looks += 1
    return places


def _equal(rank: IntColumn, wanted: int, first: int, count: int) -> list[int]:
    """So many of the first rows that have this rank; the very first is known."""
    equal = (rank == wanted).tobytes()
    rows = [first]
    while len(rows) < count and (row := equal.find(1, rows[-1] + 1)) >= 0:
        rows.append(row)
    return rows
