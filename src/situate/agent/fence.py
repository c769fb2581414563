"""Until when an agent may run pods without a word from the control plane. Pure; in seconds of the agent's clock.

The numbers are those of core/reconcile/nodes/fencing.py. It counts from when the last renewal that was accepted was
*sent*. A renewal that was sent and not answered may have been accepted: if it was for a shorter lease, that counts at
once; if for a longer one, only when it is answered.
"""

from __future__ import annotations

from situate.core.reconcile.nodes.fencing import agent_stops_ms

__all__ = ["Fence"]


class Fence:
    """Closed: nothing may run here."""

    def __init__(self, renewed_at: float, lease_s: int) -> None:
        self.renewed_at = renewed_at
        self.lease_s = lease_s
        """The shortest that the control plane may count by."""

    @property
    def closes_at(self) -> float:
        return self.renewed_at + agent_stops_ms(self.lease_s * 1_000) / 1_000

    def is_closed(self, now: float) -> bool:
        return now >= self.closes_at

    def sent(self, lease_s: int) -> None:
        """A renewal is on its way."""
        self.lease_s = min(self.lease_s, lease_s)

    def accepted(self, sent_at: float, lease_s: int) -> None:
        """One that was sent then."""
        if sent_at >= self.renewed_at:
            self.renewed_at, self.lease_s = sent_at, lease_s
