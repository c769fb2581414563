"""What an event says of a request, stage by stage, without a log around it."""

from typing import Any

import pytest

from situate.server.identity.audit import event as audit_event
from situate.server.identity.audit.event import (
    COMPLETE,
    RECEIVED,
    STARTED,
    AuditRecord,
    PendingEvent,
    encoded,
    named,
    without_bodies,
)
from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Caller

JANE = Caller("jane", ("dev",))
GET = Attributes("get", "", "secrets", "", "shop", "key")
CREATE = Attributes("create", "", "secrets", "", "shop")


def record(asked: Attributes = GET, code: int = 200, **more: Any) -> AuditRecord:
    return AuditRecord(more.pop("caller", JANE), asked, "/x", code, 1, **more)


def shown(made: AuditRecord, stage: str = COMPLETE, level: str = "RequestResponse", **more: Any) -> dict[str, Any]:
    return encoded(PendingEvent(made, 2, stage, level, **more))


@pytest.mark.parametrize(
    "code, reason, expected",
    [
        (200, "", {"metadata": {}, "code": 200}),
        (399, "Odd", {"metadata": {}, "code": 399}),
        (400, "", {"metadata": {}, "code": 400, "status": "Failure"}),
        (403, "Forbidden", {"metadata": {}, "code": 403, "status": "Failure", "reason": "Forbidden"}),
    ],
)
def test_the_status_of_a_refusal_is_failure_with_its_reason(code: int, reason: str, expected: Any) -> None:
    assert shown(record(code=code, reason=reason))["responseStatus"] == expected


def test_before_the_answer_nothing_of_it_is_known() -> None:
    made = record(decision="allow", request=b"{}", response=b"{}")
    assert not {"responseStatus", "annotations", "requestObject"} & set(shown(made, RECEIVED))
    started = shown(made, STARTED)
    assert started["annotations"] == {"authorization.k8s.io/decision": "allow"}
    assert started["responseStatus"]["code"] == 200
    assert "requestObject" not in started


def test_only_a_request_for_a_resource_has_a_reference_and_bodies() -> None:
    made = record(Attributes("get", path="/x"), request=b"{}", response=None)
    assert not {"objectRef", "requestObject", "annotations"} & set(shown(made))
    assert shown(record(request=b"{}"))["objectRef"] == {"resource": "secrets", "namespace": "shop", "name": "key"}


def test_a_caller_that_is_unknown_has_no_name() -> None:
    assert shown(record(caller=None))["user"] == {}
    assert shown(record())["user"] == {"username": "jane", "groups": ("dev",)}
    assert "impersonatedUser" not in shown(record())


@pytest.mark.parametrize(
    "level, response, size",
    [
        ("Metadata", b"four", 0),
        ("Request", b"four", 3),
        ("RequestResponse", b"four", 7),
        ("RequestResponse", None, 3),
    ],
)
def test_the_bodies_that_a_level_logs_are_counted(level: str, response: bytes | None, size: int) -> None:
    assert PendingEvent(record(request=b"123", response=response), 1, COMPLETE, level).body_bytes == size


@pytest.mark.parametrize("name", ["requestObject", "responseObject"])
def test_a_body_that_is_too_long_is_left_out_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_event, "MAX_BODY_BYTES", 10)
    long, short = b'{"a": "long"}', b'{"a": 1}'
    first = name == "requestObject"
    made = shown(record(request=long if first else short, response=short if first else long))
    assert {"requestObject", "responseObject"} & set(made) == {"requestObject", "responseObject"} - {name}
    assert made["annotations"] == {"audit.k8s.io/truncated": "true"}


def test_bodies_that_are_logged_are_not_called_truncated() -> None:
    made = shown(record(request=b'{"a": 1}', response=b'{"b": 2}'))
    assert (made["requestObject"], made["responseObject"]) == ({"a": 1}, {"b": 2})
    assert "annotations" not in made
    assert "responseObject" not in shown(record(request=b"{}", response=b"{}", long_running=True))


@pytest.mark.parametrize(
    "body, left",
    [
        (b'{"metadata": {"name": "a", "managedFields": [1]}}', {"metadata": {"name": "a"}}),
        (b'{"items": null, "metadata": {"managedFields": 1}}', {"items": None, "metadata": {}}),
        (b'{"items": [1, {"metadata": 2}, {"metadata": {"managedFields": 1}}]}', None),
        (b'{"metadata": "odd"}', {"metadata": "odd"}),
        (b"[1]", [1]),
    ],
)
def test_managed_fields_are_left_out_of_whatever_has_them(body: bytes, left: Any) -> None:
    found = shown(record(request=body), omit_managed_fields=True)["requestObject"]
    assert found == (left or {"items": [1, {"metadata": 2}, {"metadata": {}}]})
    assert "managedFields" not in str(found)
    assert ("managedFields" in str(shown(record(request=body))["requestObject"])) is (b"managedFields" in body)


def test_of_several_yaml_documents_the_first_that_is_not_empty_is_logged() -> None:
    made = record(content_type="application/yaml", request=b"---\n---\na: 1\n---\nb: 2\n")
    assert shown(made)["requestObject"] == {"a": 1}
    assert "requestObject" not in shown(record(content_type="application/yaml", request=b"---\n"))
    assert "requestObject" not in shown(record(content_type="application/vnd.kubernetes.protobuf", request=b"{}"))


@pytest.mark.parametrize(
    "asked, body, name",
    [
        (CREATE, b'{"metadata": {"name": "new"}}', "new"),
        (CREATE._replace(name="url"), b'{"metadata": {"name": "new"}}', "url"),
        (CREATE._replace(verb="deletecollection"), b'{"metadata": {"name": "new"}}', ""),
        (Attributes("create", path="/x"), b'{"metadata": {"name": "new"}}', ""),
        (CREATE, b'{"metadata": {}}', ""),
        (CREATE, b"", ""),
        (CREATE, b"a: 1", ""),
    ],
)
def test_the_name_of_a_new_object_is_in_its_body(asked: Attributes, body: bytes, name: str) -> None:
    assert named(record(asked, request=body)).attributes == asked._replace(name=name)


def test_without_bodies_all_else_stays() -> None:
    made = record(request=b"{}", response=None, audit_id="id")
    assert without_bodies(made) == record(request=b"", response=b"", audit_id="id")
