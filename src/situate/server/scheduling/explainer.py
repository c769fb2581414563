"""Why a pod goes to its node, or to none: read from the engine at the moment of the choice.

An engine tells its witness of each choice before it acts on it. The engine has just computed what is read here, so the
explanation costs a look at the best ten nodes and, if some were rejected, a count of the reasons. Gangs and pods that
extenders decide on have no witness, so their decisions say less.
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
from situate.core.place.sampling import Draw, restricted
from situate.core.place.scoring import run_scorers
from situate.core.place.selecting import NOWHERE
from situate.core.place.verdict_cache import VerdictCache
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.columns import IdColumn, IntColumn
from situate.core.state.view import View
from situate.server.placing.decisions import Details, Refusals, Score

BEST: Final = 10
"""For how many nodes a decision has the scores."""
ALTERNATIVES: Final = 3
EXPLANATIONS: Final = 1 << 14
"""How many explanations may wait for their bind or note. With more, the oldest is dropped."""

_encode: Final = msgspec.json.Encoder().encode


class Explainer:
    """The witness of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._explanations: OrderedDict[str, Details] = OrderedDict()
        self._score_caches: dict[PodClass, _ScoreCache] = {}
        engine.cycle.witness = self.chosen

    def take(self, uid: str) -> Details | None:
        """The explanation of the last choice for this pod; once."""
        return self._explanations.pop(uid, None)

    def rejected(self, found: SetCondition) -> Details | None:
        """The explanation of a pod that stays pending, with the events that it waits for."""
        details = self.take(found.pod.uid)
        if found.type != "PodScheduled":
            return details
        entry = self._engine.queue.get(found.pod.key)
        wakes = () if entry is None else self._wakes(entry)
        return Details(
            reason=found.reason,
            message=found.message,
            nodes=len(self._engine.cluster.nodes.rows) if details is None else details.nodes,
            feasible=0 if details is None else details.feasible,
            attempts=0 if entry is None else entry.attempts,
            sampled_from=0 if details is None else details.sampled_from,
            refusals=() if details is None else details.refusals,
            wakes_on=wakes,
        )

    def _wakes(self, entry: QueuedPod) -> tuple[str, ...]:
        """The events that the filters that rejected the pod wait for."""
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
        draw = self._engine.cycle.selection.drawn_for(entry)
        if row == NOWHERE:
            details = self._rejected_everywhere(profile, entry, draw)
        elif draw is not None:
            details = self._placed_by_draw(profile, entry, row, draw)
        else:
            details = self._placed(profile, entry, row)
        self._explanations[entry.ref.uid] = details
        if len(self._explanations) > EXPLANATIONS:
            self._explanations.popitem(last=False)

    def _placed(self, profile: Profile, entry: QueuedPod, row: int) -> Details:
        # A nominated pod gets its node without asking the plugins, so the cached verdicts may be old.
        verdicts = None if entry.nominated else self._engine.cycle.selection.verdicts_for(entry)
        if verdicts is None:  # or it is the first of its class, and nothing is cached yet
            verdicts = VerdictCache(self._engine.cluster, profile, entry.kind)
            scores = _ScoreCache(verdicts, self._engine.cluster)
        else:
            scores = self._scores_of(verdicts.pod, verdicts)
        nodes, feasible = len(self._engine.cluster.nodes.rows), int(np.count_nonzero(verdicts.feasible))
        refusals = scores.refusals_of(feasible)
        if refusals is None:
            filtered = Filtered(scores.codes, verdicts.feasible)
            refusals = () if feasible == nodes else self._refusals(profile, entry.kind, filtered)
            scores.rejected(feasible, refusals)
        rows = scores.best(row)
        names = self._engine.cluster.nodes.names
        return Details(
            score=int(verdicts.rank[row]),
            nodes=nodes,
            feasible=feasible,
            attempts=entry.attempts,
            scores=scores.scores(rows, names),
            alternatives=tuple([names[one] for one in rows[1 : ALTERNATIVES + 1]]),
            refusals=refusals,
        )

    def _placed_by_draw(self, profile: Profile, entry: QueuedPod, row: int, draw: Draw) -> Details:
        """Only the nodes that were drawn took part: scores are relative to them. The next pod draws others."""
        view = View(self._engine.cluster)
        scored = run_scorers(profile, entry.kind, view, draw.fitting)
        rank = np.where(draw.fitting, scored.total, -1)
        rows = [row, *(other for _, other in top_keys(rank, BEST) if other != row)][:BEST]
        parts = [{name: int(part[one]) for name, part in scored.by_plugin.items()} for one in rows]
        scores = [Score(view.names[one], int(rank[one]), _counting(of)) for one, of in zip(rows, parts, strict=True)]
        feasible = int(np.count_nonzero(draw.fitting))
        filtered = None if feasible == len(draw.rows) else run_filters(profile, entry.kind, view)
        return Details(
            score=int(rank[row]),
            nodes=len(draw.rows),
            feasible=feasible,
            attempts=entry.attempts,
            scores=tuple([msgspec.Raw(_encode(one)) for one in scores]),
            alternatives=tuple([view.names[one] for one in rows[1 : ALTERNATIVES + 1]]),
            refusals=() if filtered is None else self._refusals(profile, entry.kind, filtered, draw.rows),
            sampled_from=view.node_count,
        )

    def _scores_of(self, kind: PodClass, verdicts: VerdictCache) -> _ScoreCache:
        scores = self._score_caches.get(kind)
        if scores is None or not scores.keeps_up(verdicts, self._engine.cluster):
            scores = self._score_caches[kind] = _ScoreCache(verdicts, self._engine.cluster)
            if len(self._score_caches) > SCORE_CACHES:
                del self._score_caches[next(iter(self._score_caches))]
        return scores

    def _rejected_everywhere(self, profile: Profile, entry: QueuedPod, draw: Draw | None) -> Details:
        """If no node fits, drawn or not, all of them are counted: the scheduler asks all before it evicts anybody."""
        view = View(self._engine.cluster)
        filtered = run_filters(profile, entry.kind, view)
        if not filtered.feasible.any():
            draw = None
        rows = None if draw is None else draw.rows
        return Details(
            nodes=view.node_count if rows is None else len(rows),
            feasible=int(np.count_nonzero(filtered.feasible if draw is None else draw.fitting)),
            attempts=entry.attempts,
            refusals=self._refusals(profile, entry.kind, filtered, rows),
            sampled_from=0 if rows is None else view.node_count,
        )

    def _refusals(
        self, profile: Profile, kind: PodClass, filtered: Filtered, rows: IdColumn | None = None
    ) -> tuple[Refusals, ...]:
        """Of all nodes, or of these rows."""
        view = View(self._engine.cluster)
        plain = None if rows is not None else counted(profile, filtered, view)
        if plain is not None:
            return plain
        diagnosis = diagnose(profile, kind, view, filtered)
        away = diagnosis.turned_away
        if away is not None:
            return (Refusals(away.refusal.text, away.plugin, view.node_count),)
        if rows is not None:
            diagnosis = restricted(diagnosis, rows)
        found = [Refusals(one.text, one.plugin, int(np.count_nonzero(one.rows))) for one in diagnosis.rejections]
        if diagnosis.absent_text:
            found.append(Refusals(diagnosis.absent_text, "", int(np.count_nonzero(diagnosis.absent))))
        return _sorted(found)


