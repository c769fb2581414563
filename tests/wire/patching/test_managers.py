"""managedFields: order, limits, and what is wrong with some."""

from typing import Any

import pytest

from situate.wire.patching import FieldWriter, PatchError, updated
from situate.wire.patching.fields import from_paths, to_v1
from situate.wire.patching.managers import MAX_UPDATERS, OwnedFields, OwnerId, capped, decoded, encoded

ENTRY = {"manager": "a", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}}


def share(name: str, time: str | None = None, version: str = "v1") -> OwnedFields:
    return OwnedFields(from_paths([(f"f:{name}",)]), version, time)


def test_owners_survive_the_wire() -> None:
    entries = [ENTRY | {"time": "2026-01-02T03:04:05Z"}, ENTRY | {"manager": "b", "subresource": "status"}]
    assert sorted(encoded(decoded(entries)), key=lambda entry: entry["manager"]) == entries


def test_appliers_come_first_then_the_oldest() -> None:
    owners = {
        OwnerId("c", "Update", "v1"): share("c", "2026-01-01T00:00:00Z"),
        OwnerId("b", "Update", "v1"): share("b", "2026-01-02T00:00:00Z"),
        OwnerId("d", "Apply", ""): share("d", "2026-01-03T00:00:00Z"),
        OwnerId("e", "Update", "v1"): share("e"),
    }
    assert [entry["manager"] for entry in encoded(owners)] == ["d", "e", "c", "b"]


def test_an_applier_is_one_owner_in_all_versions() -> None:
    entries = [ENTRY | {"operation": "Apply", "apiVersion": version} for version in ("v1beta1", "v1")]
    assert list(decoded(entries)) == [OwnerId("a", "Apply", "")]
    assert encoded(decoded(entries))[0]["apiVersion"] == "v1"


def test_times_are_kept_in_utc_to_the_second() -> None:
    assert encoded(decoded([ENTRY | {"time": "2026-01-02T05:04:05.678+02:00"}]))[0]["time"] == "2026-01-02T03:04:05Z"


def test_the_oldest_of_too_many_updaters_are_put_together() -> None:
    owners = {OwnerId(f"m{n:02}", "Update", "v1"): share(f"x{n}", f"2026-01-{n + 1:02}T00:00:00Z") for n in range(12)}
    owners[OwnerId("applier", "Apply", "")] = share("y", "2020-01-01T00:00:00Z")
    kept = capped(owners)
    assert sum(owner.operation == "Update" for owner in kept) == MAX_UPDATERS
    ancient = kept[OwnerId("ancient-changes", "Update", "v1")]
    assert to_v1(ancient.fields) == {"f:x0": {}, "f:x1": {}, "f:x2": {}}
    assert ancient.time == "2026-01-03T00:00:00Z"
    assert OwnerId("applier", "Apply", "") in kept


def test_updaters_of_different_versions_are_not_put_together() -> None:
    owners = {OwnerId(f"m{n:02}", "Update", f"v{n}"): share("x", version=f"v{n}") for n in range(12)}
    assert capped(owners) == owners


def test_an_owner_in_a_version_that_is_not_served_goes_with_the_next_write() -> None:
    entries = [ENTRY, ENTRY | {"manager": "old", "apiVersion": "v1beta1"}]
    live: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m", "managedFields": entries},
    }
    found = updated(live, {**live, "x": 1, "y": 2}, FieldWriter("new", "v1", "ConfigMap", "2026-01-02T03:04:05Z"))
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["new"]


def test_who_owned_something_inside_a_value_with_one_owner_owns_the_value() -> None:
    inside: dict[str, Any] = {"f:spec": {"f:nodeSelector": {"f:a": {}}, "f:tolerations": {'k:{"key":"a"}': {}}}}
    spec = {"nodeSelector": {"a": "1"}, "tolerations": [{"key": "a"}]}
    metadata = {"name": "p", "managedFields": [ENTRY | {"fieldsV1": inside}]}
    live: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    new = live | {"spec": {"nodeSelector": {"a": "1"}, "tolerations": [{"key": "b"}]}}
    found = updated(live, new, FieldWriter("new", "v1", "Pod", "2026-01-02T03:04:05Z"))
    owned = {entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]}
    assert owned == {"a": {"f:spec": {"f:nodeSelector": {}}}, "new": {"f:spec": {"f:tolerations": {}}}}


@pytest.mark.parametrize(
    "entries, message",
    [
        pytest.param({}, "must be a list", id="no list"),
        pytest.param([1], "entry 0 must be an object", id="an entry that is no object"),
        pytest.param([ENTRY | {"manager": 1}], "must have strings", id="a manager that is no string"),
        pytest.param([ENTRY | {"operation": "Guess"}], "operation must be `Apply` or `Update`", id="an operation"),
        pytest.param([ENTRY | {"apiVersion": ""}], "apiVersion must not be empty", id="no version"),
        pytest.param([ENTRY | {"fieldsType": ""}], "missing fieldsType in managed fields entry 0", id="no type"),
        pytest.param(
            [ENTRY, ENTRY | {"fieldsType": "V2"}],
            'invalid fieldsType "V2" in managed fields entry 1',
            id="another type",
        ),
        pytest.param([ENTRY | {"time": "yesterday"}], "not a time", id="no time"),
        pytest.param([ENTRY | {"fieldsV1": {"f:a": 1}}], "fieldsV1 must be an object of objects", id="no set"),
    ],
)
def test_bad_entries_are_refused(entries: Any, message: str) -> None:
    with pytest.raises(PatchError, match=message):
        decoded(entries)
