"""Drivers: publish the pools of nodes and pools for several nodes, replace them, withdraw them, and make devices ready.

A pool is replaced slice by slice, so for a while it is incomplete, or two generations of it exist. Some drivers give
up in the middle: the slices of the new generation go again, and the one before counts as before.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from msgspec.structs import replace

from situate.core.model.devices import AllocatedDeviceStatus, DeviceClass, DeviceCondition, ResourceClaim, ResourceSlice
from situate.core.model.meta import key_of
from situate.core.model.node import Node
from situate.sim.devices.claim_server import ClaimServer
from situate.sim.devices.drawing import (
    BROKEN,
    CLASSES,
    GPU_DRIVER,
    NIC_DRIVER,
    READY,
    DevicePoolPlan,
    Reach,
    changed_pool,
    draw_pool,
    make_class,
)
from situate.sim.store import ObjectStore, StoreEvent
from situate.sim.timeline import Timeline
from situate.sim.workload import ZONES

SLICE_MS: Final = (0, 400)
"""The time between two slices of a pool."""
STUCK_MS: Final = (5_000, 40_000)
"""How long a driver may stop in the middle, or wait before it gives up."""
ACT_MS: Final = (300, 4_000)
WIDE: Final[tuple[Reach, ...]] = ("zone", "all", "each")
READY_MS: Final = (50, 8_000)


class Drivers:
    """Runs until `stopped`; then it only finishes what it began, and makes devices ready."""

    def __init__(
        self, timeline: Timeline, rng: Random, store: ObjectStore, server: ClaimServer, giving_up: Random
    ) -> None:
        """`giving_up`: the random source of which replacements are given up."""
        self.stopped = False
        self._timeline = timeline
        self._rng = rng
        self._store = store
        self._server = server
        self._pools: dict[tuple[str, str], DevicePoolPlan] = {}
        self._made = 0
        self._generations: dict[tuple[str, str], int] = {}
        self._busy: dict[tuple[str, str], None] = {}
        self._equipped = rng.uniform(0.4, 1.0)
        """The share of nodes with devices."""
        self._late = rng.choice((0.0, 0.0, 0.2))
        self._fails = rng.choice((0.0, 0.3))
        self._stuck = rng.choice((0.0, 0.1))
        self._changes = rng.choice((0.0, 0.3, 1.0))
        self._extended = rng.random() < 0.6
        self._giving_up = giving_up
        self._gives_up = giving_up.choice((0.0, 0.2))
        self._told: dict[str, None] = {}
        """The claims whose late devices were noticed."""

    def begin(self) -> None:
        for name in CLASSES:
            self._store.put_other(make_class(name, extended=self._extended))
        for number in range(self._rng.choice((0, 0, 1, 2))):
            reach: Reach = self._rng.choice(WIDE)
            plan = draw_pool(
                self._rng,
                NIC_DRIVER,
                f"net{number}",
                reach,
                self._rng.choice(ZONES),
                number=self._next_number(),
                late=self._late,
            )
            self._publish(plan)
        self._timeline.after(self._rng.randint(*ACT_MS), self._act)

    def hear(self, written: StoreEvent) -> None:
        match written.item:
            case Node() as node:
                self._node_written(node.metadata.name, gone=written.gone)
            case ResourceClaim() as claim if not written.gone and claim.status.allocation is not None:
                self._allocated(claim)
            case _:
                pass

    def _next_number(self) -> int:
        self._made += 1
        return self._made

    # -- pools ---------------------------------------------------------------------------------------------------

    def _node_written(self, node: str, *, gone: bool) -> None:
        driver = GPU_DRIVER if self._rng.random() < 0.85 else NIC_DRIVER
        known = [one for one in ((GPU_DRIVER, node), (NIC_DRIVER, node)) if one in self._pools]
        if gone:
            for one in known:
                if self._rng.random() < 0.8:  # or it stays for the next node of that name
                    self._timeline.after(self._rng.randint(0, 3_000), self._withdraw, one)
        elif not known and (driver, node) not in self._busy and self._rng.random() < self._equipped:
            plan = draw_pool(self._rng, driver, node, "node", node, number=self._next_number(), late=self._late)
            self._pools[driver, node] = plan
            self._timeline.after(self._rng.choice((0, 50, 2_000)), self._publish, plan)

    def _publish(self, plan: DevicePoolPlan) -> None:
        """Write the slices of a new generation one by one, and delete those of the one before."""
        pool = (plan.driver, plan.name)
        before = self._pools.get(pool)
        self._pools[pool] = plan
        self._busy[pool] = None
        generation = self._generations[pool] = self._generations.get(pool, 0) + 1
        old = self._slices(pool)
        steps: list[Callable[[], None]] = [_later(self._store.put_other, one) for one in plan.slices(generation)]
        removals: list[Callable[[], None]] = [_later(self._store.drop_other, one) for one in old]
        removes_first = self._rng.random() < 0.3
        if before is not None and old and not removes_first and self._giving_up.random() < self._gives_up:
            written = self._giving_up.randint(1, len(steps))
            undone = [_later(self._store.drop_other, one) for one in plan.slices(generation)[:written]]
            undo = _later(self._go_on, pool, [*undone, _later(self._back_to, before, generation - 1)])
            later = _later(self._timeline.after, self._giving_up.randint(*STUCK_MS), undo)
            self._go_on(pool, steps[:written], later)
            return
        self._go_on(pool, [*removals, *steps] if removes_first else [*steps, *removals])

    def _back_to(self, plan: DevicePoolPlan, generation: int) -> None:
        pool = (plan.driver, plan.name)
        self._pools[pool], self._generations[pool] = plan, generation

    def _go_on(
        self, pool: tuple[str, str], steps: list[Callable[[], None]], then: Callable[[], None] | None = None
    ) -> None:
        if not steps:
            if then is None:
                self._busy.pop(pool, None)
            else:
                then()
            return
        steps[0]()
        stuck = not self.stopped and self._rng.random() < self._stuck
        self._timeline.after(self._rng.randint(*(STUCK_MS if stuck else SLICE_MS)), self._go_on, pool, steps[1:], then)

    def _withdraw(self, pool: tuple[str, str]) -> None:
        if pool in self._busy:
            return
        self._pools.pop(pool, None)
        for one in self._slices(pool):
            self._store.drop_other(one)

    def _slices(self, pool: tuple[str, str]) -> list[ResourceSlice]:
        return [
            one
            for one in self._store.others.values()
            if isinstance(one, ResourceSlice) and (one.spec.driver, one.spec.pool.name) == pool
        ]

    # -- changes -------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        if self.stopped:
            return
        free = [one for one in self._pools if one not in self._busy]
        if free and self._rng.random() < self._changes:
            pool = self._rng.choice(free)
            match self._rng.choice(("change", "change", "touch", "withdraw", "class")):
                case "change":
                    self._publish(changed_pool(self._rng, self._pools[pool]))
                case "touch":
                    self._update(pool)
                case "withdraw":
                    plan = self._pools[pool]
                    self._withdraw(pool)
                    self._timeline.after(self._rng.randint(500, 20_000), self._come_back, plan)
                case _:
                    self._drop_class(self._rng.choice(tuple(CLASSES)))
        self._timeline.after(self._rng.randint(*ACT_MS), self._act)

    def _update(self, pool: tuple[str, str]) -> None:
        """Change a pool in place, in the same generation."""
        plan = self._pools[pool]
        after = changed_pool(self._rng, plan)
        if pool not in self._generations or after.parts != plan.parts or not self._slices(pool):
            return
        self._pools[pool] = after
        for one in after.slices(self._generations[pool]):
            if self._store.others.get(("ResourceSlice", one.metadata.name)) != one:
                self._store.put_other(one)

    def _come_back(self, plan: DevicePoolPlan) -> None:
        there = plan.reach != "node" or plan.where in self._store.nodes
        if there and (plan.driver, plan.name) not in self._pools and not self.stopped:
            self._publish(plan)

    def _drop_class(self, name: str) -> None:
        found = self._store.others.get(("DeviceClass", name))
        if isinstance(found, DeviceClass):
            self._store.drop_other(found)
            self._timeline.after(self._rng.randint(0, 10_000), self._put_class, name)

    def _put_class(self, name: str) -> None:
        if ("DeviceClass", name) not in self._store.others:
            self._store.put_other(make_class(name, extended=self._extended))

    # -- devices that become ready later -------------------------------------------------------------------------

    def _allocated(self, claim: ResourceClaim) -> None:
        allocation = claim.status.allocation
        waits = allocation is not None and any(one.binding_conditions for one in allocation.devices.results)
        if waits and not claim.status.devices and claim.metadata.uid not in self._told:
            self._told[claim.metadata.uid] = None
            self._timeline.after(self._rng.randint(*READY_MS), self._report, key_of(claim.metadata), claim.metadata.uid)

    def _report(self, key: str, uid: str) -> None:
        self._told.pop(uid, None)
        claim = self._server.get(key)
        if claim is None or claim.metadata.uid != uid or claim.status.allocation is None:
            return
        fails = not self.stopped and self._rng.random() < self._fails
        said = DeviceCondition(type=BROKEN if fails else READY, status="True", reason="Driver", message="as drawn")
        devices = tuple(
            AllocatedDeviceStatus(driver=one.driver, pool=one.pool, device=one.device, conditions=(said,))
            for one in claim.status.allocation.devices.results
            if one.binding_conditions
        )
        self._server.write_status(claim, replace(claim.status, devices=devices))


def _later(act: Callable[..., None], *arguments: object) -> Callable[[], None]:
    return lambda: act(*arguments)
