"""Volumes in every world: made ready for a reserved pod, or undone and answered, once."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from loop.scheduling.storage import SELECTED, Storage
from loop.scheduling.worlds import WORLDS, Opener, PortWorld, play
from situate.core.changes import VolumesBound, VolumesFailed
from situate.core.effects import BindVolumes
from situate.loop.scheduling import pre_bind, volumes
from situate.loop.scheduling.port import BindClaim, ReserveVolume, SelectNode, VolumeOutcome, VolumeWrite
from situate.loop.scheduling.volumes import RUNNING_PREBIND

BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
OTHER = {"namespace": "default", "name": "other", "uid": "u"}
in_both_worlds = pytest.mark.parametrize("opener", WORLDS)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pre_bind, "LOOK_S", 0.01)


def keep_claims_unbound(world: PortWorld) -> None:
    """As in a cluster whose volume controller does nothing."""
    write: Callable[[VolumeWrite], Awaitable[VolumeOutcome]] = world.port.write_volume

    async def write_but_claims(one: VolumeWrite) -> VolumeOutcome:
        return VolumeOutcome() if isinstance(one, BindClaim) else await write(one)

    world.port.write_volume = write_but_claims


def refuse(world: PortWorld, kind: type[VolumeWrite], outcome: VolumeOutcome, times: int = 1) -> list[VolumeWrite]:
    """Have writes of one kind come to this instead; those that did."""
    write: Callable[[VolumeWrite], Awaitable[VolumeOutcome]] = world.port.write_volume
    refused: list[VolumeWrite] = []

    async def write_or_refuse(one: VolumeWrite) -> VolumeOutcome:
        if isinstance(one, kind) and len(refused) < times:
            refused.append(one)
            return outcome
        return await write(one)

    world.port.write_volume = write_or_refuse
    return refused


@in_both_worlds
def test_a_volume_names_its_claim_and_the_claim_is_waited_for(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        keep_claims_unbound(world)
        storage = await Storage.of(world)
        claim = world.claim()
        await storage.begin()
        assert world.volume()["spec"]["claimRef"] == {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "default",
            "name": "data",
            "uid": claim["metadata"]["uid"],
            "resourceVersion": claim["metadata"]["resourceVersion"],
        }
        assert world.volume()["metadata"]["annotations"] == {BY_CONTROLLER: "yes"}
        assert not world.told
        await storage.bind_claim("data", "pv-1")
        assert await world.answers() == [VolumesBound(storage.effect.pod, 1)]

    play(opener, scenario)


@in_both_worlds
def test_a_volume_that_was_kept_for_the_claim_is_not_said_to_be_bound_by_a_controller(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world)
        kept = {"namespace": "default", "name": "data"}
        await world.change("PersistentVolume", "pv-1", lambda volume: volume["spec"].update(claimRef=kept))
        await storage.begin()
        assert world.volume()["spec"]["claimRef"]["uid"] == world.claim()["metadata"]["uid"]
        assert "annotations" not in world.volume()["metadata"]

    play(opener, scenario)


@in_both_worlds
def test_a_claim_is_provisioned_for_the_node_and_waited_for(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        await storage.begin()
        assert world.claim("fresh")["metadata"]["annotations"] == {SELECTED: "n1"}
        assert not world.told
        await world.add_volume("made")
        await storage.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(storage.effect.pod, 1)]

    play(opener, scenario)


@in_both_worlds
def test_all_claims_are_waited_for(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, provision=True)
        await storage.begin()
        await storage.bind_claim("data", "pv-1")
        await world.quiet()
        assert not world.told
        await world.add_volume("made")
        await storage.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(storage.effect.pod, 1)]

    play(opener, scenario)


@in_both_worlds
def test_a_claim_that_was_bound_is_noticed_after_a_step_without_effects(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        await storage.begin()
        await world.add_volume("made")
        await storage.bind_claim("fresh", "made")
        assert world.told == [VolumesBound(storage.effect.pod, 1)]

    monkeypatch.setattr(pre_bind, "LOOK_S", 60.0)
    play(opener, scenario)


@in_both_worlds
def test_a_volume_that_is_another_claims_is_left_alone(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world)
        await world.change("PersistentVolume", "pv-1", lambda volume: volume["spec"].update(claimRef=OTHER))
        await storage.begin()
        assert await storage.failure() == 'volume "pv-1" already bound to a different claim.'
        assert world.volume()["spec"]["claimRef"]["name"] == "other"

    play(opener, scenario)


@in_both_worlds
def test_a_volume_that_somebody_takes_between_reading_and_writing_is_left_alone(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world)
        read = world.port.read_volume

        async def read_and_lose(name: str) -> Any:
            found = await read(name)
            world.port.read_volume = read
            await world.change("PersistentVolume", name, lambda volume: volume["spec"].update(claimRef=OTHER))
            return found

        world.port.read_volume = read_and_lose
        await storage.begin()
        assert await storage.failure() == 'volume "pv-1" already bound to a different claim.'
        assert world.volume()["spec"]["claimRef"]["name"] == "other"

    play(opener, scenario)


@in_both_worlds
def test_a_write_that_lost_a_race_is_tried_again(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, provision=True)
        lost = VolumeOutcome("the object has been modified", retry=True)
        refuse(world, ReserveVolume, lost, times=3)
        refuse(world, SelectNode, lost, times=3)
        await storage.begin()
        await world.add_volume("made")
        await storage.bind_claim("data", "pv-1")
        await storage.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(storage.effect.pod, 1)]

    play(opener, scenario)


@in_both_worlds
def test_a_write_that_always_loses_is_given_up(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world)
        lost = refuse(world, ReserveVolume, VolumeOutcome("the object has been modified", retry=True), times=99)
        await storage.begin()
        assert await storage.failure() == "the object has been modified"
        assert len(lost) == volumes.TRIES

    play(opener, scenario)


@in_both_worlds
def test_what_was_put_together_is_undone_if_the_rest_is_refused(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        keep_claims_unbound(world)
        storage = await Storage.of(world, provision=True)
        refuse(world, SelectNode, VolumeOutcome("not you"))
        await storage.begin()
        assert await storage.failure() == "not you"
        assert "claimRef" not in world.volume()["spec"]
        assert not world.volume()["metadata"].get("annotations")

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("retry", [False, True], ids=["refused", "never done"])
def test_a_volume_is_released_if_its_claim_cannot_follow(opener: Opener, retry: bool) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world)
        refuse(world, BindClaim, VolumeOutcome("not you", retry=retry), times=99)
        await storage.begin()
        assert await storage.failure() == "not you"
        assert "claimRef" not in world.volume()["spec"]

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("claim", ["pending", "gone"])
def test_a_volume_whose_claim_does_not_follow_in_time_is_released(opener: Opener, claim: str) -> None:
    async def scenario(world: PortWorld) -> None:
        keep_claims_unbound(world)
        world.performer = world.new_performer(volume_timeouts_s={"default-scheduler": 0.05})
        storage = await Storage.of(world)
        await storage.begin()
        if claim == "gone":
            await world.remove("PersistentVolumeClaim", "data")
        assert await storage.failure() == "binding volumes: context deadline exceeded"
        assert "claimRef" not in world.volume()["spec"]

    play(opener, scenario)


@in_both_worlds
def test_a_volume_whose_claim_followed_is_not_released(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        world.performer = world.new_performer(volume_timeouts_s={"default-scheduler": 0.05})
        storage = await Storage.of(world, provision=True)
        await storage.begin()
        await storage.bind_claim("data", "pv-1")
        assert await storage.failure() == "binding volumes: context deadline exceeded"
        assert world.volume()["spec"]["claimRef"]["name"] == "data"
        assert world.claim("fresh")["metadata"]["annotations"] == {SELECTED: "n1"}, "a volume may be on its way"

    play(opener, scenario)


@in_both_worlds
def test_an_annotation_that_is_removed_again_says_that_provisioning_failed(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        await storage.begin()
        await storage.annotate("fresh")
        assert await storage.failure() == 'binding volumes: provisioning failed for PVC "fresh"'

    play(opener, scenario)


@in_both_worlds
def test_a_claim_ref_that_was_reset_before_it_was_seen_is_found_out(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: PortWorld) -> None:
        keep_claims_unbound(world)
        storage = await Storage.of(world)
        write: Callable[[VolumeWrite], Awaitable[VolumeOutcome]] = world.port.write_volume

        async def write_and_lose(one: VolumeWrite) -> VolumeOutcome:
            outcome = await write(one)
            if isinstance(one, ReserveVolume):
                await storage.reset()
            return outcome

        world.port.write_volume = write_and_lose
        world.performer.perform([storage.effect])
        assert await storage.failure() == 'binding volumes: ClaimRef got reset for pv "pv-1"'

    monkeypatch.setattr(volumes, "REREAD_S", 0.02)
    play(opener, scenario)


@in_both_worlds
def test_an_annotation_that_was_removed_before_it_was_seen_is_found_out(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        world.performer.perform([storage.effect])
        await world.quiet()
        await storage.annotate("fresh")
        assert await storage.failure() == 'binding volumes: provisioning failed for PVC "fresh"'

    monkeypatch.setattr(volumes, "REREAD_S", 0.02)
    play(opener, scenario)


@in_both_worlds
def test_a_claim_that_is_provisioned_for_another_node_is_left_to_it(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        await storage.annotate("fresh", **{SELECTED: "n2"})
        await storage.begin()
        assert await storage.failure() == 'persistentvolumeclaim "fresh" is being provisioned for node "n2"'

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("static", [True, False])
def test_a_volume_that_the_node_does_not_reach_is_of_no_use(opener: Opener, static: bool) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        await world.add_volume("made", "n2")
        if static:
            storage.effect = BindVolumes(storage.effect.pod, "n1", 1, (("fresh", "made"),), ())
            world.show()
        await storage.begin()
        if not static:
            await storage.bind_claim("fresh", "made")
        assert await storage.failure() == (
            'binding volumes: pv "made" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'
        )

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize(
    "lost, problem",
    [
        pytest.param("node", 'failed to get node "n1": node "n1" not found', id="the node is gone"),
        pytest.param("pod", 'pod does not exist any more: pod "web" not found', id="the pod is gone"),
        pytest.param(
            "claim",
            'failed to check binding: could not find v1.PersistentVolumeClaim "default/data"',
            id="the claim is gone",
        ),
        pytest.param(
            "volume", 'failed to check binding: could not find v1.PersistentVolume "pv-1"', id="the volume is gone"
        ),
        pytest.param("reference", 'ClaimRef got reset for pv "pv-1"', id="the controller took the claim off again"),
    ],
)
def test_what_can_not_come_true_any_more_is_not_waited_for(opener: Opener, lost: str, problem: str) -> None:
    async def scenario(world: PortWorld) -> None:
        keep_claims_unbound(world)
        storage = await Storage.of(world)
        await storage.begin()
        match lost:
            case "node":
                world.seen.nodes = {}
            case "pod":
                world.seen.pods = {}
            case "claim":
                world.seen.claims = {}
            case "volume":
                world.seen.volumes = {}
            case _:
                await storage.reset()
                world.show()
        world.step()
        assert await storage.failure() == f"binding volumes: {problem}"

    play(opener, scenario)


@in_both_worlds
def test_the_same_attempt_is_begun_once_and_a_later_one_takes_over(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        keep_claims_unbound(world)
        storage = await Storage.of(world)
        world.performer.perform([storage.effect, storage.effect])
        await world.quiet()
        reserved = world.volume()["metadata"]["resourceVersion"]
        world.performer.perform([BindVolumes(storage.effect.pod, "n1", 2, storage.effect.static, ())])
        await world.quiet()
        await storage.bind_claim("data", "pv-1")
        assert await world.answers() == [VolumesBound(storage.effect.pod, 2)]
        assert world.volume()["metadata"]["resourceVersion"] == reserved

    play(opener, scenario)


@in_both_worlds
@pytest.mark.parametrize("known", [True, False])
def test_a_claim_or_a_volume_that_is_not_there_is_a_failure(opener: Opener, known: bool) -> None:
    async def scenario(world: PortWorld) -> None:
        if known:
            await world.add_claim("x")
        ref = await world.add_pod()
        world.performer.perform([BindVolumes(ref, "n1", 1, (("x", "y"),), ())])
        [answer] = await world.answers()
        missing = 'persistentvolume "y"' if known else 'persistentvolumeclaim "x"'
        assert answer == VolumesFailed(ref, 1, f"{RUNNING_PREBIND}{missing} not found")

    play(opener, scenario)


@in_both_worlds
def test_a_reserved_pod_shows_its_node_where_the_port_nominates_it(opener: Opener) -> None:
    async def scenario(world: PortWorld) -> None:
        storage = await Storage.of(world, static=False, provision=True)
        await storage.begin()
        assert world.pod().get("status", {}).get("nominatedNodeName") == (
            "n1" if world.port.nominates_reserved else None
        )
        await storage.annotate("fresh")
        await storage.failure()
        assert "nominatedNodeName" not in world.pod().get("status", {})

    play(opener, scenario)
