"""A line of the audit log: an audit.k8s.io/v1 Event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import yaml
from msgspec import Struct

from situate.server.identity.audit.policy import BODIES, METADATA, REQUEST_RESPONSE
from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Caller
from situate.wire.bodies import micro_time
from situate.wire.errors import InputError
from situate.wire.protobuf import from_protobuf
from situate.wire.yaml import has_aliases, load_yaml

REFUSED: Final = 400
MAX_BODY_BYTES: Final = 256 * 1024
"""A longer body is left out, and the event has the annotation TRUNCATED."""
TRUNCATED: Final = "audit.k8s.io/truncated"
RECEIVED: Final = "RequestReceived"
STARTED: Final = "ResponseStarted"
COMPLETE: Final = "ResponseComplete"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
YAML: Final = "yaml"

_decode: Final = msgspec.json.Decoder().decode


class AuditRecord(Struct, frozen=True, gc=False):
    """A request that was answered."""

    caller: Caller | None
    """The user who sent it."""
    attributes: Attributes
    uri: str
    code: int
    received_ns: int
    version: str = ""
    audit_id: str = ""
    agent: str = ""
    sources: tuple[str, ...] = ()
    impersonated: Caller | None = None
    """On whose behalf, if not the caller's own."""
    decision: str = ""
    """The authorizer's: allow or forbid."""
    reason: str = ""
    long_running: bool = False
    content_type: str = ""
    """Of the request's body."""
    request: bytes = b""
    response: bytes | None = b""
    """None: it was sent piece by piece, and not kept."""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What admission says of it."""


class PendingEvent(NamedTuple):
    """An event to be encoded and written."""

    record: AuditRecord
    at_ns: int
    stage: str = COMPLETE
    level: str = METADATA
    omit_managed_fields: bool = False

    @property
    def body_bytes(self) -> int:
        if self.level not in BODIES:
            return 0
        return len(self.record.request) + (len(self.record.response or b"") if self.level == REQUEST_RESPONSE else 0)


class _Metadata(Struct, frozen=True):
    name: str = ""


class _Named(Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_decode_name: Final = msgspec.json.Decoder(_Named).decode


def named(record: AuditRecord) -> AuditRecord:
    """With the name of an object that is created: the URL does not have it."""
    attributes = record.attributes
    if attributes.verb != "create" or attributes.name or not record.request or not attributes.resource:
        return record
    try:
        name = _decode_name(record.request).metadata.name
    except (msgspec.DecodeError, ValueError, RecursionError):  # protobuf, YAML, or nothing readable
        return record
    return msgspec.structs.replace(record, attributes=attributes._replace(name=name)) if name else record


def without_bodies(record: AuditRecord) -> AuditRecord:
    return msgspec.structs.replace(record, request=b"", response=b"")


def encoded(pending: PendingEvent) -> dict[str, Any]:
    record = pending.record
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": pending.level,
        "auditID": record.audit_id,
        "stage": pending.stage,
        "requestURI": record.uri,
        "verb": record.attributes.verb,
        "user": _user(record.caller),
        "sourceIPs": record.sources,
        "userAgent": record.agent,
    }
    if pending.stage != RECEIVED:
        status: dict[str, Any] = {"metadata": {}, "code": record.code}
        if record.code >= REFUSED:
            status |= {"status": "Failure"} | ({"reason": record.reason} if record.reason else {})
        event["responseStatus"] = status
    event["requestReceivedTimestamp"] = micro_time(record.received_ns)
    event["stageTimestamp"] = micro_time(pending.at_ns)
    if record.impersonated is not None:
        event["impersonatedUser"] = _user(record.impersonated)
    if record.attributes.resource:
        event["objectRef"] = _reference(record)
    annotations = dict(record.annotations) if pending.stage != RECEIVED else {}
    if record.decision and pending.stage != RECEIVED:
        annotations["authorization.k8s.io/decision"] = record.decision
    if pending.stage == COMPLETE and pending.level in BODIES and record.attributes.resource and _add(event, pending):
        annotations[TRUNCATED] = "true"
    if annotations:
        event["annotations"] = annotations
    return event


def _add(event: dict[str, Any], pending: PendingEvent) -> bool:
    """Add the bodies. Whether one was left out, because it is too long."""
    record, left_out = pending.record, False
    wanted: list[tuple[str, bytes | None, str]] = [("requestObject", record.request, record.content_type)]
    if pending.level == REQUEST_RESPONSE and not record.long_running:
        wanted.append(("responseObject", record.response, ""))
    for name, body, content_type in wanted:
        if body is None or len(body) > MAX_BODY_BYTES:
            left_out = True
        elif body and (found := _object(body, content_type)) is not None:
            event[name] = _without_managed_fields(found) if pending.omit_managed_fields else found
    return left_out


def _object(body: bytes, content_type: str) -> Any:
    """The object in a body; None if there is none, as after an error."""
    try:
        if content_type.startswith(PROTOBUF):
            return from_protobuf(body)
        if YAML in content_type:
            return None if has_aliases(body) else next((one for one in load_yaml(body, "") if one is not None), None)
        return _decode(body)
    except (msgspec.DecodeError, yaml.YAMLError, InputError, ValueError, RecursionError):
        return None


def _without_managed_fields(found: Any) -> Any:
    if not isinstance(found, dict):
        return found
    for one in (found, *(found.get("items") or ())):
        metadata = one.get("metadata") if isinstance(one, dict) else None
        if isinstance(metadata, dict):
            metadata.pop("managedFields", None)
    return found


def _user(caller: Caller | None) -> dict[str, Any]:
    if caller is None:
        return {}
    shown: dict[str, Any] = {"username": caller.name, "groups": caller.groups}
    if caller.uid:
        shown["uid"] = caller.uid
    if caller.extra:
        shown["extra"] = dict(caller.extra)
    return shown


def _reference(record: AuditRecord) -> dict[str, str]:
    attributes = record.attributes
    parts = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": record.version,
        "subresource": attributes.subresource,
    }
    return {key: value for key, value in parts.items() if value}
