"""HorizontalPodAutoscalers scale workloads by what the pods of hollow nodes are said to use."""

from collections.abc import Mapping
from typing import Any

import pytest

from server.registry.stories import ANN, World, deployment, namespace, pod, tell
from situate.server.registry.cache import Cache
from situate.server.registry.normalize import encode, normalize
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND
from situate.server.usage.autoscaler import AUTOSCALERS, MOST_NAMED, Autoscaler
from situate.server.usage.measured import node_metrics, pod_metrics
from situate.server.usage.played import NOTHING, USAGE, usage_of
from situate.server.usage.workloads import ScaleTarget, workload_of

DEPLOYMENTS = BY_KIND["apps/v1", "Deployment"]
EVENTS = BY_KIND["v1", "Event"]
LONG_AGO = "2026-01-01T00:00:00Z"


def autoscaler(name: str = "a", **fields: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 10, **fields}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def node(name: str = "n1", runtime: str = "hollow://1") -> Object:
    status = {"nodeInfo": {"containerRuntimeVersion": runtime}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def running(name: str, usage: str, on: str = "n1", ready: str = "True") -> Object:
    body = pod(name, on, labels={"app": "web"}, annotations={USAGE: usage})
    body["spec"]["containers"] = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": LONG_AGO}
    body["status"] = {"phase": "Running", "startTime": LONG_AGO, "conditions": [condition]}
    return body


def clock(world: World) -> Autoscaler:
    return Autoscaler(world.registry, lambda: world.now_s[0] * 1_000_000_000)


async def begin(world: World, *pods: Object, replicas: int = 2, **fields: Any) -> Autoscaler:
    await world.create(namespace("default"))
    web = deployment("web", replicas)
    web["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    web["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
    await world.create(web)
    await world.create(node())
    for one in pods:
        status = one.pop("status")
        made = await world.create(one)
        await world.update({**made, "status": status}, "status")
    await world.create(autoscaler(**fields))
    return clock(world)


async def replicas(world: World) -> int:
    return int((await world.get(DEPLOYMENTS, "web"))["spec"]["replicas"])


async def conditions(world: World) -> dict[str, tuple[str, str]]:
    status = (await world.get(AUTOSCALERS, "a"))["status"]
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def test_a_workload_grows_with_what_its_pods_use_and_the_status_and_an_event_say_so() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=150m"), running("b", "cpu=170m"))
        await scaler.scale_all()
        assert await replicas(world) == 4
        status = (await world.get(AUTOSCALERS, "a"))["status"]
        (metric,) = status["currentMetrics"]
        current = {"averageValue": "160m", "averageUtilization": 160}
        assert metric == {"type": "Resource", "resource": {"name": "cpu", "current": current}}
        assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
        assert status["lastScaleTime"] == "2026-01-02T12:00:00Z"
        assert await conditions(world) == {
            "AbleToScale": ("True", "SucceededRescale"),
            "ScalingActive": ("True", "ValidMetricFound"),
            "ScalingLimited": ("False", "DesiredWithinRange"),
        }
        said = [held.object(EVENTS)["message"] for held in world.cache.all(EVENTS, "default")]
        assert said == ["New size: 4; reason: cpu resource utilization (percentage of request) above target"]

    tell(story)


def test_a_workload_shrinks_when_no_recommendation_of_five_minutes_was_higher() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=10m"), running("b", "cpu=10m"))
        await scaler.scale_all()
        assert await replicas(world) == 2
        assert (await conditions(world))["AbleToScale"] == ("True", "ScaleDownStabilized")
        world.later(301)
        await scaler.scale_all()
        assert await replicas(world) == 1

    tell(story)


def test_a_status_that_stays_the_same_is_not_written_again() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=80m"), running("b", "cpu=80m"))
        await scaler.scale_all()
        before = world.cache.revision
        world.later(15)
        await scaler.scale_all()
        assert world.cache.revision == before

    tell(story)


def test_limits_hold_whatever_the_metrics_say() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=5"), replicas=1, minReplicas=3, maxReplicas=5)
        await scaler.scale_all()
        assert await replicas(world) == 3
        await scaler.scale_all()
        assert await replicas(world) == 5
        assert (await conditions(world))["ScalingLimited"] == ("True", "TooManyReplicas")

    tell(story)


def test_what_cannot_be_measured_scales_nothing_and_is_said() -> None:
    async def story(world: World) -> None:
        metric = {"metric": {"name": "hits"}, "target": {"type": "AverageValue", "averageValue": "1"}}
        scaler = await begin(world, running("a", "cpu=1", on="other"), metrics=[{"type": "Pods", "pods": metric}])
        await scaler.scale_all()
        assert await replicas(world) == 2
        assert (await conditions(world))["ScalingActive"] == ("False", "FailedGetPodsMetric")

    tell(story)


def test_pods_of_other_nodes_have_no_metrics() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=1", on="real"))
        await world.create(node("real", "containerd://2"))
        await scaler.scale_all()
        assert (await conditions(world))["ScalingActive"] == ("False", "FailedGetResourceMetric")
        assert await replicas(world) == 2

    tell(story)


def test_a_target_that_is_not_there_and_one_that_is_at_zero_are_left_alone() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, replicas=0)
        await scaler.scale_all()
        assert (await conditions(world))["ScalingActive"] == ("False", "ScalingDisabled")
        await world.registry.delete(Target(DEPLOYMENTS, "default", "web"), ANN)
        await scaler.scale_all()
        assert (await conditions(world))["AbleToScale"] == ("False", "FailedGetScale")

    tell(story)


def test_two_autoscalers_of_the_same_pods_scale_nothing() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=1"))
        await world.create(autoscaler("b"))
        await scaler.scale_all()
        assert await replicas(world) == 2
        assert (await conditions(world))["ScalingActive"] == ("False", "AmbiguousSelector")

    tell(story)


def test_of_many_autoscalers_of_the_same_pods_a_message_names_some() -> None:
    """Each names the others, so that all of them together would be written as often as there are autoscalers."""

    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=1"))
        for number in range(MOST_NAMED + 4):
            await world.create(autoscaler(f"b{number}"))
        await scaler.scale_all()
        found = (await world.get(AUTOSCALERS, "a"))["status"]["conditions"]
        (message,) = (one["message"] for one in found if one["type"] == "ScalingActive")
        assert message.count("default/") == MOST_NAMED
        assert message.endswith("and 5 more]")

    tell(story)


def test_a_status_stays_readable_whatever_a_pod_is_said_to_use() -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=1000000000E"))
        await scaler.scale_all()
        body = encode(await world.get(AUTOSCALERS, "a"))
        (metric,) = normalize(AUTOSCALERS, body)["status"]["currentMetrics"]
        assert metric["resource"]["current"] == {
            "averageValue": "9223372036854775807m",
            "averageUtilization": 2**31 - 1,
        }
        assert usage_of({USAGE: "cpu=1" + " " * 2_000}) == NOTHING

    tell(story)


def test_an_autoscaler_that_fails_keeps_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(world: World) -> None:
        scaler = await begin(world, running("a", "cpu=150m"), running("b", "cpu=170m"))
        broken = autoscaler("0")
        broken["spec"]["scaleTargetRef"]["name"] = "broken"
        await world.create(broken)

        def find(cache: Cache, namespace: str, reference: Mapping[str, Any]) -> ScaleTarget | str:
            if reference["name"] == "broken":
                raise ValueError("an error in our own code")
            return workload_of(cache, namespace, reference)

        monkeypatch.setattr("situate.server.usage.autoscaler.workload_of", find)
        await scaler.scale_all()
        assert await replicas(world) == 4

    tell(story)


def test_policies_limit_how_fast_a_workload_grows() -> None:
    async def story(world: World) -> None:
        up = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
        scaler = await begin(world, running("a", "cpu=1"), running("b", "cpu=1"), behavior={"scaleUp": up})
        await scaler.scale_all()
        assert await replicas(world) == 3
        assert (await conditions(world))["ScalingLimited"] == ("True", "ScaleUpLimit")
        world.later(30)
        await scaler.scale_all()
        assert await replicas(world) == 3
        world.later(31)
        await scaler.scale_all()
        assert await replicas(world) == 4

    tell(story)


def test_metrics_are_those_of_the_annotation_and_a_nodes_are_their_sum() -> None:
    async def story(world: World) -> None:
        await begin(
            world, running("a", "cpu=150m,memory=64Mi"), running("b", "cpu=nonsense"), running("c", "memory=1Mi")
        )
        found = {one["metadata"]["name"]: one for one in pod_metrics(world.cache, None, "default", "") if one}
        assert found["a"]["containers"] == [{"name": "c", "usage": {"cpu": "150m", "memory": "64Mi"}}]
        assert found["b"]["containers"] == [{"name": "c", "usage": {"cpu": "0", "memory": "0"}}]
        assert found["a"]["metadata"]["labels"] == {"app": "web"}
        (whole,) = [one for one in node_metrics(world.cache, None, "", "n1") if one]
        assert whole["usage"] == {"cpu": "150m", "memory": "65Mi"}

    tell(story)
