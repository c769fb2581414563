"""The events of a registry's scheduler, in the form of core/v1: as objects, and, for `Scheduled`, as stored bytes."""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.changes import PodRef
from situate.loop.scheduling.port import EventNames, EventSeries
from situate.server.registry.codec import encode_compact
from situate.server.registry.keys import key_of
from situate.server.requests import Object
from situate.server.resources import BY_KIND
from situate.server.uids import new_uid
from situate.wire.bodies import micro_time, seconds_time

EVENTS: Final = BY_KIND["v1", "Event"]
SCHEDULED: Final = "Scheduled"


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str
    uid: str
    creation_timestamp: str


class _PodReference(msgspec.Struct, rename="camel", gc=False):
    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str


class _StoredEvent(msgspec.Struct, rename="camel", gc=False):
    """An event that occurred once."""

    metadata: _Meta
    involved_object: _PodReference
    reason: str
    message: str
    source: dict[str, str]
    first_timestamp: None
    last_timestamp: None
    type: str
    event_time: str
    action: str
    reporting_component: str
    reporting_instance: str


def scheduled_event(pod: PodRef, node: str, controller: str, names: EventNames, now_ns: int) -> tuple[str, bytes]:
    """The key and the stored form of a `Scheduled` event, with what the registry would fill in. There is one with each
    bind, so it is encoded from structs and not from an object."""
    namespace, name = pod.namespace or "default", names.next(pod, now_ns)
    event = _StoredEvent(
        _Meta(name, namespace, new_uid(), seconds_time(now_ns)),
        _PodReference("Pod", pod.namespace, pod.name, pod.uid, "v1"),
        SCHEDULED,
        f"Successfully assigned {pod.key} to {node}",
        {},
        None,
        None,
        "Normal",
        micro_time(now_ns),
        "Binding",
        controller,
        names.instance(controller),
    )
    return key_of(EVENTS, namespace, name), encode_compact(event)


def event_object(event: EventSeries) -> Object:
    report = event.report
    body: Object = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": report.pod.namespace or "default"},
        "involvedObject": _reference(report.pod),
        "reason": report.reason,
        "message": report.note,
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": report.type,
        "eventTime": micro_time(event.at_ns),
        "action": report.action,
        "reportingComponent": event.controller,
        "reportingInstance": event.instance,
    }
    if report.related is not None:
        body["related"] = _reference(report.related)
    if event.count > 1:
        body["series"] = series_of(event)
    return body


def series_of(event: EventSeries) -> Object:
    return {"count": event.count, "lastObservedTime": micro_time(event.last_ns)}


def _reference(ref: PodRef) -> Object:
    return {"kind": "Pod", "namespace": ref.namespace, "name": ref.name, "uid": ref.uid, "apiVersion": "v1"}
