"""When each node was last heard from, by the observer's clock.

The runner of the controllers updates it; controllers only read. It need not survive a restart: `begin` counts as a
heartbeat of every node. Times in a lease are never compared with our clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.effects import LeaseVersion
from situate.core.reconcile.nodes.fencing import NodeProfile, controller_waits_ms
from situate.core.reconcile.nodes.taints import counts, given_up_at, is_up, ready_report, zone_of


class ObservedLease(NamedTuple):
    uid: str
    renew_time: str
    """Only compared with the last one."""
    version: str
    at: Millis
    duration_ms: Millis = 0
    """As the agent wrote it. The agent stops by it, whatever our profile is."""
    fenced: bool = False
    """The agent promises to stop its pods when it cannot renew."""


class Heartbeats:
    """`since`: all renewals were seen since then; None: they are not seen, and no node is judged."""

    __slots__ = ("_absent", "_heard", "_leases", "_taken", "_up", "finished", "profile", "since", "stranded")

    def __init__(self, profile: NodeProfile) -> None:
        self.profile = profile
        self.since: Millis | None = None
        self.finished = 0
        """The number of finished pods."""
        self.stranded = 0
        """The number of pods whose deletion was begun and not ended."""
        self._leases: dict[str, ObservedLease] = {}
        self._heard: dict[str, Millis] = {}
        self._absent: dict[str, Millis] = {}
        self._taken: dict[str, Millis] = {}
        self._up: dict[str, None] = {}

    # -- updates
    # ---------------------------------------------------------------------------------------------------------

    def begin(self, now: Millis) -> None:
        """Renewals are seen from now on, also after an interruption."""
        self.since = now

    def end(self) -> None:
        self.since = None

    def lease_seen(
        self,
        node: str,
        uid: str,
        renew_time: str,
        version: str,
        now: Millis,
        duration_ms: Millis = 0,
        *,
        fenced: bool = False,
    ) -> bool:
        """Whether the node is due sooner than before, because its lease is shorter now."""
        known = self._leases.get(node)
        if known is None or known.renew_time != renew_time:
            self._leases[node] = ObservedLease(uid, renew_time, version, now, duration_ms, fenced)
            self._heard[node] = now
        else:
            longest_ms = max(duration_ms, known.duration_ms)
            self._leases[node] = ObservedLease(uid, renew_time, version, known.at, longest_ms, fenced)
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
            # A future time is not ours; it must not block the zone for ever.
            zone, taken = zone_of(new), min(taken, now)
            self._taken[zone] = max(self._taken.get(zone, taken), taken)

    def node_gone(self, old: ManagedNode, now: Millis) -> None:
        self._heard.pop(old.metadata.name, None)
        self._absent[old.metadata.name] = now
        self._count(old, None, now)

    def node_missed(self, node: str, now: Millis) -> None:
        """A pod is bound to a node that does not exist."""
        self._absent.setdefault(node, now)

    def _count(self, old: ManagedNode | None, new: ManagedNode | None, now: Millis) -> None:
        had = self.up
        if old is not None:
            self._up.pop(old.metadata.name, None)
        if new is not None and _is_one_up(new):
            self._up[new.metadata.name] = None
        if not had and self.up and self.since is not None:
            # All nodes were lost, so we were cut off, not they: the others may need time as well.
            self.since = now

    # -- read ----------------------------------------------------------------------------------------------------------

    @property
    def up(self) -> int:
        """The number of nodes that are stored as ready."""
        return len(self._up)

    def somebody_is_up(self, now: Millis) -> bool:
        """Whether a node is ready and not silent."""
        return any(not self.is_silent(name, now, self.profile.silent_ms) for name in self._up)

    def last(self, node: str) -> Millis | None:
        """When the node was last heard from; None: unknown."""
        since = self.since
        if since is None:
            return None
        heard = self._heard.get(node, since)
        return max(since, heard)

    def is_silent(self, node: str, now: Millis, patience: Millis) -> bool:
        last = self.last(node)
        return last is not None and last + patience < now

    def silent_at(self, node: str, patience: Millis) -> Millis | None:
        """When the node will have been silent for `patience`; None: unknown.

        Not before its agent has stopped by its own lease. Add 1 ms, because both clock readings are rounded.
        """
        last = self.last(node)
        return None if last is None else last + max(patience, self.waits_ms(node)) + 1

    def waits_ms(self, node: str) -> Millis:
        """How long after its last heartbeat the node may still run pods, by its own lease; 0: no lease."""
        lease = self._leases.get(node)
        return 0 if lease is None else controller_waits_ms(lease.duration_ms)

    def lease_over_at(self, node: str) -> Millis | None:
        """When the agent has stopped its pods if it does not renew; None: no lease."""
        lease = self._leases.get(node)
        if lease is None:
            return None
        return max(lease.at, self.since or lease.at) + controller_waits_ms(lease.duration_ms) + 1

    def stopped_at(self, node: str) -> Millis | None:
        """When the node has stopped its pods by its agent's promise, if it does not renew; None: no promise."""
        lease = self._leases.get(node)
        return None if lease is None or not lease.fenced else self.lease_over_at(node)

    def lease_version(self, node: str) -> LeaseVersion:
        lease = self._leases.get(node)
        return LeaseVersion(node, "" if lease is None else lease.version)

    def absent_since(self, node: str) -> Millis | None:
        """Since when the node is gone; None: unknown."""
        at = self._absent.get(node)
        return None if at is None or self.since is None else max(at, self.since)

    @property
    def may_give_up_at(self) -> Millis | None:
        """The end of the first grace period, before which no node is given up."""
        return None if self.since is None else self.since + self.profile.grace_ms

    def last_given_up(self, zone: str) -> Millis | None:
        """When a node of this zone was last given up; None: not while we watched."""
        return self._taken.get(zone)

    def leases(self) -> Iterator[tuple[str, ObservedLease]]:
        """By node name."""
        return iter(sorted(self._leases.items()))


def _is_one_up(node: ManagedNode | None) -> bool:
    return node is not None and counts(node) and is_up(node)


def _heartbeat(node: ManagedNode) -> str | None:
    report = ready_report(node)
    return None if report is None else report.last_heartbeat_time
