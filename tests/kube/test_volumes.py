"""Volumes are made ready for a reserved pod; what cannot be finished is undone and answered, once."""

import json
from typing import Any

import pytest

from builders import node
from kube.fake_server import Object
from kube.performing import CLAIMS, VOLUMES, World, play
from situate.core.changes import PodRef, VolumesBound, VolumesFailed
from situate.core.effects import BindVolumes
from situate.loop.scheduling import volumes
from situate.loop.scheduling.port import NOT_LEADER
from situate.loop.scheduling.volumes import RUNNING_PREBIND as RUNNING

SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"
ONLY_N1 = {
    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "h", "operator": "In", "values": ["n1"]}]}]}
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "LOOK_S", 0.01)


class Stored:
    """A pod with a claim each to be bound and to be provisioned, as far as a case wants them."""

    def __init__(self, world: World, *, static: bool = True, provision: bool = False) -> None:
        self.world = world
        self.ref = world.add_pod()
        world.seen.nodes = {name: node(name, labels={"h": name}) for name in ("n1", "n2")}
        if static:
            self.put_claim("data")
            world.server.put(VOLUMES, {"metadata": {"name": "pv-1"}, "spec": {"nodeAffinity": ONLY_N1}})
        if provision:
            self.put_claim("fresh")
        self.ask = BindVolumes(
            self.ref, "n1", 1, (("data", "pv-1"),) if static else (), ("fresh",) if provision else ()
        )
        self.step()

    def put_claim(self, name: str, **spec: Any) -> None:
        self.world.server.put(CLAIMS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})

    def step(self) -> None:
        self.world.see_storage()

    def claim(self, name: str) -> Object:
        return _copy(self.world.server.get(CLAIMS, name, "default"))

    def volume(self, name: str = "pv-1") -> Object:
        return _copy(self.world.server.get(VOLUMES, name))

    def bind_claim(self, name: str, volume: str) -> None:
        """What the volume controller does in the end."""
        claim = self.claim(name)
        claim["spec"]["volumeName"] = volume
        claim["metadata"].setdefault("annotations", {})[COMPLETED] = "yes"
        self.world.server.put(CLAIMS, claim)
        self.step()

    def annotate(self, name: str, **annotations: str) -> None:
        claim = self.claim(name)
        claim["metadata"]["annotations"] = annotations
        self.world.server.put(CLAIMS, claim)
        self.step()

    async def begin(self) -> None:
        self.world.performer.perform([self.ask])
        await self.world.quiet()
        self.step()

    async def failure(self) -> str:
        [answer] = await self.world.answers()
        assert isinstance(answer, VolumesFailed)
        assert (answer.pod, answer.attempt) == (self.ref, 1)
        assert answer.problem.startswith(RUNNING)
        return answer.problem.removeprefix(RUNNING)


def _copy(found: Object | None) -> Object:
    assert found is not None
    copied: Object = json.loads(json.dumps(found))
    return copied


def test_a_volume_is_had_to_name_its_claim_and_the_claim_is_waited_for() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        await stored.begin()
        volume, claim = stored.volume(), stored.claim("data")
        assert volume["spec"]["claimRef"] == {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": "default",
            "name": "data",
            "uid": claim["metadata"]["uid"],
            "resourceVersion": claim["metadata"]["resourceVersion"],
        }
        assert volume["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert not world.told
        stored.bind_claim("data", "pv-1")
        assert await world.answers() == [VolumesBound(stored.ref, 1)]

    play(scenario)


def test_a_volume_that_was_kept_for_the_claim_is_not_said_to_be_bound_by_a_controller() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        volume = stored.volume()
        volume["spec"]["claimRef"] = {"namespace": "default", "name": "data"}
        world.server.put(VOLUMES, volume)
        await stored.begin()
        assert stored.volume()["spec"]["claimRef"]["uid"] == stored.claim("data")["metadata"]["uid"]
        assert "annotations" not in stored.volume()["metadata"]

    play(scenario)


def test_a_claim_is_had_provisioned_for_the_node_and_waited_for() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, static=False, provision=True)
        await stored.begin()
        assert stored.claim("fresh")["metadata"]["annotations"] == {SELECTED: "n1"}
        world.server.put(VOLUMES, {"metadata": {"name": "made"}, "spec": {"nodeAffinity": ONLY_N1}})
        stored.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(stored.ref, 1)]

    play(scenario)


