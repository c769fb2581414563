"""RuntimeClasses: the overhead and the scheduling of pods. The texts are compared in tests/kubernetes."""

from typing import Any

import pytest

from server.registry.stories import World, namespace, no, pod, tell
from situate.server.admission.chain import chain
from situate.server.admission.runtime_class import merged_tolerations
from situate.server.requests import Object

EXISTS = {"operator": "Exists"}
OF_A = {"key": "a", "operator": "Exists"}
A_IS_B = {"key": "a", "operator": "Equal", "value": "b"}
SHORT = {**A_IS_B, "effect": "NoExecute", "tolerationSeconds": 10}
LONG = {**SHORT, "tolerationSeconds": 20}


def runtime_class(name: str, **fields: Any) -> Object:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "h",
        **fields,
    }


def of_class(name: str, **spec: Any) -> Object:
    body = pod("p")
    body["spec"] |= {"runtimeClassName": name, **spec}
    return body


def test_a_pod_gets_the_overhead_and_the_scheduling_of_its_class() -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        scheduling = {"nodeSelector": {"runtime": "vm"}, "tolerations": [OF_A]}
        await world.create(runtime_class("vm", overhead={"podFixed": {"cpu": "100m"}}, scheduling=scheduling))
        spec = (await world.create(of_class("vm", nodeSelector={"zone": "z"})))["spec"]
        assert spec["overhead"] == {"cpu": "100m"}
        assert spec["nodeSelector"] == {"zone": "z", "runtime": "vm"}
        assert OF_A in spec["tolerations"]

    tell(story, admission=chain)


@pytest.mark.parametrize(
    "spec, why",
    [
        ({"runtimeClassName": "no"}, 'pod rejected: RuntimeClass "no" not found'),
        ({"overhead": {"cpu": "1"}}, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"),
        (
            {"nodeSelector": {"runtime": "x"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = vm; pod.spec.nodeSelector[runtime] = x",
        ),
    ],
)
def test_a_pod_that_says_otherwise_is_refused(spec: Object, why: str) -> None:
    async def story(world: World) -> None:
        await world.create(namespace("default"))
        overhead = {"podFixed": {"cpu": "100m"}}
        await world.create(runtime_class("vm", overhead=overhead, scheduling={"nodeSelector": {"runtime": "vm"}}))
        assert await no(world.create(of_class("vm") | {"spec": {**of_class("vm")["spec"], **spec}})) == (
            403,
            "Forbidden",
            f'pods "p" is forbidden: {why}',
        )

    tell(story, admission=chain)


@pytest.mark.parametrize(
    "every, merged",
    [
        ([OF_A, A_IS_B], [OF_A]),
        ([A_IS_B, EXISTS, OF_A], [EXISTS]),
        ([OF_A, OF_A], [OF_A]),
        ([SHORT, LONG], [LONG]),
        ([{"key": "a"}, A_IS_B], [{"key": "a"}, A_IS_B]),
        ([{**OF_A, "effect": "NoSchedule"}, OF_A], [OF_A]),
    ],
)
def test_a_toleration_that_another_one_includes_is_left_out(every: list[Object], merged: list[Object]) -> None:
    assert merged_tolerations(every) == merged


def test_of_very_many_tolerations_only_equal_ones_are_left_out() -> None:
    """Each would be compared with each other: a request of 3 MB would take hours."""
    every = [{"key": str(number), "operator": "Exists"} for number in range(30_000)]
    with_includer = [*every, {"operator": "Exists"}]
    assert merged_tolerations(with_includer + every) == with_includer
