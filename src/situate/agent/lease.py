"""The lease of the agent's node: acquired once, in a new term, and renewed while the agent runs.

A renewal also acknowledges the version of the node's snapshot, so an acknowledgement is an early renewal. If the lease
cannot be renewed in time, the fence closes (see `fence`) and nothing may run here. If another agent acquires the lease,
this agent ends. An agent that takes the lease from another waits until that one must have stopped. The fence is also on
disk, for the next agent and for the shims, which obey it when there is no agent.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from situate.agent.clock import Clock
from situate.agent.control_plane import AcquiredLease, ControlPlane, ControlPlaneError, LeaseLostError, LeaseRenewal
from situate.agent.desired_state import NodeConfiguration
from situate.agent.fence import Fence
from situate.core.reconcile.nodes.fencing import STOP_MS, controller_waits_ms
from situate.core.reconcile.nodes.reports import AgentReport
from situate.loop.logs import Log

FENCE: Final = "fence"
"""The file with the time until which pods may run here."""
ACK_S: Final = 0.1
"""Versions of this time are acknowledged together."""
RETRY_S: Final = 1.0

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    node: str
    directory: Path
    boot: str
    """The boot ID: monotonic times of another boot mean nothing."""
    fenced: bool = True
    """Whether the node stops its pods when it cannot renew its lease."""


class NodeLease:
    """`run` it until cancelled. It raises LeaseLostError when another agent has the lease."""

    def __init__(
        self,
        control_plane: ControlPlane,
        place: LeaseSettings,
        clock: Clock,
        configuration: NodeConfiguration,
        changed: Callable[[str], None],
    ) -> None:
        """`changed` is called with a message when the fence closes or opens."""
        self.held = asyncio.Event()
        """The agent has the lease, and a term."""
        self.term = 0
        self._control_plane = control_plane
        self._place = place
        self._clock = clock
        self._configuration = configuration
        self._changed = changed
        self._number = 0
        self._last_term = 0
        self._alone_at = float("-inf")
        """When no other agent can run this node's pods any more."""
        self._acknowledged = 0
        self._due = asyncio.Event()
        self._fence_moved = asyncio.Event()
        """The fence closes or opens at another time than before."""
        self._pods_known = False
        """The checkpoint has the pods that were listed since the fence opened. On disk, for the next agent."""
        self._fence = self._last_fence()
        self._was_closed = self.is_closed()
        self._pods_known = self._pods_known and not self._was_closed
        self.unbroken = not place.fenced or self._pods_known
        """No other node can have been given the pods of the checkpoint."""

    # -- interface ---------------------------------------------------------------------------------------------------

    def is_closed(self) -> bool:
        now = self._clock.monotonic()
        return self._place.fenced and (now < self._alone_at or self._fence.is_closed(now))

    def next_report(self) -> AgentReport | None:
        """None: there is no term yet."""
        if not self.term:
            return None
        self._number += 1
        return AgentReport(self.term, self._number)

    def acknowledge(self, version: int) -> None:
        """The agent has saved this version of the snapshot."""
        if version > self._acknowledged:
            self._acknowledged = version
            self._due.set()

    def pods_saved(self) -> None:
        """The checkpoint has the pods that were listed since the fence opened."""
        if not self._pods_known and not self.is_closed():
            self._pods_known = True
            self._note_fence()

    def configure(self, configuration: NodeConfiguration) -> None:
        if configuration != self._configuration:
            _log.info(
                "The lease configuration changed", seconds=configuration.lease_duration_seconds, node=self._place.node
            )
            self._configuration = configuration
            self._due.set()

    # -- renewal -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep())
            if self._place.fenced:
                group.create_task(self._watch_fence())

    async def _keep(self) -> None:
        await self._take()
        while True:
            await self._rest(self._configuration.renew_interval_seconds)
            self._due.clear()
            await self._renew()

    async def _take(self) -> None:
        while True:
            sent_at, lease_s = self._clock.monotonic(), self._configuration.lease_duration_seconds
            self._sent(lease_s)
            try:
                taken = await self._control_plane.acquire_lease(
                    self._place.node, lease_s, self._last_term + 1, fenced=self._place.fenced
                )
            except ControlPlaneError as error:
                _log.warning("Cannot acquire the lease; retrying", err=str(error))
                await self._clock.sleep(RETRY_S)
                continue
            self._have(taken)
            self._accepted(sent_at, lease_s)
            self.held.set()
            return

    def _have(self, taken: AcquiredLease) -> None:
        self.term = taken.term
        if self._place.fenced and taken.before not in (0, self._last_term):
            wait_s = controller_waits_ms(taken.lease_s * 1_000) / 1_000
            _log.warning("Another agent had this node; waiting until it must have stopped", seconds=wait_s)
            self._alone_at = self._clock.monotonic() + wait_s

    async def _renew(self) -> None:
        sent_at, lease_s = self._clock.monotonic(), self._configuration.lease_duration_seconds
        # Before this agent is alone, another one may run pods here by a lease of its own.
        fenced = self._place.fenced and sent_at >= self._alone_at
        renewal = LeaseRenewal(self.term, lease_s, self._acknowledged, fenced)
        self._sent(lease_s)
        try:
            await self._control_plane.renew_lease(self._place.node, renewal)
        except LeaseLostError:
            raise
        except ControlPlaneError as error:
            _log.warning("Cannot renew the lease", node=self._place.node, err=str(error))
            await self._clock.sleep(RETRY_S)
            self._due.set()
            return
        self._accepted(sent_at, lease_s)

    async def _rest(self, seconds: float) -> None:
        """Wait for the next renewal, or a moment after something is to be acknowledged."""
        if await self._comes_within(self._due, seconds):
            await self._clock.sleep(ACK_S)

    async def _comes_within(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for the event, but not longer than this."""
        comes, end = asyncio.ensure_future(event.wait()), asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait([comes, end], return_when=asyncio.FIRST_COMPLETED)
            return not end.done()
        finally:
            comes.cancel()
            end.cancel()

    # -- the fence ---------------------------------------------------------------------------------------------------

    def _sent(self, lease_s: int) -> None:
        """A shorter lease counts from now on, also for the shims: its response may be lost."""
        if lease_s < self._fence.lease_s:
            self._fence.sent(lease_s)
            self._note_fence()
            self._fence_moved.set()

    def _accepted(self, sent_at: float, lease_s: int) -> None:
        self._look_at_fence()  # it may have closed while this process did not run
        self._fence.accepted(sent_at, lease_s)
        self._note_fence()
        self._look_at_fence()
        self._fence_moved.set()

    async def _watch_fence(self) -> None:
        while True:
            self._fence_moved.clear()
            now = self._clock.monotonic()
            moments = [at for at in (self._fence.closes_at, self._alone_at) if at > now]
            await self._comes_within(self._fence_moved, min(moments, default=now + RETRY_S) - now)
            self._look_at_fence()

    def _look_at_fence(self) -> None:
        closed = self.is_closed()
        if closed != self._was_closed:
            self._was_closed = closed
            self._pods_known = self._pods_known and not closed
            self._changed("The lease has expired: stopping all pods" if closed else "Pods may run here again")

    def _note_fence(self) -> None:
        """Replace the file atomically, because shims read it."""
        if not self._place.fenced:
            return
        fence = self._fence
        body = {
            "term": self.term or self._last_term,
            "boot": self._place.boot,
            "renewed": fence.renewed_at,
            "lease_s": fence.lease_s,
            "pods_known": self._pods_known,
            "dead_by": fence.closes_at + STOP_MS / 1_000,
        }
        path = self._place.directory / FENCE
        made = path.with_name(f"{FENCE}.new")
        with suppress(OSError):  # the shims stop their containers when the old time is over, which is safe
            made.write_text(json.dumps(body))
            made.replace(path)

    def _last_fence(self) -> Fence:
        """The fence that the last agent left. Without a file it is open, because nothing can run yet."""
        lease_s, now = self._configuration.lease_duration_seconds, self._clock.monotonic()
        try:
            found: dict[str, Any] = json.loads((self._place.directory / FENCE).read_text())
            renewed_at, found_s = float(found["renewed"]), int(found["lease_s"])
            self._last_term = int(found["term"])
        except FileNotFoundError:
            return Fence(now, lease_s)
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("Cannot read the fence file", err=str(error))
            return Fence(float("-inf"), lease_s)
        if found.get("boot") != self._place.boot:
            return Fence(float("-inf"), lease_s)
        self._pods_known = found.get("pods_known") is True
        return Fence(min(renewed_at, now), min(found_s, lease_s))
