from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.server.kinds.core.pod import warnings
from situate.server.kinds.core.pod.warnings import pod_warnings

PORTS = [
    {"containerPort": number, "hostPort": host, "hostIP": address, "protocol": protocol}
    for number, host, address, protocol in product((80, 81), (0, 1, 2), ("", "10.0.0.1", "10.0.0.2"), ("TCP", "UDP"))
    if host or not address
]


def pod(ports: list[dict[str, Any]]) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}}


def overlap(one: dict[str, Any], other: dict[str, Any]) -> str:
    if (one["containerPort"], one["protocol"]) != (other["containerPort"], other["protocol"]):
        return ""
    host, address, their_host, theirs = one["hostPort"], one["hostIP"], other["hostPort"], other["hostIP"]
    if host == their_host and address == theirs:
        return "duplicate"
    if not host or not their_host:
        return "overlapping"
    return "dangerously ambiguous" if host == their_host and bool(address) != bool(theirs) else ""


@given(st.lists(st.sampled_from(PORTS), max_size=8))
def test_every_pair_of_ports_that_overlap_is_told_in_their_order(ports: list[dict[str, Any]]) -> None:
    at = "spec.containers[0].ports[{}]".format
    assert pod_warnings(pod(ports)) == [
        f"{at(index)}: {how} port definition with {at(earlier)}"
        for index, one in enumerate(ports)
        for earlier, other in enumerate(ports[:index])
        if (how := overlap(one, other))
    ]


def test_no_more_pairs_are_compared_than_a_response_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "MOST_WARNINGS", 10)
    assert 10 <= len(pod_warnings(pod(PORTS[:1] * 50))) < 20