def counted(profile: Profile, filtered: Filtered, view: View) -> tuple[Refusals, ...] | None:
    """The first rejections on all nodes, if each has one plain reason; None if a plugin has details."""
    if filtered.turned_away is not None or filtered.failed is not None:
        return None
    found: list[Refusals] = []
    unexplained = view.node_count - int(np.count_nonzero(filtered.feasible))
    left = None if view.node_count == view.size else view.present
    for plugin, codes in zip(profile.filters, filtered.codes, strict=True):
        if not unexplained:
            break
        if codes is None or not np.count_nonzero(codes):
            continue
        first = codes if left is None else codes * left
        here = _by_reason(plugin, first)
        if here is None:
            return None
        found += here
        unexplained -= sum(one.nodes for one in here)
        if unexplained:
            fits = first == FITS
            left = fits if left is None else left & fits
    return _sorted(found)


def _by_reason(plugin: Filter, codes: Codes) -> list[Refusals] | None:
    """How many nodes a filter rejected, by reason; None if it has details."""
    rejected = int(np.count_nonzero(codes))
    if rejected and _is_detailed(type(plugin)):
        return None
    found: list[Refusals] = []
    for code, reason in enumerate(plugin.reasons, 1):
        if not rejected:
            break
        nodes = int(np.count_nonzero(codes == code))
        if nodes:
            found.append(Refusals(reason.text, plugin.name, nodes))
            rejected -= nodes
    return None if rejected else found


