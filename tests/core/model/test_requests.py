"""Effective requests are Kubernetes', for filtering, for accounting and for scoring."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from builders import container, node, pod
from situate.core.model.defaults import defaulted
from situate.core.model.pod import ContainerStatus, Pod, PodCondition, ResourceRequirements
from situate.core.model.requests import (
    DEFAULT_MEMORY,
    DEFAULT_MILLI_CPU,
    Requests,
    Resources,
    allocatable,
    fit_requests,
    pod_requests,
    score_requests,
)
from situate.wire.objects import decode_pod

MI = 2**20


def sidecar(name: str, **fields: Any) -> Any:
    return container(name, restart_policy="Always", **fields)


@pytest.mark.parametrize(
    "asking, milli_cpu, memory_mi",
    [
        pytest.param(pod(cpu="250m", memory="64Mi"), 250, 64, id="one container"),
        pytest.param(
            pod(containers=(container("a", cpu="1", memory="1Mi"), container("b", cpu="500m", memory="2Mi"))),
            1500,
            3,
            id="containers add up",
        ),
        pytest.param(
            pod(cpu="1", memory="2Mi", init_containers=(container("i", cpu="3", memory="1Mi"),)),
            3000,
            2,
            id="of init containers, each resource's largest counts",
        ),
        pytest.param(
            pod(cpu="1", memory="0", init_containers=(container("i", cpu="2"), container("j", cpu="2"))),
            2000,
            0,
            id="init containers run one after the other",
        ),
        pytest.param(
            pod(cpu="1", memory="0", init_containers=(sidecar("s", cpu="2"),)), 3000, 0, id="a sidecar runs beside"
        ),
        pytest.param(
            pod(cpu="1", memory="0", init_containers=(sidecar("s", cpu="2"), container("i", cpu="4"))),
            6000,
            0,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            pod(cpu="1", memory="0", init_containers=(container("i", cpu="4"), sidecar("s", cpu="2"))),
            4000,
            0,
            id="but not beside those after it",
        ),
        pytest.param(
            pod(cpu="1", memory="1Mi", overhead={"cpu": "250m", "memory": "1Mi"}), 1250, 2, id="overhead on top"
        ),
        pytest.param(
            pod(cpu="1", memory="1Mi", resources=ResourceRequirements(requests={"cpu": "2"})),
            2000,
            1,
            id="the pod's own requests stand for its containers', resource by resource",
        ),
        pytest.param(
            pod(cpu="1", memory="0", overhead={"cpu": "1"}, resources=ResourceRequirements(requests={"cpu": "2"})),
            3000,
            0,
            id="overhead on top of the pod's own requests",
        ),
        pytest.param(
            pod(containers=(container("a", cpu="0.5m", memory="0"), container("b", cpu="0.5m", memory="0"))),
            2,
            0,
            id="each entry is rounded up to a thousandth",
        ),
    ],
)
def test_requests_of_a_pod(asking: Pod, milli_cpu: int, memory_mi: int) -> None:
    for requests in (pod_requests(asking), fit_requests(asking)):
        assert (requests.milli_cpu, requests.memory) == (milli_cpu, memory_mi * MI)


def test_other_resources_count_by_name_and_unknown_ones_not_at_all() -> None:
    asked = {
        "nvidia.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "ephemeral-storage": "1Ki",
        "unknown": "7",
        "example.com/a": 0,
    }
    requests = pod_requests(pod(requests=asked))
    assert requests.ephemeral_storage == 1024
    assert requests.scalar == {"nvidia.com/gpu": 2, "hugepages-2Mi": 4 * MI}


def test_containers_that_ask_for_nothing_count_a_little_when_scored() -> None:
    asking = pod(
        containers=(container("a", cpu="1"), container("b", memory="1Mi"), container("c", cpu="0", memory="0"))
    )
    requests = pod_requests(asking)
    assert (requests.milli_cpu, requests.memory) == (1000, MI)
    assert requests.nonzero_milli_cpu == 1000 + DEFAULT_MILLI_CPU
    assert requests.nonzero_memory == MI + DEFAULT_MEMORY
    assert (DEFAULT_MILLI_CPU, DEFAULT_MEMORY) == (100, 200 * MI)


def test_the_pods_own_requests_count_on_its_node_and_are_overlooked_when_it_is_scored() -> None:
    """So it is in Kubernetes: the scorer of NodeResourcesFit is not told of pod-level resources."""
    asking = pod(resources=ResourceRequirements(requests={"cpu": "2"}))
    assert (fit_requests(asking).milli_cpu, pod_requests(asking).milli_cpu) == (2000, 2000)
    assert pod_requests(asking).nonzero_milli_cpu == 2000
    assert pod_requests(asking).nonzero_memory == DEFAULT_MEMORY
    assert score_requests(asking).milli_cpu == 0
    assert score_requests(asking).nonzero_milli_cpu == DEFAULT_MILLI_CPU


def resized(running: str, granted: str, reason: str = "") -> Pod:
    status = ContainerStatus(
        name="c",
        resources=ResourceRequirements(requests={"cpu": running}),
        allocated_resources={"cpu": granted},
    )
    conditions = (PodCondition(type="PodResizePending", reason=reason),) if reason else ()
    return pod(cpu="2", memory="0", container_statuses=(status,), conditions=conditions)


@pytest.mark.parametrize(
    "asking, counts",
    [
        pytest.param(resized("1", "1"), 2000, id="growing: what is wanted"),
        pytest.param(resized("3", "1"), 3000, id="shrinking: what still runs"),
        pytest.param(resized("1", "4"), 4000, id="granted and not yet running"),
        pytest.param(resized("1", "1500m", "Deferred"), 2000, id="deferred: what is wanted"),
        pytest.param(resized("1", "1500m", "Infeasible"), 1500, id="infeasible: what is wanted does not count"),
    ],
)
def test_a_pod_being_resized_counts_on_its_node_with_the_largest(asking: Pod, counts: int) -> None:
    assert pod_requests(asking).milli_cpu == counts
    assert fit_requests(asking).milli_cpu == 2000
    assert score_requests(asking).milli_cpu == 2000


def test_the_status_of_an_init_container_counts_for_sidecars_only() -> None:
    status = ContainerStatus(name="i", resources=ResourceRequirements(requests={"cpu": "9"}))
    for one, counts in ((sidecar("i", cpu="1"), 10_000), (container("i", cpu="1"), 1000)):
        asking = pod(cpu="1", memory="0", init_containers=(one,), init_container_statuses=(status,))
        assert pod_requests(asking).milli_cpu == counts


def container_status(name: str, running: str, granted: str = "") -> ContainerStatus:
    return ContainerStatus(
        name=name,
        resources=ResourceRequirements(requests={"cpu": running}) if running else None,
        allocated_resources={"cpu": granted} if granted else {},
    )


def with_own_status(asking: Pod, **amounts: str) -> Pod:
    """A pod that reports amounts of its own, beside those of its containers."""
    own = ResourceRequirements(requests=amounts)
    return replace(asking, status=replace(asking.status, resources=own, allocated_resources=amounts))


TWO: dict[str, Any] = {"containers": (container("a", cpu="1"), container("b", cpu="2"))}
RESIZED = {
    "the largest of the sums, not the sum of the largest": (
        pod(**TWO, container_statuses=(container_status("a", "2"), container_status("b", "1"))),
        4000,
        3000,
    ),
    "what runs falls back on what was granted, and that on what is wanted": (
        pod(**TWO, container_statuses=(container_status("a", "", "5"),)),
        3000,
        7000,
    ),
    "an init container counts with what it reports": (
        pod(
            containers=(container("c", cpu="1"),),
            init_containers=(container("i", cpu="1"),),
            init_container_statuses=(container_status("i", "9"),),
        ),
        1000,
        9000,
    ),
    "what is wanted and infeasible counts nowhere": (
        pod(
            **TWO,
            container_statuses=(container_status("a", "1"),),
            conditions=(PodCondition(type="PodResizePending", reason="Infeasible"),),
        ),
        3000,
        1000,
    ),
    "the pod's own status replaces that of its containers": (
        with_own_status(pod(**TWO, container_statuses=(container_status("a", "9"),)), cpu="4"),
        11000,
        4000,
    ),
}


@pytest.mark.parametrize(
    "asking, by_container, by_pod", [pytest.param(*case, id=name) for name, case in RESIZED.items()]
)
def test_a_resize_counts_by_container_or_by_pod(asking: Pod, by_container: int, by_pod: int) -> None:
    assert pod_requests(asking).milli_cpu == by_container
    assert pod_requests(asking, by_container=False).milli_cpu == by_pod


def test_amounts_beyond_int64_stop_there() -> None:
    asking = pod(containers=(container("a", cpu="1e20", memory="9Ei"), container("b", cpu="1e20", memory="9Ei")))
    requests = pod_requests(asking)
    assert (requests.milli_cpu, requests.memory) == (2**63 - 1, 2**63 - 1)


def test_plain_pods_with_the_same_requests_share_one_value() -> None:
    one, other = pod("a", cpu="123m", memory="45Mi"), pod("b", cpu="123m", memory="45Mi")
    assert pod_requests(one) is pod_requests(other)
    assert pod_requests(one) is fit_requests(one) is score_requests(one)


def test_the_room_of_a_node() -> None:
    listed = {"ephemeral-storage": "10Ki", "nvidia.com/gpu": "4", "unknown": "1", "hugepages-1Gi": "0"}
    room = allocatable(node(cpu="3500m", memory="1Gi", pods="110", allocatable=listed))
    assert room == Resources(3500, 1024 * MI, 10 * 1024, 110, {"nvidia.com/gpu": 4, "hugepages-1Gi": 0})
    assert allocatable(node()) == Resources()


def golden() -> list[dict[str, Any]]:
    """Pods, and what Kubernetes v1.36.4 counts for them: on a node, when filtering, when scoring by room."""
    path = Path(__file__).parent / "data" / "requests.jsonl.gz"
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def written(requests: Requests) -> dict[str, Any]:
    return {
        "cpu": requests.milli_cpu,
        "mem": requests.memory,
        "eph": requests.ephemeral_storage,
        "scalar": dict(requests.scalar),
    }


def test_kubernetes_counts_the_same() -> None:
    differences = []
    for case in golden():
        asking = defaulted(decode_pod(json.dumps(case["pod"]).encode()))
        counts, scored = pod_requests(asking), score_requests(asking)
        nonzero = {"ncpu": counts.nonzero_milli_cpu, "nmem": counts.nonzero_memory}
        found = {
            "node": written(counts) | nonzero,
            "fit": written(fit_requests(asking)) | {"ncpu": 0, "nmem": 0},
            "score": written(scored)
            | {"cpu": scored.nonzero_milli_cpu, "mem": scored.nonzero_memory, "ncpu": 0, "nmem": 0},
        }
        differences += [(case["pod"], way, found[way], case[way]) for way in found if found[way] != case[way]]
    assert differences == []
