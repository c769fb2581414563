"""Edits: what a person would change in a pod or a node, and that it comes to what was meant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import container, node, pod, taint
from situate.core.explain.edits import asked, asking, uncordoned, without_host_ports
from situate.core.explain.formatting import quantity, roughly
from situate.core.explain.node_shapes import shapes
from situate.core.model.pod import ContainerPort, ResourceRequirements
from situate.core.model.quantity import milli_value, value
from situate.core.state.classes import HostPort

amounts = st.integers(0, 4_000)


@given(st.lists(amounts, min_size=1, max_size=3), st.lists(st.tuples(amounts, st.booleans()), max_size=3), amounts)
def test_a_pod_that_is_to_ask_for_less_asks_for_no_more_than_that(
    running: list[int], inits: list[tuple[int, bool]], most: int
) -> None:
    made = pod(
        containers=tuple(container(f"c{at}", cpu=f"{cpu}m") for at, cpu in enumerate(running)),
        init_containers=tuple(
            container(f"i{at}", cpu=f"{cpu}m", restart_policy="Always" if sidecar else None)
            for at, (cpu, sidecar) in enumerate(inits)
        ),
    )
    less = asking(made, "cpu", most)
    assert less is not None
    assert asked(less, "cpu") == min(asked(made, "cpu"), most)


@given(st.integers(0, 1 << 50))
def test_an_amount_is_written_exactly(amount: int) -> None:
    assert milli_value(quantity("cpu", amount)) == amount
    assert value(quantity("memory", amount)) == amount


@pytest.mark.parametrize(
    "resource, amount, shown",
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("memory", 2 << 30, "2Gi"),
        ("memory", (1 << 30) + 1, "1.0Gi"),
        ("nvidia.com/gpu", 4, "4"),
    ],
)
def test_an_amount_for_reading(resource: str, amount: int, shown: str) -> None:
    assert roughly(resource, amount) == shown


def test_what_the_pod_asks_for_as_a_whole_is_not_touched() -> None:
    made = pod(cpu="1", resources=ResourceRequirements(requests={"cpu": "2"}))
    assert asking(made, "cpu", 500) is None


def test_a_request_of_nothing_is_written_out_or_the_limit_would_be_the_request() -> None:
    less = asking(pod(cpu="1", limits={"cpu": "2"}), "cpu", 0)
    assert less is not None
    assert less.spec.containers[0].resources.requests == {"cpu": "0"}


def test_of_devices_the_limit_goes_with_the_request() -> None:
    made = pod(requests={"nvidia.com/gpu": 2}, limits={"nvidia.com/gpu": 2})
    less = asking(made, "nvidia.com/gpu", 1)
    assert less is not None
    assert less.spec.containers[0].resources.limits == {"nvidia.com/gpu": "1"}


def test_a_node_that_is_uncordoned_loses_the_taint_of_the_cordon_and_no_other() -> None:
    cordon = taint("node.kubernetes.io/unschedulable")
    changed = uncordoned(node(unschedulable=True, taints=(cordon, taint("gpu"))))
    assert (changed.spec.unschedulable, changed.spec.taints) == (False, (taint("gpu"),))


def test_only_the_ports_that_are_named_are_given_up() -> None:
    ports = (ContainerPort(container_port=80, host_port=80), ContainerPort(container_port=81, host_port=81))
    freed = without_host_ports(pod(containers=(container(ports=ports),)), [HostPort("0.0.0.0", "TCP", 80)])
    assert [port.host_port for port in freed.spec.containers[0].ports] == [0, 81]


def zoned(name: str, zone: str, **fields: Any) -> Any:
    return node(name, labels={"kubernetes.io/hostname": name, "zone": zone}, **fields)


def test_nodes_of_one_shape_are_one_and_the_smallest_comes_first() -> None:
    nodes = [zoned("a1", "a", cpu=8), zoned("a2", "a", cpu=8), zoned("b1", "b", cpu=4), zoned("a1-new", "a", cpu=8)]
    made = shapes(nodes)
    assert [(one.metadata.name, like) for one, like in made] == [("b1-new", "b1"), ("a1-new-2", "a1")]
    assert made[0][0].metadata.labels == {"kubernetes.io/hostname": "b1-new", "zone": "b"}


def test_a_new_node_has_the_taints_with_a_purpose_and_not_those_of_a_bad_day() -> None:
    tainted = node(taints=(taint("gpu"), taint("node.kubernetes.io/not-ready")), unschedulable=True)
    ((made, _),) = shapes([tainted])
    assert (made.spec.taints, made.spec.unschedulable) == ((taint("gpu"),), False)