@cache
def _is_detailed(plugin: type[Filter]) -> bool:
    """Cached, because a check against a protocol takes as long as counting."""
    return issubclass(plugin, Detailed)


def _sorted(found: Sequence[Refusals]) -> tuple[Refusals, ...]:
    return tuple(sorted(found, key=lambda one: (-one.nodes, one.reason)))


SCORE_CACHES: Final = 32
"""For how many pod classes to cache scores."""
ROWS: Final = 512
"""For how many nodes of a class to cache the scores by plugin. With more, the cache is cleared."""


NO_NODE: Final = b'{"node":""'
"""What the encoded score of a node without a name begins with."""
_Parts: TypeAlias = tuple[tuple[str, int], ...]
"""The weighted scores by plugin."""


class _ScoreCache:
    """The scores of the best nodes for one pod class, kept until the nodes change."""

    __slots__ = (
        "_base",
        "_bases",
        "_epoch",
        "_feasible",
        "_loads",
        "_refusals",
        "_scores",
        "_seen",
        "_tails",
        "_top",
        "_verdicts",
        "codes",
    )

    def __init__(self, verdicts: VerdictCache, cluster: Cluster) -> None:
        self._verdicts = verdicts
        self._base = verdicts.base_scores
        self.codes = verdicts.codes
        self._epoch = cluster.epoch
        self._seen = cluster.touched_base + len(cluster.touched)
        self._scores: dict[int, msgspec.Raw] = {}
        self._bases: dict[int, _Parts] = {}
        self._loads: dict[int, _Parts] = {}
        self._tails: dict[tuple[int, _Parts, _Parts], bytes] = {}
        """Encoded scores after the node's name."""
        self._top: TopNodes | None = None
        self._refusals: tuple[Refusals, ...] | None = None
        self._feasible = 0

    def keeps_up(self, verdicts: VerdictCache, cluster: Cluster) -> bool:
        """Drop what has changed; False if that is not known."""
        if verdicts is not self._verdicts or self._epoch != cluster.epoch or self._seen < cluster.touched_base:
            return False
        base, codes = verdicts.base_scores, verdicts.codes
        if not all(map(is_, base, self._base)):
            self._base = base
            self._bases.clear()
            self._scores.clear()
            self._top = None
        if not all(map(is_, codes, self.codes)):
            self.codes = codes
            self._refusals = None
            self._top = None
        for row in cluster.touched[self._seen - cluster.touched_base :]:
            self._scores.pop(row, None)
            self._loads.pop(row, None)
            rank = int(verdicts.rank[row])
            if rank < 0:
                self._refusals = None  # it may have been rejected for another reason before, or not at all
            if self._top is not None:
                self._top.moved(row, rank)
        self._seen = cluster.touched_base + len(cluster.touched)
        return True

    def refusals_of(self, feasible: int) -> tuple[Refusals, ...] | None:
        """Why the other nodes were rejected, if this many are feasible; None: not known any more."""
        return self._refusals if feasible == self._feasible else None

    def rejected(self, feasible: int, refusals: tuple[Refusals, ...]) -> None:
        self._feasible, self._refusals = feasible, refusals

    def best(self, chosen: int) -> list[int]:
        """The best rows: the chosen one first, then by rank, then in node order."""
        if self._top is None or not self._top.suffice:
            self._top = TopNodes(self._verdicts.rank)
        others = [row for _, row in self._top.keys[:BEST] if row != chosen]
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
            base = self._bases[row] = tuple(self._verdicts.base_parts(row).items())
        if load is None:
            load = self._loads[row] = tuple(self._verdicts.load_parts(row).items())
        parts = (int(self._verdicts.rank[row]), base, load)
        tail = self._tails.get(parts)
        if tail is None:  # many of the best nodes have the same scores
            if len(self._tails) >= ROWS:
                self._tails.clear()
            whole = _encode(Score("", parts[0], _counting(dict(base + load))))
            tail = self._tails[parts] = whole[len(NO_NODE) :]
        return msgspec.Raw(b'{"node":%b%b' % (_encode(node), tail))


