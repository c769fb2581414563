"""The devices of hollow nodes: from the file to ResourceSlices."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest

from situate.agent.node_devices import PUBLISHED, DevicePublisher, DeviceSet, slices_of
from situate.cli.input.node_devices import node_devices
from situate.wire.errors import InputError

EXAMPLE = Path(__file__).parents[2] / "examples/devices/node-devices.yaml"
Body = dict[str, Any]


class Slices:
    """A SliceStore in memory."""

    def __init__(self) -> None:
        self.held: dict[str, Body] = {}
        self.uid = "first"

    async def get(self, kind: str, namespace: str, name: str) -> Body | None:
        return {"metadata": {"name": name, "uid": self.uid}}

    async def list_slices(self, node: str) -> list[Body]:
        return [one for one in self.held.values() if one["spec"]["nodeName"] == node]

    async def put_slice(self, body: Body) -> None:
        self.held[body["metadata"]["name"]] = copy.deepcopy(body)

    async def delete_slice(self, name: str) -> None:
        del self.held[name]


def test_the_example_gives_each_node_what_it_says() -> None:
    sets = node_devices(EXAMPLE)
    names = {
        node: [[one["name"] for one in body["spec"].get("devices", ())] for body in slices_of(node, sets)]
        for node in ("node-1", "node-2", "other")
    }
    gpus = ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert names["node-1"] == [gpus, ["nic-0"], ["gpu-0-half-0", "gpu-0-half-1", "gpu-0"], []]
    assert names["node-2"] == [gpus]
    assert names["other"] == []
    pools = [body["spec"]["pool"] for body in slices_of("node-1", sets)]
    assert [(one["name"], one["resourceSliceCount"]) for one in pools] == [
        ("node-1", 1),
        ("node-1-nic", 1),
        ("node-1-mig", 2),
        ("node-1-mig", 2),
    ]


def test_many_devices_are_several_slices_of_one_pool() -> None:
    one = DeviceSet(nodes="*", driver="d", devices=[{"name": "{node}-{index}", "count": 300}])
    found = slices_of("n", [one])
    assert [len(body["spec"]["devices"]) for body in found] == [128, 128, 44]
    assert {body["spec"]["pool"]["resourceSliceCount"] for body in found} == {3}
    assert found[2]["spec"]["devices"][-1]["name"] == "n-299"


@pytest.mark.parametrize(
    "text, why",
    [
        pytest.param("- nodes: '*'\n  driver: d", "Object missing required field `devices`", id="no devices"),
        pytest.param("nodes: {}", "Expected `array`, got `object`", id="no list"),
        pytest.param(
            "- {nodes: '*', driver: d, devices: [{name: a}], x: 1}", "contains unknown field `x`", id="an unknown field"
        ),
        pytest.param(
            "- {nodes: '*', driver: d, devices: [{name: a, attribute: {}}]}",
            'unknown field "spec.devices[0].attribute"',
            id="an unknown field of a device",
        ),
        pytest.param(
            "- {nodes: '*', driver: d, devices: [{name: Nope}]}",
            "spec.devices[0].name: Invalid value",
            id="what the API server would refuse",
        ),
        pytest.param(
            "- {nodes: '*', driver: d, devices: [{name: a, capacity: {m: {value: x}}}]}",
            "quantities must match",
            id="a bad quantity",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "devices.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        node_devices(file)
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_node_owns_its_slices_and_withdraws_what_it_has_no_more() -> None:
    store = Slices()
    others = {"metadata": {"name": "x"}, "spec": {"nodeName": "n"}}
    store.held["x"] = others
    both = [DeviceSet(nodes="*", driver=driver, devices=[{"name": "a"}]) for driver in ("d", "e")]
    asyncio.run(DevicePublisher(store, both).publish("n"))
    assert sorted(store.held) == ["n-d-0-0", "n-e-1-0", "x"]
    one = store.held["n-d-0-0"]
    assert one["metadata"]["labels"] == {PUBLISHED: "n"}
    assert one["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "first", "controller": True}
    ]
    asyncio.run(DevicePublisher(store, both[:1]).publish("n"))
    assert sorted(store.held) == ["n-d-0-0", "x"], "slices of real drivers stay"
    assert store.held["n-d-0-0"]["spec"]["pool"]["generation"] == 2
