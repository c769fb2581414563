"""Who waits how long when a node falls silent, so that no pod runs on two nodes. The only place for these numbers.

A node's agent renews a lease. If it cannot, nobody can tell it to stop, so it stops by itself; and nobody may run its
pods elsewhere before it has. The two cannot talk and their clocks are not the same, but both may be trusted to run no
more than DRIFT too fast or too slow. With a lease of L:

- The agent counts from when it *sent* the last renewal that was accepted, and has ended all its pods by L x (1 - DRIFT)
  on its clock: if that is slow, L has really passed.
- The controller counts from when it *saw* that renewal, which is later, and does nothing before L x (1 + DRIFT) on its
  clock: if that is fast, L has really passed.

So the agent has always stopped first. Times that are written in a lease are not compared with anything but each other.
A controller that begins anew, or that did not run for a while, counts as if it had seen every renewal just now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.model.refs import Millis
from situate.core.reconcile.api_values import SECOND

__all__ = ["DRIFT", "FAST", "KUBERNETES", "PROFILES", "STOP_MS", "NodeProfile", "agent_stops_ms", "controller_waits_ms"]

DRIFT: Final = 0.2
"""By which part of itself a clock may be wrong about how long something took."""
STOP_MS: Final[Millis] = 2 * SECOND
"""How long an agent that stops by itself gives its pods before it kills them. No grace that a pod asks for is longer:
that time is not there."""


def agent_stops_ms(lease_ms: Millis) -> Millis:
    """From when on an agent without a renewal of such a lease must end its pods, by its own clock."""
    return max(0, int(lease_ms * (1 - DRIFT)) - STOP_MS)


def controller_waits_ms(lease_ms: Millis) -> Millis:
    """For how long after a renewal of such a lease was seen nobody else may run the node's pods, by whoever saw it."""
    return int(lease_ms * (1 + DRIFT))


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """All that can be set about nodes. Times in milliseconds, rates in nodes a second."""

    name: str
    lease_ms: Millis
    """Written into the lease by the agent."""
    renew_ms: Millis
    """How often the agent renews it."""
    grace_ms: Millis
    """After so long without a renewal a node's state is unknown: at least `controller_waits_ms`."""
    startup_ms: Millis
    """The same for a node that has never said how it is."""
    toleration_s: int
    """For how long a pod that says nothing about it stays on a node that is lost."""
    rate: float = 0.1
    """How many nodes of a zone may be given up in a second,"""
    reduced_rate: float = 0.01
    """while most of it is unhealthy,"""
    large_zone: int = 50
    """if it has more nodes than this; else none."""
    unhealthy_part: float = 0.55
    unhealthy_least: int = 3
    """What most is: this part of a zone's nodes, and so many."""
    absent_ms: Millis = 40 * SECOND
    """How long a node must not exist before what it left behind is cleared away."""
    finished_pods: int = 12_500
    """How many pods that have ended are kept; the oldest go first."""

    @property
    def silent_ms(self) -> Millis:
        """A node that was not heard of for so long counts as unhealthy when it is asked how its zone does, though its
        state is not unknown yet: if all fall silent at once, nobody is given up for having been the first."""
        return self.grace_ms * 3 // 5


KUBERNETES: Final = NodeProfile(
    name="kubernetes",
    lease_ms=40 * SECOND,
    renew_ms=10 * SECOND,
    grace_ms=50 * SECOND,
    startup_ms=60 * SECOND,
    toleration_s=300,
)
"""Kubernetes' own numbers. The grace is more than the lease and the drift, which are 48 s."""
FAST: Final = NodeProfile(
    name="fast",
    lease_ms=15 * SECOND,
    renew_ms=5 * SECOND,
    grace_ms=18 * SECOND,
    startup_ms=30 * SECOND,
    toleration_s=5,
)
"""A lost node's pods are bound anew within 30 s: 18 until its state is unknown, 5 that they tolerate that, and the rest
to make and place others."""
PROFILES: Final = {one.name: one for one in (KUBERNETES, FAST)}
