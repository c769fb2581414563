"""A node that is behind its snapshot for too long: a condition, an event, a metric; and the same when it is not."""

import asyncio
import re
from typing import Any

import pytest

from server.placing.world import World, tell
from situate.agent.control_plane import LeaseRenewal
from situate.agent.control_plane_local import LocalControlPlane
from situate.server.errors import StatusError
from situate.server.placing import snapshot_lag
from situate.server.placing.lag_tracker import LagTracker
from situate.server.placing.snapshot_lag import LAGGING, SnapshotLag
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Target, WriteOptions
from situate.server.resources import BY_KIND

EVENTS = BY_KIND["v1", "Event"]
LEASES = BY_KIND["coordination.k8s.io/v1", "Lease"]


def condition(world: World) -> dict[str, str] | None:
    conditions = world.read_node("n1").get("status", {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == LAGGING), None)


def metric(lag: SnapshotLag, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", lag.render().decode(), re.MULTILINE)
    assert found
    return float(found[1])


async def until_status(world: World, status: str) -> None:
    while (condition(world) or {}).get("status") != status:
        await asyncio.sleep(0.01)


def test_a_node_that_does_not_acknowledge_is_said_to_lag_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.02)

    async def on(world: World) -> None:
        await world.node()
        plane, lag = LocalControlPlane(world.registry), SnapshotLag(world.registry, 0.05)
        term = (await plane.acquire_lease("n1", 40)).term
        await plane.renew_lease("n1", LeaseRenewal(term, 40, 1))
        running = asyncio.create_task(lag.run())
        await world.pod(nodeName="n1")
        await until_status(world, "True")
        assert metric(lag, "situate_snapshot_lagging_nodes") == 1
        await plane.renew_lease("n1", LeaseRenewal(term, 40, world.registry.cache.revision))
        await until_status(world, "False")
        running.cancel()
        assert metric(lag, "situate_snapshot_lag_seconds_count") >= 1
        assert metric(lag, "situate_snapshot_lag_seconds_sum") >= 0.05
        events = [held.object(EVENTS) for held in (await world.registry.list(Target(EVENTS, "default"))).items]
        assert sorted((one["reason"], one["type"]) for one in events) == [
            ("SnapshotCurrent", "Normal"),
            (LAGGING, "Warning"),
        ]
        assert all(one["involvedObject"]["name"] == "n1" for one in events)

    tell(on)


def test_a_node_that_was_up_to_date_lags_behind_the_next_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.01)

    async def on(world: World) -> None:
        await world.node()
        await world.pod("first", nodeName="n1")
        plane, lag = LocalControlPlane(world.registry), SnapshotLag(world.registry, 0.02)
        term = (await plane.acquire_lease("n1", 40)).term
        await plane.renew_lease("n1", LeaseRenewal(term, 40, world.registry.cache.revision))
        running = asyncio.create_task(lag.run())
        await asyncio.sleep(0.1)  # ten looks
        assert condition(world) is None
        await world.pod("second", nodeName="n1")
        async with asyncio.timeout(5):
            await until_status(world, "True")
        running.cancel()

    tell(on)


def test_a_lease_that_cannot_be_used_does_not_keep_the_others_from_being_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.01)
    real = LagTracker.acknowledged

    def acknowledged(self: LagTracker, node: str, *rest: Any) -> Any:
        if node == "odd":
            raise OverflowError("about this node")
        return real(self, node, *rest)

    monkeypatch.setattr(LagTracker, "acknowledged", acknowledged)

    async def on(world: World) -> None:
        await world.node()
        plane, lag = LocalControlPlane(world.registry), SnapshotLag(world.registry, 0.02)
        running = asyncio.create_task(lag.run())
        for name in ("odd", "n1"):
            term = (await plane.acquire_lease(name, 40)).term
            await plane.renew_lease(name, LeaseRenewal(term, 40, 1))
        await world.pod(nodeName="n1")
        async with asyncio.timeout(5):
            await until_status(world, "True")
        assert not running.done()
        running.cancel()

    tell(on)


