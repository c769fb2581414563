"""What is written in the status of a claim: configurations, and the nodes that can use the devices."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert

from device_builders import device, device_class, exactly, slice_of
from situate.core.devices.allocated import NOTHING_USED
from situate.core.devices.allocator import NoSolution, allocate
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Inventory, NodeFacts
from situate.core.devices.requests import AllocatorInputs
from situate.core.devices.results import allocation_results
from situate.core.devices.selectors import SelectorAnswers
from situate.core.model.devices import AllocationResult, ResourceClaim, ResourceSlice
from situate.core.model.nodeselector import NodeSelector
from situate.core.plugins.support.device_selectors import selector_compiler
from situate.core.versions import V1_36, V1_37, KubernetesRules


def result(*slices: ResourceSlice, rules: KubernetesRules = V1_36, config: Any = (), **spec: Any) -> AllocationResult:
    inventory = Inventory()
    for one in slices:
        inventory.put(None, one)
    classes = {"gpu": device_class(config=[{"opaque": {"driver": "d", "parameters": {"of": "class"}}}])}
    inputs = AllocatorInputs(classes, SelectorAnswers(selector_compiler(rules.devices)), rules.devices)
    devices = {"requests": [exactly("a"), exactly("b")], "config": list(config), **spec}
    claim = convert({"metadata": {"name": "c"}, "spec": {"devices": devices}}, ResourceClaim)
    pools = inventory.pools(NodeFacts("n1", {"zone": "z"}))
    found = allocate([claim], [(pool, NOTHING_USED) for pool in pools], inputs)
    assert not isinstance(found, NoSolution)
    return allocation_results(found, [claim], pools, "n1", inputs)[0]


LOCAL = slice_of("n1", device("g"), device("h"))


@pytest.mark.parametrize("rules, listed", [(V1_36, [["a", "b"], ["a", "b"]]), (V1_37, [[]])])
def test_configurations_of_classes_come_first_and_those_of_the_claim_follow(rules: Any, listed: Any) -> None:
    own = [{"requests": ["a", "b"], "opaque": {"driver": "d", "parameters": 1}}]
    found = result(LOCAL, rules=rules, config=own).devices.config
    assert [(one.source, list(one.requests)) for one in found] == [
        ("FromClass", ["a", "b"]),
        *(("FromClaim", names) for names in listed),
    ]


def test_a_device_of_a_node_ties_the_claim_to_it() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    expected = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    assert result(LOCAL).node_selector == convert(expected, NodeSelector)
    bound = slice_of("", device("g", bindsToNode=True), device("h"), name="s", allNodes=True)
    assert result(bound).node_selector == convert(expected, NodeSelector)


def test_devices_of_several_nodes_tie_it_to_all_that_they_require_once() -> None:
    one = {"key": "zone", "operator": "In", "values": ["y", "z"]}
    same = {"key": "zone", "operator": "In", "values": ["z", "y"]}
    selectors = [{"nodeSelectorTerms": [{"matchExpressions": [each]}]} for each in (one, same)]
    slices = [slice_of("", device("g"), name=f"s{at}", pool=f"p{at}", nodeSelector=s) for at, s in enumerate(selectors)]
    assert result(*slices).node_selector == convert({"nodeSelectorTerms": [{"matchExpressions": [one]}]}, NodeSelector)
    everywhere = slice_of("", device("g"), device("h"), name="s", allNodes=True)
    assert result(everywhere).node_selector is None


def test_a_selector_of_several_terms_cannot_be_merged() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    odd = slice_of("", device("g"), device("h"), name="s", nodeSelector={"nodeSelectorTerms": [term, term]})
    told = "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"
    with pytest.raises(AllocationError, match=told):
        result(odd)
