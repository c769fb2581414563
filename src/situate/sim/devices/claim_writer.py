"""Writes the claims of one scheduler's pods: the live scheduler's ClaimBinder, in virtual time, until it is killed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, cast

from situate.core.changes import ClaimsBound, ClaimsFailed
from situate.core.effects import BindClaims, ReleaseClaim, UnreserveClaims
from situate.core.engine.engine import Engine
from situate.loop.scheduling.claims import ClaimBinder
from situate.loop.scheduling.view import EngineView
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.port import SimulatedClaimPort
from situate.sim.faults import Faults
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline
from situate.sim.timeline_loop import TimelineLoop

if TYPE_CHECKING:
    from situate.loop.scheduling.port import SchedulingPort


class ClaimWriter:
    """For one scheduler, from one start to the next."""

    def __init__(
        self,
        timeline: Timeline,
        rng: Random,
        store: ObjectStore,
        server: ClaimServer,
        engine: Engine,
        answer: Callable[[ClaimsBound | ClaimsFailed], None],
        salt: str,
    ) -> None:
        self.writes = False
        """Whether the current write is one of this scheduler."""
        self._loop = TimelineLoop(timeline)
        self._port = SimulatedClaimPort(timeline, rng, store, server, self._set_writes)
        self._binder = self._loop.call(
            lambda: ClaimBinder(
                cast("SchedulingPort", self._port),
                EngineView(engine),
                answer,
                lambda: True,
                lambda: timeline.now * 1_000_000,
                waits=lambda _: None,
                salt=salt,
                timeouts_s={name: profile.devices_ms / 1_000 for name, profile in engine.profiles.items()},
            )
        )

    def _set_writes(self, writes: bool) -> None:
        self.writes = writes

    def set_faults(self, faults: Faults) -> None:
        self._port.faults = faults

    def perform(self, effect: BindClaims | UnreserveClaims | ReleaseClaim) -> None:
        match effect:
            case BindClaims():
                self._loop.call(partial(self._binder.bind, effect))
            case UnreserveClaims():
                self._loop.call(partial(self._binder.unreserve, effect))
            case ReleaseClaim():
                self._loop.call(partial(self._binder.release, effect))

    def stepped(self) -> None:
        """The engine has made a step."""
        self._loop.call(self._binder.look)

    def kill(self) -> None:
        self._port.killed = True
        self._loop.kill()
