"""What an allocation must say, and what slices may offer: rules that depend on several fields."""

from __future__ import annotations

import time
from typing import Any

import pytest

from server.kinds.checking import found_by
from situate.server.kinds.resource import deviceclass, resourceclaim, resourceslice

REQUESTS = [
    {"name": "r", "exactly": {"deviceClassName": "c"}},
    {"name": "some", "firstAvailable": [{"name": "big", "deviceClassName": "c"}]},
]
CLAIM = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": REQUESTS}}}
SHARE = "0b5f2e8a-7f0c-4c6e-9d3b-0123456789ab"


def result(**fields: Any) -> dict[str, Any]:
    return {"request": "r", "driver": "d.io", "pool": "p", "device": "a", **fields}


def allocated(*results: dict[str, Any], **devices: Any) -> list[tuple[str, str]]:
    """The fields and messages of the errors about an allocation."""
    new = {**CLAIM, "status": {"allocation": {"devices": {"results": list(results), **devices}}}}
    base = "status.allocation.devices."
    found = found_by(resourceclaim.KIND.strategy.validate_status, new, CLAIM)
    return [(cause.field.removeprefix(base), cause.message) for cause in found]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="a request"),
        pytest.param({"request": "some/big"}, id="a subrequest"),
        pytest.param({"pool": "rack/shelf"}, id="a pool with a slash"),
        pytest.param({"shareID": SHARE, "consumedCapacity": {"memory": "1Gi"}}, id="a share"),
    ],
)
def test_an_allocation_that_is_valid(fields: dict[str, Any]) -> None:
    assert allocated(result(**fields)) == []


@pytest.mark.parametrize(
    "fields, where, message",
    [
        pytest.param({"request": "other"}, "request", "must be the name of a request in the claim", id="no request"),
        pytest.param({"request": "r/big"}, "request", "must be the name of a request", id="no subrequest"),
        pytest.param({"driver": ""}, "driver", "Required value", id="no driver"),
        pytest.param({"pool": ""}, "pool", "Required value", id="no pool"),
        pytest.param({"device": "A"}, "device", "a lowercase RFC 1123 label", id="no device name"),
        pytest.param({"shareID": "x"}, "shareID", "error validating uid: invalid UUID length: 1", id="no uuid"),
        pytest.param(
            {"shareID": SHARE.upper()}, "shareID", "uid must be in RFC 4122 normalized form", id="an uuid in capitals"
        ),
    ],
)
def test_an_allocation_that_is_not(fields: dict[str, Any], where: str, message: str) -> None:
    found = allocated(result(**fields))
    assert [field for field, _ in found] == [f"results[0].{where}"]
    assert message in found[0][1]


def test_an_allocation_has_at_most_32_devices() -> None:
    assert allocated(*(result(device=f"a{at}") for at in range(32))) == []
    (found,) = allocated(*(result(device=f"a{at}") for at in range(33)))
    assert found[0] == "results"


@pytest.mark.parametrize(
    "source, message",
    [
        pytest.param("", "Required value", id="no source"),
        pytest.param("Elsewhere", 'Unsupported value: "Elsewhere"', id="an unknown source"),
    ],
)
def test_a_configuration_of_an_allocation_says_where_it_is_from(source: str, message: str) -> None:
    opaque = {"driver": "d.io", "parameters": {"a": 1}}
    assert allocated(config=[{"source": "FromClass", "requests": ["r"], "opaque": opaque}]) == []
    (found,) = allocated(config=[{"source": source, "opaque": opaque}])
    assert found[0] == "config[0].source"
    assert message in found[1]


def sliced(**spec: Any) -> list[tuple[str, str]]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    body = {"spec": {"driver": "d.io", "nodeName": "n", "pool": pool, **spec}}
    body["spec"] = {name: value for name, value in body["spec"].items() if value is not None}
    found = found_by(resourceslice.KIND.strategy.validate, body)
    return [(cause.field, cause.message) for cause in found]


COUNTERS = {"memory": {"value": "1Gi"}}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"devices": [{"name": f"a{at}"} for at in range(128)]}, id="128 devices"),
        pytest.param({"sharedCounters": [{"name": f"s{at}", "counters": COUNTERS} for at in range(8)]}, id="counters"),
        pytest.param(
            {"nodeName": None, "perDeviceNodeSelection": True, "devices": [{"name": "a", "nodeName": "n"}]},
            id="devices that say where they are",
        ),
    ],
)
def test_a_slice_that_is_valid(spec: dict[str, Any]) -> None:
    assert sliced(**spec) == []


TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
EACH = {"nodeName": None, "perDeviceNodeSelection": True}


@pytest.mark.parametrize(
    "spec, where, message",
    [
        pytest.param(
            {"devices": [{"name": f"a{at}", "taints": [{"key": "k", "effect": "None"}]} for at in range(65)]},
            "spec.devices",
            "Too many: 65: must have at most 64 items",
            id="fewer devices if they have taints",
        ),
        pytest.param(
            {"devices": [{"name": "a", "nodeName": "n"}]},
            "spec.devices[0]",
            "can only be set if `perDeviceNodeSelection` is set to true",
            id="a device with a place in a slice with a place",
        ),
        pytest.param(
            {**EACH, "devices": [{"name": "a"}]}, "spec.devices[0]", "Required value", id="a device without a place"
        ),
        pytest.param(
            {**EACH, "devices": [{"name": "a", "nodeName": "n", "allNodes": True}]},
            "spec.devices[0]",
            'Invalid value: "{`nodeName`, `allNodes`}": exactly one of',
            id="a device with two places",
        ),
        pytest.param(
            {"sharedCounters": [{"name": f"s{at}", "counters": COUNTERS} for at in range(9)]},
            "spec.sharedCounters",
            "must have at most 8 items",
            id="nine sets of counters",
        ),
        pytest.param(
            {"sharedCounters": [{"name": "s"}]}, "spec.sharedCounters[0].counters", "Required value", id="no counters"
        ),
        pytest.param(
            {"nodeName": None, "nodeSelector": {"nodeSelectorTerms": [TERM, TERM]}},
            "spec.nodeSelector.nodeSelectorTerms",
            "must have exactly one node selector term",
            id="two terms",
        ),
    ],
)
def test_a_slice_that_is_not(spec: dict[str, Any], where: str, message: str) -> None:
    found = sliced(**spec)
    assert [field for field, _ in found] == [where]
    assert message in found[0][1]


def test_long_expressions_are_refused_before_they_are_compiled() -> None:
    """Each is short enough; together they would keep everybody waiting for a minute."""
    texts = [f"{'[1].all(x,x==1)&&' * 500}{at} == {at}" for at in range(300)]
    requests = [
        {"name": f"r{at}", "exactly": {"deviceClassName": "c", "selectors": [{"cel": {"expression": text}}]}}
        for at, text in enumerate(texts)
    ]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    started = time.process_time()
    [found] = found_by(resourceclaim.KIND.strategy.validate, claim)
    message = "Forbidden: the CEL expressions may have 16384 characters together"
    assert (found.field, found.message) == ("spec.devices.requests", message)
    device_class = {"metadata": {"name": "c"}, "spec": {"selectors": [{"cel": {"expression": text}} for text in texts]}}
    [found] = found_by(deviceclass.KIND.strategy.validate, device_class)
    assert (found.field, found.message) == ("spec.selectors", message)
    assert time.process_time() - started < 1.0