def test_all_claims_are_waited_for() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, provision=True)
        await stored.begin()
        stored.bind_claim("data", "pv-1")
        await world.quiet()
        assert not world.told
        world.server.put(VOLUMES, {"metadata": {"name": "made"}})
        stored.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(stored.ref, 1)]

    play(scenario)


def test_a_volume_that_is_another_claims_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        volume = stored.volume()
        volume["spec"]["claimRef"] = {"namespace": "default", "name": "other", "uid": "u"}
        world.server.put(VOLUMES, volume)
        await stored.begin()
        assert await stored.failure() == 'volume "pv-1" already bound to a different claim.'
        assert stored.volume()["spec"]["claimRef"]["name"] == "other"
        assert not world.server.asked("PATCH")

    play(scenario)


def test_a_volume_that_somebody_takes_between_reading_and_writing_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        world.server.fault("PATCH", "/persistentvolumes/", hang=True)
        world.performer.perform([stored.ask])
        await world.until(lambda: world.server.asked("PATCH"))
        volume = stored.volume()
        volume["spec"]["claimRef"] = {"namespace": "default", "name": "other", "uid": "u"}
        world.server.put(VOLUMES, volume)
        world.server.release()
        assert await stored.failure() == 'volume "pv-1" already bound to a different claim.'
        assert stored.volume()["spec"]["claimRef"]["name"] == "other"

    play(scenario)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"drop": "after"}, id="the answer is lost"),
        pytest.param({"drop": "before"}, id="the connection breaks"),
        pytest.param({"status": 500}, id="500"),
        pytest.param({"status": 500, "done": True}, id="500 though it was done"),
        pytest.param({"status": 409, "reason": "Conflict"}, id="409"),
        pytest.param({"status": 429, "reason": "TooManyRequests"}, id="429"),
    ],
)
def test_a_write_that_may_have_failed_is_looked_into_and_tried_again(fault: dict[str, Any]) -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, provision=True)
        world.server.fault("PATCH", "/persistentvolumes/", **fault)
        world.server.fault("PATCH", "/persistentvolumeclaims/", **fault)
        await stored.begin()
        world.server.put(VOLUMES, {"metadata": {"name": "made"}})
        stored.bind_claim("data", "pv-1")
        stored.bind_claim("fresh", "made")
        assert await world.answers() == [VolumesBound(stored.ref, 1)]

    play(scenario)


def test_what_was_put_together_is_undone_if_the_rest_is_refused() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, provision=True)
        world.server.fault("PATCH", "/persistentvolumeclaims/", status=403, reason="Forbidden", message="not you")
        await stored.begin()
        assert await stored.failure() == "not you"
        assert "claimRef" not in stored.volume()["spec"]
        assert stored.volume()["metadata"]["annotations"] == {}

    play(scenario)


def test_a_volume_whose_claim_does_not_follow_in_time_is_let_go() -> None:
    async def scenario(world: World) -> None:
        world.performer = world.new_performer(volume_timeouts_s={"default-scheduler": 0.05})
        stored = Stored(world)
        await stored.begin()
        assert await stored.failure() == "binding volumes: context deadline exceeded"
        assert "claimRef" not in stored.volume()["spec"]

    play(scenario)


def test_a_volume_whose_claim_followed_is_not_let_go() -> None:
    async def scenario(world: World) -> None:
        world.performer = world.new_performer(volume_timeouts_s={"default-scheduler": 0.05})
        stored = Stored(world, provision=True)
        await stored.begin()
        stored.bind_claim("data", "pv-1")
        assert await stored.failure() == "binding volumes: context deadline exceeded"
        assert stored.volume()["spec"]["claimRef"]["name"] == "data"
        assert stored.claim("fresh")["metadata"]["annotations"] == {SELECTED: "n1"}, "a volume may be under way"

    play(scenario)


