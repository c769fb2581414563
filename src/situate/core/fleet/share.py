"""A member's share: the part of all changes that its engine sees, so that it decides only on its own pods.

    all changes ──► Share ──► the engine

- The engine of a pod's owner sees a waiting pod. Other members keep it, and show it when it becomes theirs.
- A pod that stays unscheduled is tried by other members too. Without pools, the next in line tries it after STALE_MS.
  With pools, its owner sees only some of the nodes: once the pod was found unschedulable, the next in line try it too,
  one every SPREAD_MS. The first that finds room binds it, and the others see that.
- With a pool label, a member sees the nodes of its own pools, and the pods on them.

Of several members that try a pod, only one reports about it: `speaks_for`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from situate.core.changes import Change, Millis, NodeGone, NodeSeen, PodGone, PodRef, PodSeen
from situate.core.fleet.members import FleetMember
from situate.core.fleet.ranking import key_of, pools_dealt, ranked, weighed
from situate.core.gang.naming import gang_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod

STALE_MS: Final = 5 * 60_000
"""After this time the next in line tries a pod that its owner has not placed, too: as long as an unschedulable pod
waits before it is tried again for no reason. A live owner should get to it sooner."""
SPREAD_MS: Final = 1_000
"""How long after a pod was found unschedulable in its owner's pools each of the next in line tries it, too."""
FINISHED: Final = ("Succeeded", "Failed")
UNSCHEDULABLE: Final = "Unschedulable"


@dataclass(slots=True, eq=False)
class _Waiting:
    pod: Pod
    ref: PodRef
    since_ms: Millis
    rank: int | None = None
    """How many members are before us in its line; None: we are not in it."""
    shown: bool = False
    refused_ms: Millis | None = None


