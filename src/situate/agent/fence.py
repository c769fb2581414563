"""Until when an agent may run pods without renewing its lease. Pure; in seconds of the agent's clock.

The durations are those of core/reconcile/nodes/fencing.py. Time counts from when the last accepted renewal was *sent*.
A renewal without a response may have been accepted: one for a shorter lease counts at once, one for a longer lease only
when the server has accepted it.
"""

from __future__ import annotations

from situate.core.reconcile.nodes.fencing import agent_stops_ms


class Fence:
    """While the fence is closed, nothing may run on the node."""

    def __init__(self, renewed_at: float, lease_s: int) -> None:
        self.renewed_at = renewed_at
        self.lease_s = lease_s
        """The shortest duration that the control plane may count with."""

    @property
    def closes_at(self) -> float:
        return self.renewed_at + agent_stops_ms(self.lease_s * 1_000) / 1_000

    def is_closed(self, now: float) -> bool:
        return now >= self.closes_at

    def sent(self, lease_s: int) -> None:
        self.lease_s = min(self.lease_s, lease_s)

    def accepted(self, sent_at: float, lease_s: int) -> None:
        if sent_at >= self.renewed_at:
            self.renewed_at, self.lease_s = sent_at, lease_s
