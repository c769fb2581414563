"""How long to wait when a node goes silent, so that no pod runs on two nodes. The only place for these numbers.

A node's agent renews a lease. If it cannot, nobody can tell it to stop, so it stops by itself, and nobody may run its
pods elsewhere before. Their clocks differ, but each is trusted to be at most DRIFT too fast or too slow. With a lease
of L:

- The agent counts from when it *sent* the last accepted renewal, and has stopped all pods by L x (1 - DRIFT) on its
  clock: if that is slow, at most L has passed.
- The controller counts from when it *saw* that renewal, which is later, and acts no sooner than L x (1 + DRIFT) on its
  clock: if that is fast, at least L has passed.

So the agent has always stopped first. Times in a lease are compared only with each other. A controller that starts, or
that did not run for a while, counts as if it had seen every renewal just now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND

DRIFT: Final = 0.2
"""The error of a clock, as a share of the measured time."""
PROMISE: Final = "situate.dev/fenced"
"""Annotation of a node's lease: its `renewTime`, if the agent that wrote it stops its pods by the rules above. It is
valid for that renewal only: a kubelet that takes the lease over keeps annotations, and does not promise this."""
STOP_MS: Final[Millis] = 2 * SECOND
"""The grace period of pods when the lease expires. A longer grace period of a pod does not count."""


def agent_stops_ms(lease_ms: Millis) -> Millis:
    """When an agent without a renewal must stop its pods, by its own clock."""
    return max(0, int(lease_ms * (1 - DRIFT)) - STOP_MS)


def controller_waits_ms(lease_ms: Millis) -> Millis:
    """How long after a renewal was seen no other node may run the pods, by the observer's clock."""
    return int(lease_ms * (1 + DRIFT))


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """The settings of the node lifecycle. Times in milliseconds, rates in nodes per second."""

    name: str
    lease_ms: Millis
    """The lease duration that the agent writes."""
    renew_ms: Millis
    """The renew interval."""
    grace_ms: Millis
    """After this time without a renewal the node is Unknown: at least `controller_waits_ms`."""
    startup_ms: Millis
    """The same for a node that has never reported its status."""
    toleration_s: int
    """The default toleration of pods for a lost node."""
    rate: float = 0.1
    """The rate of NoExecute taints in a zone,"""
    reduced_rate: float = 0.01
    """and while most of the zone is unhealthy,"""
    large_zone: int = 50
    """if the zone has more nodes than this; otherwise none."""
    unhealthy_part: float = 0.55
    unhealthy_least: int = 3
    """"Most" is this share of a zone's nodes, and at least this number."""
    absent_ms: Millis = 40 * SECOND
    """How long a node must be gone before its leftovers are deleted."""
    finished_pods: int = 12_500
    """The limit of finished pods; the oldest are deleted first."""

    @property
    def silent_ms(self) -> Millis:
        """After this time without a heartbeat a node counts as unhealthy for its zone, though it is not Unknown yet: if
        all nodes go silent at once, none is tainted for being the first."""
        return self.grace_ms * 3 // 5


KUBERNETES: Final = NodeProfile(
    name="kubernetes",
    lease_ms=40 * SECOND,
    renew_ms=10 * SECOND,
    grace_ms=50 * SECOND,
    startup_ms=60 * SECOND,
    toleration_s=300,
)
"""Kubernetes' defaults. The grace is more than lease and drift, which are 48 s."""
FAST: Final = NodeProfile(
    name="fast",
    lease_ms=15 * SECOND,
    renew_ms=5 * SECOND,
    grace_ms=18 * SECOND,
    startup_ms=30 * SECOND,
    toleration_s=5,
)
"""Pods of a lost node are bound again within 30 s: 18 s until it is Unknown, 5 s toleration, and the rest to create and
place new ones."""
PROFILES: Final = {one.name: one for one in (KUBERNETES, FAST)}
