"""What the performer sends, to the real API server, with the rights of system:kube-scheduler."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from builders import node as known_node
from kube.performing import Counted, Seen, kube_performer
from kubernetes import objects
from kubernetes.cluster import Cluster
from kubernetes.proxy import BINDS, Fault, FaultProxy, Faults
from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    EvictDone,
    PodRef,
    VolumesBound,
    VolumesFailed,
)
from situate.core.effects import Bind, BindVolumes, Evict, Nominate, Report, SetCondition, SetGroupCondition
from situate.core.model.group import PodGroup
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim
from situate.kube.client import Client
from situate.kube.conditions import GroupApi
from situate.kube.kubeconfig import find_access
from situate.wire.objects import decode, decode_pod

WITHIN_S = 20.0
MESSAGE = "default-scheduler: preempting to accommodate a higher priority pod"


class Stage:
    """A performer on the cluster, with what the engine would know and be told."""

    def __init__(self, cluster: Cluster, client: Client, **options: Any) -> None:
        self.cluster = cluster
        self.client = client
        self.seen = Seen()
        self.counted = Counted()
        self.leads = True
        self.told: list[Change] = []
        self.performer = kube_performer(
            client, self.seen, self.told.extend, may_write=lambda: self.leads, metrics=self.counted, **options
        )

    def add(self, *names: str, **fields: Any) -> list[PodRef]:
        """Waiting pods, created and seen."""
        made = self.cluster.create(*(objects.pod(name, **fields) for name in names))
        for one in made:
            self.seen.pods[f"{self.cluster.namespace}/{one['metadata']['name']}"] = decode_pod(json.dumps(one).encode())
        return [PodRef(self.cluster.namespace, one["metadata"]["name"], one["metadata"]["uid"]) for one in made]

    def see(self, *refs: PodRef) -> None:
        for ref in refs:
            self.seen.pods[ref.key] = decode_pod(json.dumps(self.pod(ref)).encode())

    def pod(self, ref: PodRef) -> Any:
        found = self.cluster.pod(ref.name)
        assert found is not None
        return found

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not true():
                await asyncio.sleep(0.01)

    async def quiet(self) -> None:
        await self.until(lambda: not self.performer.busy)

    async def answers(self, count: int = 1) -> list[Change]:
        await self.until(lambda: len(self.told) >= count)
        await self.quiet()
        return self.told


def play(
    cluster: Cluster,
    scenario: Callable[[Stage], Awaitable[None]],
    *,
    server: str | None = None,
    **options: Any,
) -> None:
    async def run() -> None:
        kubeconfig = cluster.kubeconfig_for(cluster.tokens["system:kube-scheduler"], server=server)
        async with Client(find_access(str(kubeconfig)), qps=-1) as client:
            stage = Stage(cluster, client, **options)
            await scenario(stage)
            await stage.performer.drain(1)

    asyncio.run(run())


def test_a_pod_is_bound_and_the_event_is_there(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [ref] = stage.add("web")
        stage.performer.perform([Bind(ref, "n1", 1)])
        assert await stage.answers() == [BindDone(ref, 1)]
        assert cluster.bound() == {"web": "n1"}
        note = f"Successfully assigned {ref.key} to n1"
        stage.performer.perform([Report(ref, "Normal", "Scheduled", "Binding", note)])
        await stage.quiet()
        [event] = cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")
        assert (event["reason"], event["action"], event["note"]) == ("Scheduled", "Binding", note)
        assert event["regarding"]["uid"] == ref.uid
        assert (event["reportingController"], event["reportingInstance"]) == (
            "default-scheduler",
            "default-scheduler-host-1",
        )
        assert note in cluster.kubectl("describe", "pod", "web")
        assert not stage.counted.drops

    play(cluster, scenario)


def test_what_is_to_be_written_on_a_pod_is_written_with_its_bind(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [ref] = stage.add("web", annotations={"kept": "yes"})
        stage.performer.perform([Bind(ref, "n1", 1, annotations=(("situate.dev/gpu-devices", "0,1"),))])
        assert await stage.answers() == [BindDone(ref, 1)]
        assert cluster.bound() == {"web": "n1"}
        written = stage.pod(ref)["metadata"]["annotations"]
        assert (written["situate.dev/gpu-devices"], written["kept"]) == ("0,1", "yes")

    play(cluster, scenario)


def test_a_repeated_event_is_a_series(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [ref] = stage.add("web")
        said = Report(ref, "Warning", "FailedScheduling", "Scheduling", "0/1 nodes are available")
        stage.performer.perform([said])
        await stage.quiet()
        stage.performer.perform([said])
        await stage.quiet()
        [event] = cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")
        assert event["series"]["count"] == 2
        assert not stage.counted.drops

    play(cluster, scenario)


def test_conflicts_are_told_apart(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        refs = stage.add("bound", "ours", "annotated", "labelled", "gone", "renewed", "plain")
        path = f"/api/v1/namespaces/{cluster.namespace}/pods"
        for name, where in (("bound", "n2"), ("ours", "n1")):
            target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": where}}
            cluster.api.post(f"{path}/{name}/binding", target)
        cluster.api.patch(f"{path}/annotated", {"metadata": {"annotations": {"a": "b"}}})
        cluster.api.patch(f"{path}/labelled", {"metadata": {"labels": {"a": "b"}}})
        for name in ("gone", "renewed"):
            cluster.api.delete(f"{path}/{name}?gracePeriodSeconds=0")
        cluster.create(objects.pod("renewed"))
        stage.performer.perform([Bind(ref, "n1", 1) for ref in refs])
        told = {
            answer.pod.name: answer for answer in await stage.answers(7) if isinstance(answer, BindDone | BindFailed)
        }
        assert {name for name, answer in told.items() if isinstance(answer, BindDone)} == {"ours", "annotated", "plain"}
        assert all(answer.final for answer in told.values() if isinstance(answer, BindFailed))
        assert 'is already assigned to node "n2"' in getattr(told["bound"], "problem", "")
        assert "was changed" in getattr(told["labelled"], "problem", "")
        assert cluster.bound() == {"bound": "n2", "ours": "n1", "annotated": "n1", "plain": "n1"}

    play(cluster, scenario)


def test_notes_are_written_as_kube_scheduler_writes_them(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [ref] = stage.add("web")
        waits = SetCondition(ref, "PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
        stage.performer.perform([waits, Nominate(ref, "n3")])
        await stage.quiet()
        status = stage.pod(ref)["status"]
        [condition] = status["conditions"]
        since = condition.pop("lastTransitionTime")
        assert since
        assert condition == {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available",
            "observedGeneration": 1,
            "lastProbeTime": None,
        }
        assert status["nominatedNodeName"] == "n3"
        stage.performer.perform([SetCondition(ref, "PodScheduled", "False", "Unschedulable", "2"), Nominate(ref, "")])
        await stage.quiet()
        status = stage.pod(ref)["status"]
        assert status["conditions"][0]["message"] == "2"
        assert "nominatedNodeName" not in status
        stage.performer.perform([Bind(ref, "n1", 1)])
        assert await stage.answers() == [BindDone(ref, 1)], "the versions that our notes made are known"
        [condition] = stage.pod(ref)["status"]["conditions"]
        assert condition["status"] == "True"
        assert not stage.counted.failures

    play(cluster, scenario)


def test_a_late_note_does_not_say_of_a_bound_pod_that_it_waits(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [ref] = stage.add("web")
        stage.performer.perform([Bind(ref, "n1", 1)])
        await stage.answers()
        stage.performer.perform([SetCondition(ref, "PodScheduled", "False", "SchedulerError", "late")])
        await stage.quiet()
        [condition] = stage.pod(ref)["status"]["conditions"]
        assert (condition["type"], condition["status"]) == ("PodScheduled", "True")

    play(cluster, scenario)


def test_a_victim_is_marked_and_leaves_with_its_grace(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [victim, high] = stage.add("victim", "high")
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "victim"}, "target": {"name": "n1"}}
        cluster.api.post(f"/api/v1/namespaces/{cluster.namespace}/pods/victim/binding", target)
        stage.performer.perform([Evict(victim, "n1", high, MESSAGE)])
        assert await stage.answers() == [EvictDone(victim)]
        pod = stage.pod(victim)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        marks = [one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget"]
        assert [(one["status"], one["reason"], one["message"]) for one in marks] == [
            ("True", "PreemptionByScheduler", MESSAGE)
        ]
        cluster.api.delete(f"/api/v1/namespaces/{cluster.namespace}/pods/victim?gracePeriodSeconds=0")
        cluster.create(objects.pod("victim"))
        stage.performer.perform([Evict(victim, "n1", high, MESSAGE)])
        assert (await stage.answers(2))[1] == EvictDone(victim)
        renewed = stage.pod(victim)
        assert "deletionTimestamp" not in renewed["metadata"], "another pod of its name is left alone"
        assert "conditions" not in renewed["status"]

    play(cluster, scenario)


def test_a_group_is_told_whether_it_was_scheduled(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        [made] = cluster.create(objects.pod_group("g", 2))
        stage.seen.groups[cluster.namespace, "g"] = decode(PodGroup, json.dumps(made).encode())
        stage.performer.perform([SetGroupCondition(cluster.namespace, "g", "False", "Unschedulable", "waits")])
        await stage.quiet()
        path = f"/apis/{objects.GROUPS_API}/namespaces/{cluster.namespace}/podgroups/g"
        [condition] = cluster.api.get(path)["status"]["conditions"]
        said = (condition["type"], condition["status"], condition["message"])
        assert said == (objects.GROUP_CONDITION, "False", "waits")
        assert not stage.counted.failures

    play(cluster, scenario, groups=lambda: GroupApi.of(objects.GROUPS_VERSION))


# -- volumes -----------------------------------------------------------------------------------------------------------

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "late"}
VOLUME = {
    "accessModes": ["ReadWriteOnce"],
    "capacity": {"storage": "1Gi"},
    "storageClassName": "late",
    "csi": {"driver": "driver.test", "volumeHandle": "h"},
}


def see_storage(stage: Stage) -> None:
    cluster = stage.cluster
    for one in cluster.api.items("/api/v1/persistentvolumes"):
        volume = decode(PersistentVolume, json.dumps(one).encode())
        stage.seen.volumes[volume.metadata.name] = volume
    for one in cluster.api.items(f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"):
        claim = decode(PersistentVolumeClaim, json.dumps(one).encode())
        stage.seen.claims[claim.metadata.namespace, claim.metadata.name] = claim
    stage.seen.version += 1
    stage.performer.perform([])


def make_storage(stage: Stage) -> BindVolumes:
    """A pod with a claim that gets a volume, and one that is provisioned."""
    cluster = stage.cluster
    [ref] = stage.add("web")
    stage.seen.nodes["n1"] = known_node("n1")
    cluster.create(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": VOLUME},
        *(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": CLAIM}
            for name in ("data", "fresh")
        ),
    )
    see_storage(stage)
    return BindVolumes(ref, "n1", 1, (("data", "pv-1"),), ("fresh",))


def test_volumes_are_bound_when_their_claims_are(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        ask = make_storage(stage)
        stage.performer.perform([ask])
        await stage.quiet()
        volume = cluster.api.get("/api/v1/persistentvolumes/pv-1")
        claims = f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims"
        data, fresh = cluster.api.get(f"{claims}/data"), cluster.api.get(f"{claims}/fresh")
        assert volume["spec"]["claimRef"]["uid"] == data["metadata"]["uid"]
        assert volume["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert fresh["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "n1"}
        cluster.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "made"}, "spec": VOLUME})
        for name, bound_to in (("data", "pv-1"), ("fresh", "made")):
            patch = {
                "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": bound_to},
            }
            cluster.api.patch(f"{claims}/{name}", patch)
        assert not stage.told
        see_storage(stage)
        assert await stage.answers() == [VolumesBound(ask.pod, 1)]

    play(cluster, scenario)


def test_a_volume_whose_claim_does_not_follow_is_let_go(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        ask = make_storage(stage)
        stage.performer.perform([ask])
        [answer] = await stage.answers()
        assert isinstance(answer, VolumesFailed)
        assert answer.problem.endswith("binding volumes: context deadline exceeded")
        volume = cluster.api.get("/api/v1/persistentvolumes/pv-1")
        assert "claimRef" not in volume["spec"]
        assert "annotations" not in volume["metadata"]

    play(cluster, scenario, volume_timeouts_s={"default-scheduler": 0.2})


# -- faults ------------------------------------------------------------------------------------------------------------


def test_with_a_fifth_of_the_answers_spoiled_every_pod_is_bound_once(cluster: Cluster) -> None:
    async def scenario(stage: Stage) -> None:
        refs = stage.add(*(f"p{at}" for at in range(100)))
        wanted = dict.fromkeys(refs, (1, "n1"))
        stage.performer.perform([Bind(ref, "n1", 1) for ref in refs])
        done: dict[str, str] = {}
        while len(done) < len(refs):
            await stage.until(lambda: stage.told)
            answers = stage.told[:]
            stage.told.clear()
            for answer in answers:
                assert isinstance(answer, BindDone | BindFailed)
                attempt, where = wanted[answer.pod]
                assert answer.attempt == attempt
                if isinstance(answer, BindDone):
                    assert answer.pod.name not in done, "answered twice"
                    done[answer.pod.name] = where
                    continue
                if answer.final:
                    attempt, where = attempt + 1, f"n{attempt + 1}"
                wanted[answer.pod] = (attempt, where)
                stage.see(answer.pod)
                stage.performer.perform([Bind(answer.pod, where, attempt)])
        assert cluster.bound() == done

    with FaultProxy(cluster, seed=3) as proxy:
        spoiled = (
            Fault(BINDS, share=0.1, status=409),
            Fault(BINDS, share=0.1, status=500),
            Fault(BINDS, share=0.1, status=0, forwarded=True),
        )
        proxy.set(Faults(answers=spoiled))
        play(cluster, scenario, server=proxy.url)