def test_an_annotation_that_is_taken_off_again_says_that_provisioning_failed() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, static=False, provision=True)
        await stored.begin()
        stored.annotate("fresh")
        assert await stored.failure() == 'binding volumes: provisioning failed for PVC "fresh"'

    play(scenario)


def test_a_claim_that_was_taken_off_a_volume_before_it_was_seen_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        world.performer.perform([stored.ask])
        await world.quiet()
        volume = stored.volume()
        del volume["spec"]["claimRef"]
        world.server.put(VOLUMES, volume)
        assert await stored.failure() == 'binding volumes: ClaimRef got reset for pv "pv-1"'

    monkeypatch.setattr(volumes, "REREAD_S", 0.02)
    play(scenario)


def test_an_annotation_that_was_taken_off_before_it_was_seen_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, static=False, provision=True)
        world.performer.perform([stored.ask])
        await world.quiet()
        stored.annotate("fresh")
        assert await stored.failure() == 'binding volumes: provisioning failed for PVC "fresh"'

    monkeypatch.setattr(volumes, "REREAD_S", 0.02)
    play(scenario)


def test_a_claim_that_is_provisioned_for_another_node_is_left_to_it() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, static=False, provision=True)
        stored.annotate("fresh", **{SELECTED: "n2"})
        await stored.begin()
        assert await stored.failure() == 'persistentvolumeclaim "fresh" is being provisioned for node "n2"'

    play(scenario)


def test_a_volume_that_was_made_where_the_node_does_not_reach_is_of_no_use() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world, static=False, provision=True)
        await stored.begin()
        away = json.loads(json.dumps(ONLY_N1).replace("n1", "n2"))
        world.server.put(VOLUMES, {"metadata": {"name": "made"}, "spec": {"nodeAffinity": away}})
        stored.bind_claim("fresh", "made")
        problem = await stored.failure()
        assert problem == (
            'binding volumes: pv "made" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'
        )

    play(scenario)


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
def test_what_can_not_come_true_any_more_is_not_waited_for(lost: str, problem: str) -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        await stored.begin()
        match lost:
            case "node":
                world.seen.nodes = {}
            case "pod":
                world.seen.pods = {}
            case "claim":
                world.server.remove(CLAIMS, "data", "default")
                world.seen.claims = {}
            case "volume":
                world.server.remove(VOLUMES, "pv-1")
                world.seen.volumes = {}
            case _:
                volume = stored.volume()
                del volume["spec"]["claimRef"]
                world.server.put(VOLUMES, volume)
        stored.step()
        assert await stored.failure() == f"binding volumes: {problem}"

    play(scenario)


def test_who_does_not_lead_writes_nothing() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        world.leads = False
        await stored.begin()
        assert await stored.failure() == NOT_LEADER
        assert not world.server.requests

    play(scenario)


def test_the_same_attempt_is_begun_once_and_a_later_one_takes_over() -> None:
    async def scenario(world: World) -> None:
        stored = Stored(world)
        world.performer.perform([stored.ask, stored.ask])
        await world.quiet()
        again = BindVolumes(stored.ref, "n1", 2, stored.ask.static, ())
        world.performer.perform([again])
        await world.quiet()
        stored.bind_claim("data", "pv-1")
        assert await world.answers() == [VolumesBound(stored.ref, 2)]
        assert len(world.server.asked("PATCH")) == 1

    play(scenario)


def test_a_claim_that_is_not_known_is_a_failure() -> None:
    async def scenario(world: World) -> None:
        ref = world.add_pod()
        world.seen.nodes["n1"] = node("n1")
        world.performer.perform([BindVolumes(PodRef("default", "web", ref.uid), "n1", 1, (("x", "y"),), ())])
        [answer] = await world.answers()
        assert answer == VolumesFailed(ref, 1, f'{RUNNING}persistentvolumeclaim "x" not found')

    play(scenario)