class Share:
    """Of one member. Changes in, changes out; this decides nothing."""

    def __init__(self, me: str, pool_label: str = "", may_withdraw: Callable[[str], bool] = lambda _key: True) -> None:
        """`may_withdraw`: whether nothing is under way for a pod, by namespace/name."""
        self._me = me
        self._label = pool_label
        self._may_withdraw = may_withdraw
        self._members: tuple[FleetMember, ...] = ()
        self._waiting: dict[str, _Waiting] = {}
        self._due: list[tuple[Millis, int, str]] = []
        self._tickets = 0
        self._pools: dict[str, dict[str, Node]] = {}
        self._pool_of: dict[str, str] = {}
        self._dealt: dict[str, tuple[str, ...]] = {}
        self._on: dict[str, dict[str, Pod]] = {}
        """With pools: bound pods, by node."""
        self._node_of: dict[str, str] = {}

    # -- what others may ask -----------------------------------------------------------------------------------------

    @property
    def members(self) -> tuple[FleetMember, ...]:
        return self._members

    @property
    def pools(self) -> list[str]:
        return sorted(pool for pool, names in self._dealt.items() if self._me in names)

    @property
    def elsewhere(self) -> int:
        """How many waiting pods other members own."""
        return sum(not one.shown for one in self._waiting.values())

    def speaks_for(self, key: str) -> bool:
        """Whether this member reports about a pod, by namespace/name."""
        entry = self._waiting.get(key)
        return entry is None or not entry.rank

    # -- what happens ------------------------------------------------------------------------------------------------

    def take(self, changes: Sequence[Change], now: Millis) -> list[Change]:
        """The part of the changes that the engine sees."""
        out: list[Change] = []
        for change in changes:
            match change:
                case PodSeen(pod):
                    self._pod_seen(change, pod, now, out)
                case PodGone(ref):
                    self._pod_gone(change, ref, out)
                case NodeSeen(node) if self._label:
                    self._node_seen(change, node, now, out)
                case NodeGone(name) if self._label:
                    self._node_gone(change, name, now, out)
                case _:
                    out.append(change)
        return out

    def join(self, members: Iterable[FleetMember], now: Millis) -> list[Change]:
        found = tuple(sorted(members))
        if found == self._members:
            return []
        self._members = found
        out = self._deal() if self._label else []
        self._rank_all(now, out)
        return out

    def due(self, now: Millis) -> list[Change]:
        """Pods that have waited long enough for other members."""
        out: list[Change] = []
        while self._due and self._due[0][0] <= now:
            _, _, key = heappop(self._due)
            entry = self._waiting.get(key)
            if entry is not None and not entry.shown and self._is_due(entry, now):
                self._show(entry, out)
        return out

    def next_due_ms(self) -> Millis | None:
        return self._due[0][0] if self._due else None

    # -- pods that wait ----------------------------------------------------------------------------------------------

    def _pod_seen(self, change: PodSeen, pod: Pod, now: Millis, out: list[Change]) -> None:
        ref = PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        key = ref.key
        if pod.spec.node_name or pod.status.phase in FINISHED:
            entry = self._waiting.pop(key, None)
            if self._label:
                self._bound_seen(change, ref, out, waited=entry is not None and entry.shown)
            else:
                out.append(change)
            return
        entry = self._waiting.get(key)
        if entry is None or entry.ref != ref:
            entry = self._waiting[key] = _Waiting(pod, ref, now)
            entry.rank = self._rank(pod)
        entry.pod = pod
        if entry.refused_ms is None and _was_refused(pod):
            entry.refused_ms = now
        if entry.shown:
            out.append(change)
        elif self._is_due(entry, now):
            self._show(entry, out)
        else:
            self._await(entry)

    def _pod_gone(self, change: PodGone, ref: PodRef, out: list[Change]) -> None:
        entry = self._waiting.get(ref.key)
        if entry is not None and entry.ref == ref:
            del self._waiting[ref.key]
        self._off_node(ref.key)
        out.append(change)

    def _show(self, entry: _Waiting, out: list[Change]) -> None:
        entry.shown = True
        out.append(PodSeen(entry.pod))

    def _due_ms(self, entry: _Waiting) -> Millis | None:
        if entry.rank is None:
            return None
        if entry.rank == 0:
            return entry.since_ms
        if self._label and entry.refused_ms is not None:
            return entry.refused_ms + entry.rank * SPREAD_MS
        return entry.since_ms + entry.rank * STALE_MS

    def _is_due(self, entry: _Waiting, now: Millis) -> bool:
        due = self._due_ms(entry)
        return due is not None and due <= now

    def _await(self, entry: _Waiting) -> None:
        due = self._due_ms(entry)
        if due is not None:
            self._tickets += 1
            heappush(self._due, (due, self._tickets, entry.ref.key))

    def _rank_all(self, now: Millis, out: list[Change]) -> None:
        self._due.clear()
        for entry in self._waiting.values():
            entry.rank = self._rank(entry.pod)
            if self._is_due(entry, now):
                if not entry.shown:
                    self._show(entry, out)
            else:
                if entry.shown and self._may_withdraw(entry.ref.key):
                    entry.shown = False
                    out.append(PodGone(entry.ref))
                self._await(entry)

    def _rank(self, pod: Pod) -> int | None:
        line = self._line(pod)
        return line.index(self._me) if self._me in line else None

    def _line(self, pod: Pod) -> list[str]:
        """The members in line for a pod, its owner first."""
        key, scheduler = key_of(pod), pod.spec.scheduler_name
        able = [one.name for one in self._members if one.decides(scheduler)]
        if not self._label or not self._pools:
            return ranked(key, able)
        line: dict[str, None] = {}
        for pool in self._pools_for(pod, key):
            line.update(dict.fromkeys(name for name in ranked(key, self._dealt.get(pool, ())) if name in able))
        # If no able member has its pools, one must still report why it waits.
        return list(line) or ranked(key, able)

    # -- pools -------------------------------------------------------------------------------------------------------

    def _pools_for(self, pod: Pod, key: str) -> list[str]:
        wanted = pod.spec.node_selector.get(self._label)
        if wanted is not None and wanted in self._pools:
            return [wanted]
        return weighed(key, {pool: len(nodes) for pool, nodes in self._pools.items()})

    def _ours(self, pool: str) -> bool:
        return self._me in self._dealt.get(pool, ())

    def _node_seen(self, change: NodeSeen, node: Node, now: Millis, out: list[Change]) -> None:
        name, pool = node.metadata.name, node.metadata.labels.get(self._label, "")
        before = self._pool_of.get(name)
        if before is not None and before != pool:
            if self._ours(before):
                out.extend(PodGone(_ref(pod)) for pod in self._on.get(name, {}).values())
            self._node_gone(NodeGone(name), name, now, out)
        news = pool not in self._pools
        self._pools.setdefault(pool, {})[name] = node
        self._pool_of[name] = pool
        if news:
            out.extend(self._deal())
            self._rank_all(now, out)
        elif self._ours(pool):
            out.append(change)
            if before != pool:
                out.extend(PodSeen(pod) for pod in self._on.get(name, {}).values())

    def _node_gone(self, change: NodeGone, name: str, now: Millis, out: list[Change]) -> None:
        pool = self._pool_of.pop(name, None)
        if pool is None:
            return
        del self._pools[pool][name]
        if self._ours(pool):
            out.append(change)
        if not self._pools[pool]:
            del self._pools[pool]
            out.extend(self._deal())
            self._rank_all(now, out)

    def _deal(self) -> list[Change]:
        """Deal the pools again. Added nodes come before their pods, removed ones after them."""
        before = self._dealt
        self._dealt = pools_dealt(sorted(self._pools), [one.name for one in self._members])
        out: list[Change] = []
        for pool in sorted(self._pools):
            had, has = self._me in before.get(pool, ()), self._ours(pool)
            if had == has:
                continue
            for name, node in self._pools[pool].items():
                pods = self._on.get(name, {}).values()
                if has:
                    out.append(NodeSeen(node))
                    out.extend(PodSeen(pod) for pod in pods)
                else:
                    out.extend(PodGone(_ref(pod)) for pod in pods)
                    out.append(NodeGone(name))
        return out

    def _bound_seen(self, change: PodSeen, ref: PodRef, out: list[Change], *, waited: bool) -> None:
        """A pod that has a node, or had one and has finished."""
        pod, key = change.pod, ref.key
        node = "" if pod.status.phase in FINISHED else pod.spec.node_name
        if self._node_of.get(key) != node:
            self._off_node(key)
        if node:
            self._on.setdefault(node, {})[key] = pod
            self._node_of[key] = node
        if not node or self._ours(self._pool_of.get(node, "")) or gang_of(pod) is not None:
            out.append(change)
        elif waited:
            out.append(PodGone(ref))

    def _off_node(self, key: str) -> None:
        node = self._node_of.pop(key, "")
        if node:
            del self._on[node][key]
            if not self._on[node]:
                del self._on[node]


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def _was_refused(pod: Pod) -> bool:
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.reason == UNSCHEDULABLE
        for one in pod.status.conditions
    )
