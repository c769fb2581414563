"""What pods ask of GPUs, and what nodes say of theirs."""

import pytest

from builders import node
from situate.core.model.annotations import GPU_MEMORY, GPU_MILLI
from situate.core.model.gpu import (
    GPU_RESOURCE,
    MOST_DEVICES,
    MOST_MEMORY,
    NO_GPU,
    GpuNeed,
    devices_of,
    gpu_need,
    node_devices,
)
from situate.core.model.requests import allocatable

GIB = 1 << 30


@pytest.mark.parametrize(
    "annotations, scalar, expected",
    [
        pytest.param({}, {}, NO_GPU, id="nothing"),
        pytest.param({"other": "x"}, {"example.com/fpga": 1}, NO_GPU, id="other things"),
        pytest.param({GPU_MILLI: "250"}, {}, GpuNeed(1, 250), id="a share by annotation"),
        pytest.param({}, {GPU_MILLI: 250}, GpuNeed(1, 250), id="a share by request"),
        pytest.param({GPU_MILLI: "250"}, {GPU_MILLI: 250}, GpuNeed(1, 250), id="a share by both, the same"),
        pytest.param({GPU_MILLI: "1000"}, {}, GpuNeed(1, 1000), id="a share that is all of one"),
        pytest.param({}, {GPU_RESOURCE: 4}, GpuNeed(4, 1000), id="whole devices"),
        pytest.param({GPU_MILLI: "1", GPU_MEMORY: "2Gi"}, {}, GpuNeed(1, 1, 2 * GIB), id="memory by annotation"),
        pytest.param({}, {GPU_RESOURCE: 1, GPU_MEMORY: 5}, GpuNeed(1, 1000, 5), id="memory by request"),
        pytest.param({GPU_MILLI: "1", GPU_MEMORY: "9E"}, {}, GpuNeed(1, 1, MOST_MEMORY), id="too much memory"),
    ],
)
def test_what_a_pod_asks_for(annotations: dict[str, str], scalar: dict[str, int], expected: GpuNeed) -> None:
    assert gpu_need(annotations, scalar) == expected


@pytest.mark.parametrize(
    "annotations, scalar, problem",
    [
        ({GPU_MILLI: "0"}, {}, 'annotation situate.dev/gpu-milli: "0" is not a whole number from 1 to 1000'),
        ({GPU_MILLI: "1001"}, {}, 'annotation situate.dev/gpu-milli: "1001" is not a whole number from 1 to 1000'),
        ({GPU_MILLI: "half"}, {}, 'annotation situate.dev/gpu-milli: "half" is not a whole number from 1 to 1000'),
        ({GPU_MILLI: "٥"}, {}, 'annotation situate.dev/gpu-milli: "٥" is not a whole number from 1 to 1000'),
        (
            {},
            {GPU_MILLI: 1500},
            (
                "1500 of situate.dev/gpu-milli were requested: a share of one GPU is at most 1000, and whole GPUs are "
                "requested as nvidia.com/gpu"
            ),
        ),
        (
            {GPU_MILLI: "250"},
            {GPU_MILLI: 500},
            "the annotation situate.dev/gpu-milli says 250 and the requests say 500 of situate.dev/gpu-milli",
        ),
        (
            {GPU_MILLI: "250"},
            {GPU_RESOURCE: 1},
            "a pod can ask for a share of a GPU or for whole GPUs, not for both",
        ),
        (
            {GPU_MILLI: "250", GPU_MEMORY: "much"},
            {},
            'annotation situate.dev/gpu-memory: "much" is not a quantity of memory',
        ),
        (
            {GPU_MILLI: "250", GPU_MEMORY: "-1"},
            {},
            'annotation situate.dev/gpu-memory: "-1" is not a quantity of memory',
        ),
        ({GPU_MEMORY: "1Gi"}, {}, "situate.dev/gpu-memory without a GPU"),
    ],
)
def test_what_cannot_be_asked_for_is_said(annotations: dict[str, str], scalar: dict[str, int], problem: str) -> None:
    assert gpu_need(annotations, scalar) == GpuNeed(problem=problem)


def test_another_resource_may_stand_for_whole_devices() -> None:
    asked = {"amd.com/gpu": 2, GPU_RESOURCE: 1}
    assert gpu_need({}, asked, "amd.com/gpu") == GpuNeed(2, 1000)


@pytest.mark.parametrize(
    "text, need, expected",
    [
        ("3", GpuNeed(1, 500), (3,)),
        ("0,2", GpuNeed(2, 1000), (0, 2)),
        ("0,2", GpuNeed(1, 500), None),
        ("0,0", GpuNeed(2, 1000), None),
        ("first", GpuNeed(1, 500), None),
        ("-1", GpuNeed(1, 500), None),
        ("", GpuNeed(1, 500), None),
    ],
)
def test_the_devices_in_an_annotation(text: str, need: GpuNeed, expected: tuple[int, ...] | None) -> None:
    assert devices_of(text, need) == expected


@pytest.mark.parametrize(
    "fields, expected",
    [
        pytest.param({}, (0, 0), id="none"),
        pytest.param({"allocatable": {GPU_RESOURCE: "8"}}, (8, 0), id="whole ones"),
        pytest.param({"allocatable": {GPU_RESOURCE: "8", GPU_MILLI: "4000"}}, (4, 0), id="thousandths go first"),
        pytest.param({"allocatable": {GPU_MILLI: "2900"}}, (2, 0), id="what is less than one is none"),
        pytest.param({"allocatable": {GPU_RESOURCE: "2", GPU_MEMORY: "32Gi"}}, (2, 16 * GIB), id="memory of all"),
        pytest.param(
            {"allocatable": {GPU_RESOURCE: "2"}, "labels": {GPU_MEMORY: "16Gi"}}, (2, 16 * GIB), id="of each, by label"
        ),
        pytest.param(
            {"allocatable": {GPU_RESOURCE: "2"}, "annotations": {GPU_MEMORY: "1Gi"}}, (2, GIB), id="by annotation"
        ),
        pytest.param(
            {"allocatable": {GPU_RESOURCE: "2"}, "labels": {"nvidia.com/gpu.memory": "1024"}},
            (2, GIB),
            id="as NVIDIA's discovery says it",
        ),
        pytest.param(
            {"allocatable": {GPU_RESOURCE: "2"}, "labels": {GPU_MEMORY: "lots"}}, (2, 0), id="what cannot be read"
        ),
        pytest.param({"allocatable": {GPU_RESOURCE: "100000"}}, (MOST_DEVICES, 0), id="more than are told apart"),
    ],
)
def test_what_a_node_has(fields: dict[str, dict[str, str]], expected: tuple[int, int]) -> None:
    known = node("n1", **fields)
    assert node_devices(known, allocatable(known).scalar) == expected
