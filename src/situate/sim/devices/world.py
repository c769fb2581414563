"""The devices of a world: about a third of the worlds have some. All is drawn from random sources of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from situate.sim.devices.checker import DeviceChecker, SchedulerLife
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.controller import ClaimController
from situate.sim.devices.drivers import Drivers
from situate.sim.devices.users import DeviceUsers
from situate.sim.faults import Faults
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline

SHARE: Final = 0.3
"""The share of worlds with devices."""


@dataclass(frozen=True, slots=True)
class DeviceWorld:
    server: ClaimServer
    users: DeviceUsers
    drivers: Drivers
    controller: ClaimController
    checker: DeviceChecker

    def begin(self) -> None:
        self.drivers.begin()
        self.users.begin()
        self.controller.begin()

    def set_faults(self, faults: Faults) -> None:
        self.controller.faults = faults

    def calm_down(self) -> None:
        self.users.stopped = self.drivers.stopped = True


def draw_devices(
    timeline: Timeline,
    rng: Callable[[str], Random],
    store: ObjectStore,
    faults: Faults,
    writer: Callable[[], SchedulerLife | None],
    wrong: Callable[[str, list[str]], None],
) -> DeviceWorld:
    server = ClaimServer(timeline, store)
    users = DeviceUsers(timeline, rng("device users"), server, faults)
    drivers = Drivers(timeline, rng("drivers"), store, server, rng("drivers that give up"))
    controller = ClaimController(timeline, rng("claim controller"), store, server, users.templates)
    checker = DeviceChecker(timeline, store, server, writer, wrong)
    checker.guarded = rng("claim server").random() < 0.5
    store.heard_by += [checker.hear, drivers.hear]
    return DeviceWorld(server, users, drivers, controller, checker)