def _counting(parts: dict[str, int]) -> dict[str, int]:
    """The parts that are not 0."""
    return {name: part for name, part in parts.items() if part}


RankKey: TypeAlias = tuple[int, int]
"""Minus the rank, and the row: the better of two nodes has the lower key."""
AFTER_ALL: Final[RankKey] = (1, 0)
"""After the key of every feasible node."""
TOP_NODES: Final = 16
"""How many of the best nodes to keep. With more, all nodes are searched less often, but for longer."""
FEW_RANKS: Final = 3
"""How many ranks to search for all of their nodes. After that, each of the best nodes is searched alone."""


class TopNodes:
    """The best nodes in order. A node that changes is moved or removed, so that few pods need a search of all nodes."""

    __slots__ = ("_last", "keys")

    def __init__(self, rank: IntColumn) -> None:
        self.keys = top_keys(rank, TOP_NODES)
        self._last = self.keys[-1] if len(self.keys) == TOP_NODES else AFTER_ALL
        """`keys` has all nodes up to this one."""

    @property
    def suffice(self) -> bool:
        """Whether these are enough for a decision, or all that there are."""
        return len(self.keys) >= BEST or self._last == AFTER_ALL

    def moved(self, row: int, rank: int) -> None:
        """A row has a new rank."""
        key = (-rank, row)
        if key in self.keys:
            return
        self.keys = [one for one in self.keys if one[1] != row]
        if rank >= 0 and key <= self._last:
            insort(self.keys, key)
            if len(self.keys) > TOP_NODES:
                del self.keys[TOP_NODES:]
                self._last = self.keys[-1]


def top_keys(rank: IntColumn, count: int) -> list[RankKey]:
    """The keys of the best rows: by rank, then in node order. A rank below 0 is that of no node."""
    keys: list[RankKey] = []
    left, searches = rank, 0
    while (highest := int(left[row := int(left.argmax())])) >= 0:
        # Many nodes have the same rank: they are found together, and a few ranks are enough.
        rows = _equal(rank, highest, row, count - len(keys)) if searches < FEW_RANKS else [row]
        keys += [(-highest, row) for row in rows]
        if len(keys) == count:
            break
        if not searches:
            left = rank.copy()
        left[rows] = -1
        searches += 1
    return keys


def _equal(rank: IntColumn, wanted: int, first: int, count: int) -> list[int]:
    """The first rows that have this rank, beginning with a known one."""
    equal = (rank == wanted).tobytes()
    rows = [first]
    while len(rows) < count and (row := equal.find(1, rows[-1] + 1)) >= 0:
        rows.append(row)
    return rows