@pytest.mark.parametrize("code, again", [(503, True), (404, False)], ids=["refused", "gone"])
def test_a_mark_that_was_refused_is_tried_again_and_that_of_a_node_that_is_gone_is_not(
    code: int, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.01)

    async def on(world: World) -> None:
        await world.node()
        plane, lag = LocalControlPlane(world.registry), SnapshotLag(world.registry, 0.02)
        modify, tries = world.registry.modify, 0

        async def refused(target: Target, *arguments: Any, **named: Any) -> StoredObject:
            nonlocal tries
            if target.resource.plural == "nodes":
                tries += 1
                if tries == 1:
                    raise StatusError(code, "", "not now")
            return await modify(target, *arguments, **named)

        monkeypatch.setattr(world.registry, "modify", refused)
        term = (await plane.acquire_lease("n1", 40)).term
        await plane.renew_lease("n1", LeaseRenewal(term, 40, 1))
        running = asyncio.create_task(lag.run())
        await world.pod(nodeName="n1")
        while not tries:
            await asyncio.sleep(0.01)
        if again:
            await until_status(world, "True")
        else:
            await asyncio.sleep(0.1)  # ten more looks
            assert condition(world) is None
        assert tries == (2 if again else 1)
        running.cancel()

    tell(on)


def test_a_server_that_begins_takes_back_what_another_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.02)

    async def on(world: World) -> None:
        await world.node()
        plane = LocalControlPlane(world.registry)
        said = {"conditions": [{"type": LAGGING, "status": "True", "reason": "r", "message": "m"}]}
        await plane.register_node({**world.read_node("n1"), "status": said})
        running = asyncio.create_task(SnapshotLag(world.registry).run())
        await until_status(world, "False")
        running.cancel()

    tell(on)


def test_a_node_of_another_make_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.01)

    async def on(world: World) -> None:
        await world.node()
        lag = SnapshotLag(world.registry, 0.01)
        running = asyncio.create_task(lag.run())
        await world.pod(nodeName="n1")
        await asyncio.sleep(0.1)
        running.cancel()
        assert condition(world) is None
        assert metric(lag, "situate_snapshot_lag_seconds_count") == 0

    tell(on)


@pytest.mark.parametrize("said", ["9" * 5_000, "\u0663", "-1", "1_0"])
def test_an_acknowledgement_that_is_no_number_is_none(said: str) -> None:
    """Any node may write its lease."""

    async def on(world: World) -> None:
        await world.node()
        plane, lag = LocalControlPlane(world.registry), SnapshotLag(world.registry, 0.05)
        term = (await plane.acquire_lease("n1", 40)).term
        await plane.renew_lease("n1", LeaseRenewal(term, 40, 1))
        running = asyncio.create_task(lag.run())
        target = Target(LEASES, "kube-node-lease", "n1")
        patch = {"metadata": {"annotations": {"situate.dev/snapshot-version": said}}}
        await world.registry.patch(target, "merge", patch, SYSTEM, WriteOptions())
        await asyncio.sleep(0.05)
        assert not running.done()
        running.cancel()

    tell(on)


def test_a_snapshot_that_was_there_before_the_nodes_lease_counts_and_stops_to_count_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshot_lag, "LOOK_S", 0.01)

    async def on(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        plane, lag = LocalControlPlane(world.registry), SnapshotLag(world.registry, 0.02)
        running = asyncio.create_task(lag.run())
        await asyncio.sleep(0.05)  # until the watches have told what there is
        term = (await plane.acquire_lease("n1", 40)).term
        await plane.renew_lease("n1", LeaseRenewal(term, 40, 1))
        await until_status(world, "True")
        assert "lastProbeTime" not in (condition(world) or {}), "a condition of a node has none"
        await world.registry.delete(Target(LEASES, "kube-node-lease", "n1"), SYSTEM)
        await until_status(world, "False")
        running.cancel()
        assert metric(lag, "situate_snapshot_lag_seconds_count") == 0

    tell(on)


def test_a_watch_that_is_refused_is_begun_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def on(world: World) -> None:
        attempts: list[str] = []

        async def refused(target: Target, *_: Any) -> Any:
            attempts.append(target.resource.plural)
            await asyncio.sleep(0)
            raise StatusError(503, "", "not now")

        monkeypatch.setattr(world.registry, "watch", refused)
        for pause_s, more in ((3600.0, False), (0.0, True)):
            monkeypatch.setattr(snapshot_lag, "AGAIN_S", pause_s)
            attempts.clear()
            running = asyncio.create_task(SnapshotLag(world.registry).run())
            for _ in range(20):
                await asyncio.sleep(0)
            assert not running.done()
            assert set(attempts) == {"leases", "nodesnapshots"}
            assert (len(attempts) > 2) == more
            running.cancel()

    tell(on)
