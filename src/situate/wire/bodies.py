"""Request bodies for an API server, as JSON bytes: bindings, events, delete options.

These come by the thousand a second, so they are put together from parts, and only what may need escaping is encoded.
Opens nothing and knows no clock: times come in as nanoseconds since the epoch.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, Literal

import msgspec

from situate.core.changes import PodRef

NANOS: Final = 1_000_000_000
TERM: Final = "situate.dev/term"
"""Annotation of a Binding: the term of the scheduler's lease in which it was decided."""

quoted = msgspec.json.Encoder().encode
"""A string as JSON, with its quotes."""


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def seconds_time(ns: int) -> str:
    """As Kubernetes writes a Time."""
    return f"{_second(ns // NANOS)}Z"


def micro_time(ns: int) -> str:
    """As Kubernetes writes a MicroTime."""
    return f"{_second(ns // NANOS)}.{ns % NANOS // 1_000:06d}Z"


def binding(
    ref: PodRef, node: str, version: str, term: int | None = None, annotations: Sequence[tuple[str, str]] = ()
) -> bytes:
    """A Binding that holds for this pod and no other of its name; and, if `version` is given, as it was then.

    `term`: it holds only while this is the term of the scheduler's lease, with a server that knows of terms.
    `annotations`: the server writes them on the pod, as it binds it.
    """
    notes = [b"%b:%b" % (quoted(key), quoted(value)) for key, value in annotations]
    if term is not None:
        notes.append(b'%b:"%d"' % (quoted(TERM), term))
    return b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":%b,"namespace":%b%b%b},"target":{%b,"name":%b}}' % (
        quoted(ref.name),
        quoted(ref.namespace),
        preconditions(ref.uid, version),
        b',"annotations":{%b}' % b",".join(notes) if notes else b"",
        b'"apiVersion":"v1","kind":"Node"',
        quoted(node),
    )


def preconditions(uid: str, version: str = "") -> bytes:
    """Metadata fields that the server compares; empty ones are left out."""
    asked = b',"uid":%b' % quoted(uid) if uid else b""
    return asked + b',"resourceVersion":%b' % quoted(version) if version else asked


def delete_options(uid: str) -> bytes:
    """Delete the object with this uid, with its own grace period."""
    return b'{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":%b}}' % quoted(uid)


def series(count: int, last_ns: int) -> bytes:
    return b'{"count":%d,"lastObservedTime":"%b"}' % (count, micro_time(last_ns).encode())


def event(
    name: str,
    at_ns: int,
    regarding: PodRef,
    *,
    controller: str,
    instance: str,
    kind: Literal["Normal", "Warning"],
    reason: str,
    action: str,
    note: str,
    version: str = "",
    related: PodRef | None = None,
    repeated: bytes = b"",
) -> bytes:
    """An Event of events.k8s.io/v1 about a pod. `repeated`: what `series` says, if it happened more than once."""
    return (
        b'{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":%b,"namespace":%b},"eventTime":"%b",'
        b'"reportingController":%b,"reportingInstance":%b,"type":"%b","reason":%b,"action":%b,"note":%b,'
        b'"regarding":%b%b%b}'
        % (
            quoted(name),
            quoted(regarding.namespace or "default"),
            micro_time(at_ns).encode(),
            quoted(controller),
            quoted(instance),
            kind.encode(),
            quoted(reason),
            quoted(action),
            quoted(note),
            _reference(regarding, version),
            b',"related":' + _reference(related) if related is not None else b"",
            b',"series":' + repeated if repeated else b"",
        )
    )


def _reference(ref: PodRef, version: str = "") -> bytes:
    return b'{"apiVersion":"v1","kind":"Pod","namespace":%b,"name":%b%b}' % (
        quoted(ref.namespace),
        quoted(ref.name),
        preconditions(ref.uid, version),
    )
