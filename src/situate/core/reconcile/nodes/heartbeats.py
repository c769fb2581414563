"""When each node was last heard of, by the clock of whoever watches.

Told by the one that feeds the controllers; controllers only read. Nothing in here outlives that one, and nothing has
to: `begin` makes as if everybody had been heard of just now. What a renewal says is never compared with our clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.nodes.fencing import NodeProfile, controller_waits_ms
from situate.core.reconcile.nodes.taints import counts, given_up_at, is_up, ready_report, zone_of

__all__ = ["ObservedLease", "Heartbeats"]


class ObservedLease(NamedTuple):
    uid: str
    renew_time: str
    """Only asked whether it is another than the last."""
    version: str
    at: Millis
    duration_ms: Millis = 0
    """As its agent wrote it: by that it counts when it has to stop, whatever profile we have."""


class Heartbeats:
    """`since` is from when on every renewal was seen; None while they are not, and then nobody is judged."""

    __slots__ = ("_absent", "_heard", "_leases", "_taken", "_up", "finished", "profile", "since")

    def __init__(self, profile: NodeProfile) -> None:
        self.profile = profile
        self.since: Millis | None = None
        self.finished = 0
        """How many pods have ended."""
        self._leases: dict[str, ObservedLease] = {}
        self._heard: dict[str, Millis] = {}
        self._absent: dict[str, Millis] = {}
        self._taken: dict[str, Millis] = {}
        self._up: dict[str, None] = {}

    # -- told ----------------------------------------------------------------------------------------------------------

    def begin(self, now: Millis) -> None:
        """From now on everything is seen. Also after a time in which it was not, or in which nobody looked."""
        self.since = now

    def end(self) -> None:
        """Renewals are not seen any more."""
        self.since = None

    def lease_seen(
        self, node: str, uid: str, renew_time: str, version: str, now: Millis, duration_ms: Millis = 0
    ) -> bool:
        """Whether the node may have to be looked at sooner than was said before: its lease is shorter by now."""
        known = self._leases.get(node)
        if known is None or known.renew_time != renew_time:
            self._leases[node] = ObservedLease(uid, renew_time, version, now, duration_ms)
            self._heard[node] = now
        else:
            self._leases[node] = ObservedLease(uid, renew_time, version, known.at, max(duration_ms, known.duration_ms))
        return known is not None and self._leases[node].duration_ms < known.duration_ms

    def lease_gone(self, node: str) -> None:
        self._leases.pop(node, None)

    def node_seen(self, old: ManagedNode | None, new: ManagedNode, now: Millis) -> None:
        name = new.metadata.name
        self._absent.pop(name, None)
        if old is None or _heartbeat(old) != _heartbeat(new):
            self._heard[name] = now
        self._count(old, new, now)
        taken = given_up_at(new)
        if taken is not None:
            # A time to come is not ours; it must not stop a zone for ever.
            zone, taken = zone_of(new), min(taken, now)
            self._taken[zone] = max(self._taken.get(zone, taken), taken)

    def node_gone(self, old: ManagedNode, now: Millis) -> None:
        self._heard.pop(old.metadata.name, None)
        self._absent[old.metadata.name] = now
        self._count(old, None, now)

    def node_missed(self, node: str, now: Millis) -> None:
        """Something is on a node that is not there."""
        self._absent.setdefault(node, now)

    def _count(self, old: ManagedNode | None, new: ManagedNode | None, now: Millis) -> None:
        had = self.up
        if old is not None:
            self._up.pop(old.metadata.name, None)
        if new is not None and _is_one_up(new):
            self._up[new.metadata.name] = None
        if not had and self.up and self.since is not None:
            # All nodes were lost, and that was about us and not about them: the others may need a while as well.
            self.since = now

    # -- read ----------------------------------------------------------------------------------------------------------

    @property
    def up(self) -> int:
        """How many nodes are ready, by what is stored of them."""
        return len(self._up)

    def somebody_is_up(self, now: Millis) -> bool:
        """Whether a node is ready and was heard of lately: one that has fallen silent may not have been judged yet."""
        return any(not self.is_silent(name, now, self.profile.silent_ms) for name in self._up)

    def last(self, node: str) -> Millis | None:
        """When the node was last heard of; None while nobody can tell."""
        since = self.since
        if since is None:
            return None
        heard = self._heard.get(node, since)
        return max(since, heard)

    def is_silent(self, node: str, now: Millis, patience: Millis) -> bool:
        last = self.last(node)
        return last is not None and last + patience < now

    def silent_at(self, node: str, patience: Millis) -> Millis | None:
        """From when on the node has been silent for longer than `patience`, if it stays so. None: nobody can tell.

        No sooner than its agent has stopped, by the lease that it has. A clock of whole milliseconds may be late by one
        when it is read first and not at all when it is read last."""
        last = self.last(node)
        return None if last is None else last + max(patience, self.waits_ms(node)) + 1

    def waits_ms(self, node: str) -> Millis:
        """For how long after it was last heard of the node may still run its pods, by its own lease; 0: it has none."""
        lease = self._leases.get(node)
        return 0 if lease is None else controller_waits_ms(lease.duration_ms)

    def lease_over_at(self, node: str) -> Millis | None:
        """When the agent of a node has ended its pods, if it renews its lease no more; None: it has no lease."""
        lease = self._leases.get(node)
        if lease is None:
            return None
        return max(lease.at, self.since or lease.at) + controller_waits_ms(lease.duration_ms) + 1

    def absent_since(self, node: str) -> Millis | None:
        """From when on the node was not there; None: nobody can tell."""
        at = self._absent.get(node)
        return None if at is None or self.since is None else max(at, self.since)

    @property
    def may_give_up_at(self) -> Millis | None:
        """When the first full period is over, before which nobody is made to leave a node for being lost."""
        return None if self.since is None else self.since + self.profile.grace_ms

    def last_given_up(self, zone: str) -> Millis | None:
        """When a node of this zone was last given up, as far as anybody can still tell; None: not since we look."""
        return self._taken.get(zone)

    def leases(self) -> Iterator[tuple[str, ObservedLease]]:
        """By name of node."""
        return iter(sorted(self._leases.items()))


def _is_one_up(node: ManagedNode | None) -> bool:
    return node is not None and counts(node) and is_up(node)


def _heartbeat(node: ManagedNode) -> str | None:
    report = ready_report(node)
    return None if report is None else report.last_heartbeat_time
