"""ObjectMeta: what a real server was not asked, as sizes and what may not change."""

import copy
from typing import Any

import pytest

from situate.server.kinds.metadata import MAX_ANNOTATIONS, validate_metadata, validate_metadata_update
from situate.server.kinds.names import dns_label, path_segment, subdomain

Json = dict[str, Any]


def obj(**meta: Any) -> Json:
    return {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1", "uid": "u", **meta}}


def test_annotations_may_be_256_kib_and_not_a_byte_more() -> None:
    assert validate_metadata(obj(annotations={"k": "v" * (MAX_ANNOTATIONS - 1)}), subdomain, True) == []
    (cause,) = validate_metadata(obj(annotations={"k": "v" * MAX_ANNOTATIONS}), subdomain, True)
    assert (cause.field, cause.message) == ("metadata.annotations", "Too long: may not be more than 262144 bytes")
    assert cause.reason == "FieldValueTooLong"


def test_annotations_are_counted_in_bytes() -> None:
    assert validate_metadata(obj(annotations={"k": "ä" * (MAX_ANNOTATIONS // 2)}), subdomain, True)


def test_a_name_is_checked_by_the_rule_of_its_kind() -> None:
    assert validate_metadata(obj(name="a.b"), subdomain, True) == []
    assert [one.message for one in validate_metadata(obj(name="a.b"), dns_label, True)] == [
        'Invalid value: "a.b": must not contain dots'
    ]
    assert validate_metadata(obj(name="Any: thing"), path_segment, True) == []
    assert [one.message for one in validate_metadata(obj(name="a/b%"), path_segment, True)] == [
        "Invalid value: \"a/b%\": may not contain '/'",
        "Invalid value: \"a/b%\": may not contain '%'",
    ]


def test_a_namespace_is_needed_or_forbidden() -> None:
    no_namespace = obj()
    del no_namespace["metadata"]["namespace"]
    assert [one.message for one in validate_metadata(no_namespace, subdomain, True)] == ["Required value"]
    assert [one.message for one in validate_metadata(obj(), subdomain, False)] == [
        "Forbidden: not allowed on this type"
    ]


@pytest.mark.parametrize("key", ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"])
def test_what_the_server_wrote_may_not_change(key: str) -> None:
    old = obj(creationTimestamp="2026-01-01T00:00:00Z", deletionTimestamp="2026-01-01T00:00:00Z")
    new = copy.deepcopy(old)
    new["metadata"][key] = "other"
    (cause,) = validate_metadata_update(new, old)
    assert (cause.field, cause.message) == (f"metadata.{key}", 'Invalid value: "other": field is immutable')


def test_an_update_needs_a_version() -> None:
    new = obj()
    del new["metadata"]["resourceVersion"]
    (cause,) = validate_metadata_update(new, obj())
    assert cause.message == 'Invalid value: "": must be specified for an update'


def test_a_generation_does_not_go_back() -> None:
    (cause,) = validate_metadata_update(obj(generation=1), obj(generation=2))
    assert (cause.field, cause.message) == ("metadata.generation", "Invalid value: 1: must not be decremented")


def test_nobody_holds_on_to_what_is_being_deleted() -> None:
    old = obj(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b"])
    assert validate_metadata_update(obj(deletionTimestamp="2026-01-01T00:00:00Z"), old) == []
    new = obj(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b", "c/d"])
    (cause,) = validate_metadata_update(new, old)
    assert cause.message == (
        'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d"}'
    )


def test_managed_fields_are_applied_or_updated() -> None:
    causes = validate_metadata(obj(managedFields=[{"operation": "Odd", "fieldsType": "V0"}]), subdomain, True)
    assert [one.field for one in causes] == [
        "metadata.managedFields[0].operation",
        "metadata.managedFields[0].fieldsType",
    ]
