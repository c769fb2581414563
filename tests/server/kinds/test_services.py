"""Addresses and node ports that the server gives to services."""

import copy
from ipaddress import ip_address
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from server.kinds.checking import found_by
from situate.server.kinds.core.service import ADDRESSES, KIND, NODE_PORTS, allocate

Json = dict[str, Any]


def service(name: str = "s", **spec: Any) -> Json:
    made: Json = {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": [{"port": 80}], **spec}}
    KIND.strategy.default(made)
    return made


@given(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), unique=True, max_size=40))
@settings(max_examples=30, deadline=None)
def test_no_two_services_get_the_same_address_or_port(names: list[str]) -> None:
    taken: dict[str, None] = {}
    ports: dict[int, None] = {}
    for name in names:
        made = service(name, type="NodePort")
        allocate(made, taken, ports)
        address, port = made["spec"]["clusterIP"], made["spec"]["ports"][0]["nodePort"]
        assert address not in taken
        assert port not in ports
        assert ip_address(address) in ADDRESSES
        assert port in NODE_PORTS
        taken[address] = ports[port] = None


def test_the_same_service_gets_the_same_address() -> None:
    first, second = service(), service()
    allocate(first)
    allocate(second)
    assert first == second


def test_allocating_twice_changes_nothing() -> None:
    once = service(type="LoadBalancer", externalTrafficPolicy="Local")
    allocate(once)
    twice = copy.deepcopy(once)
    allocate(twice)
    assert twice == once


def test_the_next_address_is_taken_if_the_first_choice_is_not_free() -> None:
    first, second = service(), service()
    allocate(first)
    allocate(second, {first["spec"]["clusterIP"]})
    assert int(ip_address(second["spec"]["clusterIP"])) == int(ip_address(first["spec"]["clusterIP"])) + 1


def test_a_headless_service_gets_no_address_and_an_external_name_nothing() -> None:
    headless, external = service(clusterIP="None"), service(type="ExternalName", externalName="a.b")
    allocate(headless)
    allocate(external)
    assert headless["spec"]["clusterIPs"] == ["None"]
    assert "clusterIP" not in external["spec"]
    assert "ipFamilies" not in external["spec"]


def test_a_replacement_that_does_not_repeat_address_and_port_keeps_them() -> None:
    old = service(type="NodePort")
    KIND.strategy.prepare_create(old)
    new = service(type="NodePort", ports=[{"port": 8080}])
    KIND.strategy.prepare_update(new, old)
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]
    assert found_by(KIND.strategy.validate_update, new, old) == []


def test_a_node_port_goes_with_the_type() -> None:
    old = service(type="NodePort")
    KIND.strategy.prepare_create(old)
    new = copy.deepcopy(old)
    new["spec"]["type"] = "ClusterIP"
    KIND.strategy.prepare_update(new, old)
    assert "nodePort" not in new["spec"]["ports"][0]
    assert found_by(KIND.strategy.validate_update, new, old) == []
