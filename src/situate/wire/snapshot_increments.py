r"""Increments of NodeSnapshots on a watch: the pods that came and went since the last version that was sent.

A client asks for them with ACCEPT. The server sends the first event about a node whole, and later ones in the shorter
form: whole, or as

    {"kind": "NodeSnapshotIncrement", "metadata": <of the new version>, "status": <of the new version>, "spec":
     {"fromVersion": "55", "removed": ["<uid>", ...], "added": [<pod>, ...], "configuration": <if it is another one>}}

An increment applies to the version `fromVersion` and to no other. If the client does not have that one, it asks for
everything again. A version plus its increment is the next version, byte for byte in every pod and in their order.
"""

from __future__ import annotations

from typing import Final

import msgspec

KIND: Final = "NodeSnapshotIncrement"
GROUP: Final = "situate.dev"
VERSION: Final = "v1alpha1"
ACCEPT: Final = f"application/json;as={KIND};g={GROUP};v={VERSION},application/json"

_MARK: Final = f'"kind":"{KIND}"'.encode()
_MARKED_WITHIN: Final = 64
"""The kind comes first in an object, so that whole events need not be searched for it."""


class MissedError(Exception):
    """The increment is not of the version that is held."""


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    pods: tuple[msgspec.Raw, ...] = ()
    configuration: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Body(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: str
    api_version: str
    metadata: msgspec.Raw
    spec: _Spec
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _IncrementSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    from_version: str
    removed: tuple[str, ...] = ()
    added: tuple[msgspec.Raw, ...] = ()
    configuration: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Increment(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: str
    api_version: str
    metadata: msgspec.Raw
    spec: _IncrementSpec
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Identified(msgspec.Struct, frozen=True):
    uid: str


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


_encode: Final = msgspec.json.Encoder().encode
_decode_body: Final = msgspec.json.Decoder(_Body).decode
_decode_increment: Final = msgspec.json.Decoder(_Increment).decode
_decode_event: Final = msgspec.json.Decoder(_Event).decode
_decode_uid: Final = msgspec.json.Decoder(_Identified).decode
_decode_metadata: Final = msgspec.json.Decoder(_Metadata).decode


class IncrementWriter:
    """The events of one watch, as the server sends them."""

    def __init__(self) -> None:
        self._sent: dict[str, tuple[str, _Body]] = {}
        """By name, the last version that this watch has sent."""

    def line(self, event_type: str, name: str, version: str, whole: bytes) -> bytes:
        r"""One event with its line feed. `whole`: the object as JSON."""
        if event_type == "DELETED":
            self._sent.pop(name, None)
            return _line(event_type, whole)
        body, sent = _decode_body(whole), self._sent.get(name)
        self._sent[name] = (version, body)
        made = None if sent is None or event_type != "MODIFIED" else _increment(sent[0], sent[1], body)
        return _line(event_type, whole if made is None or len(made) >= len(whole) else made)


class IncrementReader:
    """The same events as the client reads them: whole again."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, _Body]] = {}

    def line(self, line: bytes) -> bytes:
        """The event with the whole object. Raises MissedError; msgspec.DecodeError if it cannot be read."""
        event = _decode_event(line)
        if event.type not in ("ADDED", "MODIFIED"):
            if event.type == "DELETED":
                self._held.pop(_metadata(event.object).name, None)
            return line
        body = bytes(event.object)
        if _MARK in body[:_MARKED_WITHIN]:
            increment = _decode_increment(body)
            meta = _decode_metadata(increment.metadata)
            held = self._held.get(meta.name)
            if held is None or held[0] != increment.spec.from_version:
                has = "none" if held is None else held[0]
                raise MissedError(
                    f"an increment of node {meta.name} is of version {increment.spec.from_version}, and {has} is held"
                )
            made = _applied(held[1], increment)
            self._held[meta.name] = (meta.resource_version, made)
            return _line(event.type, _encode(made))
        whole = _decode_body(body)
        meta = _decode_metadata(whole.metadata)
        self._held[meta.name] = (meta.resource_version, whole)
        return line


def _increment(from_version: str, before: _Body, after: _Body) -> bytes | None:
    """None: what is left is in another order, so that only the whole list tells it."""
    now = {bytes(pod) for pod in after.spec.pods}
    kept = [pod for pod in before.spec.pods if bytes(pod) in now]
    if list(after.spec.pods[: len(kept)]) != kept:
        return None
    removed = tuple([_decode_uid(pod).uid for pod in before.spec.pods if bytes(pod) not in now])
    same = after.spec.configuration == before.spec.configuration
    if same:
        configuration: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    elif isinstance(after.spec.configuration, msgspec.UnsetType):
        return None
    else:
        configuration = after.spec.configuration
    spec = _IncrementSpec(from_version, removed, after.spec.pods[len(kept) :], configuration)
    return _encode(_Increment(KIND, after.api_version, after.metadata, spec, after.status))


def _applied(held: _Body, increment: _Increment) -> _Body:
    spec = increment.spec
    gone = dict.fromkeys(spec.removed)
    kept = [pod for pod in held.spec.pods if not gone or _decode_uid(pod).uid not in gone]
    configuration = held.spec.configuration if isinstance(spec.configuration, msgspec.UnsetType) else spec.configuration
    whole = _Spec((*kept, *spec.added), configuration)
    return _Body(held.kind, increment.api_version, increment.metadata, whole, increment.status)


def _metadata(body: msgspec.Raw) -> _Metadata:
    return _decode_metadata(_decode_body(body).metadata)


def _line(event_type: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), body)
