from __future__ import annotations

import pytest
from msgspec import convert

from device_builders import device, slice_of
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Inventory, NodeFacts
from situate.core.model.devices import DeviceTaintRule, ResourceSlice
from situate.core.versions import V1_36, V1_37

N1, N2 = NodeFacts("n1", {"zone": "a"}), NodeFacts("n2", {"zone": "b"})
IN_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}


def names(inventory: Inventory, node: NodeFacts) -> list[str]:
    return [one.device.name for pool in inventory.pools(node) for one in pool.devices if one.here]


def filled(*slices: ResourceSlice) -> Inventory:
    inventory = Inventory()
    for one in slices:
        inventory.put(None, one)
    return inventory


def test_slices_are_for_the_nodes_that_they_name() -> None:
    each = {"perDeviceNodeSelection": True}
    inventory = filled(
        slice_of("n1", device("own")),
        slice_of("", device("everywhere"), name="e", pool="e", allNodes=True),
        slice_of("", device("in-a"), name="a", pool="a", nodeSelector=IN_A),
        slice_of("", device("on-1", nodeName="n1"), device("on-2", nodeName="n2"), name="p", pool="p", **each),
        slice_of("", device("nowhere"), name="x", pool="x"),
    )
    assert names(inventory, N1) == ["in-a", "everywhere", "own", "on-1"]
    assert names(inventory, N2) == ["everywhere", "on-2"]


def test_a_selector_that_cannot_be_read_fails_the_pod() -> None:
    odd = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Odd"}]}]}
    whole = filled(slice_of("", device("g"), name="s", nodeSelector=odd))
    with pytest.raises(AllocationError, match="failed to perform node selection for slice s: "):
        whole.pools(N1)
    devices = [device("g", allNodes=True), device("h", nodeSelector=odd)]
    with pytest.raises(AllocationError, match="failed to parse node selector"):
        filled(slice_of("", *devices, name="s", perDeviceNodeSelection=True)).pools(N1)


def test_only_the_newest_generation_counts() -> None:
    inventory = filled(
        slice_of("n1", device("old"), name="s1", generation=1), slice_of("n1", device("new"), name="s2", generation=2)
    )
    assert names(inventory, N1) == ["new"]


def test_a_generation_that_is_replaced_elsewhere_is_dropped_unless_it_is_complete_here() -> None:
    newer = slice_of("n2", device("new"), name="s2", pool="p", generation=2)
    assert filled(slice_of("n1", device("old"), pool="p", count=2), newer).pools(N1) == ()
    assert names(filled(slice_of("n1", device("old"), pool="p", count=1), newer), N1) == ["old"]


def test_slices_of_other_nodes_complete_a_pool() -> None:
    here, there = slice_of("n1", device("h"), pool="p", count=2), slice_of("n2", device("t"), pool="p", count=2)
    assert filled(here).pools(N1)[0].incomplete
    assert not filled(here, there).pools(N1)[0].incomplete


def test_pools_whose_devices_bind_late_come_last() -> None:
    late = slice_of("n1", device("late", bindingConditions=[]), name="s1", pool="a")
    inventory = filled(late, slice_of("n1", device("soon"), name="s2", pool="b"))
    assert names(inventory, N1) == ["soon", "late"]


def test_slices_are_taken_by_name() -> None:
    b, a = (slice_of("n1", device(name), name=name, count=2) for name in ("b", "a"))
    assert names(filled(b, a), N1) == ["a", "b"]


def test_a_slice_of_one_node_changes_that_node_alone() -> None:
    inventory = filled(slice_of("n1", device("g")))
    assert inventory.put(None, slice_of("n2", device("g"))) == "n2"
    assert inventory.put(None, slice_of("", device("g"), name="e", pool="e", allNodes=True)) is None
    assert names(inventory, N1) == ["g", "g"]


def test_equal_pools_have_equal_contents_whatever_their_names() -> None:
    inventory = filled(slice_of("n1", device("g")), slice_of("n2", device("g")))
    [here], [there] = inventory.pools(N1), inventory.pools(N2)
    assert here.content == there.content
    inventory.put(slice_of("n2", device("g")), slice_of("n2", device("g", taints=[{"key": "k"}])))
    assert inventory.pools(N2)[0].content != here.content


@pytest.mark.parametrize("rules, tainted", [(V1_36, 0), (V1_37, 1)])
def test_taint_rules_taint_the_devices_that_they_select_in_137(rules: object, tainted: int) -> None:
    inventory = filled(slice_of("n1", device("g"), device("h")))
    inventory.use_rules(rules.devices)  # type: ignore[attr-defined]
    for number, selector in enumerate(({"deviceSelector": {"device": "g"}}, {})):
        spec = {"taint": {"key": "k", "effect": "NoSchedule"}, **selector}
        rule = convert({"metadata": {"name": f"t{number}"}, "spec": spec}, DeviceTaintRule)
        inventory.put_taint_rule(f"t{number}", rule)
    assert [len(one.device.taints) for one in inventory.pools(N1)[0].devices] == [tainted, 0]
