"""Patches, as JSON bytes: of a pod's status, of an event's series, of volumes and claims that are to be bound.

Each names the uid and the version it holds for, where that is given: an object that is another by now is not patched.
Opens nothing and knows no clock.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from situate.core.changes import PodRef
from situate.wire.bodies import preconditions, quoted, seconds_time, series

__all__ = [
    "BOUND_BY_CONTROLLER",
    "MERGE",
    "SELECTED_NODE",
    "STRATEGIC",
    "ConditionPatch",
    "bind_volume",
    "release_volume",
    "select_node",
    "series_patch",
    "status_patch",
]

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On a volume whose claimRef was not set by a person, so that it is taken off again when the claim is gone."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


class ConditionPatch(NamedTuple):
    """A condition of a pod, as it is to be."""

    type: str
    status: str
    reason: str
    message: str
    generation: int = 0
    """Of the pod that was judged; 0 if that is not known."""
    since_ns: int | None = None
    """When it came to this status; None if it had it before."""


def status_patch(uid: str, version: str, conditions: Iterable[ConditionPatch], nominated: str | None) -> bytes:
    """Set conditions, leaving those of other types as they are; and the nominated node, "" for none, None as it is."""
    fields = (
        [b'"conditions":[' + b",".join(listed) + b"]"] if (listed := [_condition(one) for one in conditions]) else []
    )
    if nominated is not None:
        fields.append(b'"nominatedNodeName":' + (quoted(nominated) if nominated else b"null"))
    return b'{%b"status":{%b}}' % (_metadata(uid, version), b",".join(fields))


def _metadata(uid: str, version: str, more: bytes = b"") -> bytes:
    held = preconditions(uid, version) + more
    return b'"metadata":{' + held[1:] + b"}," if held else b""


def _condition(one: ConditionPatch) -> bytes:
    generation = b',"observedGeneration":%d' % one.generation if one.generation else b""
    since = b',"lastTransitionTime":"%b"' % seconds_time(one.since_ns).encode() if one.since_ns is not None else b""
    return b'{"type":%b,"status":%b,"reason":%b,"message":%b%b%b}' % (
        quoted(one.type),
        quoted(one.status),
        quoted(one.reason),
        quoted(one.message),
        generation,
        since,
    )


def series_patch(count: int, last_ns: int) -> bytes:
    return b'{"series":' + series(count, last_ns) + b"}"


def bind_volume(version: str, claim: PodRef, claim_version: str, *, annotate: bool) -> bytes:
    """Have a volume name the claim that it is for. `annotate`: nobody had reserved it for the claim before."""
    more = b',"annotations":{"%b":"yes"}' % BOUND_BY_CONTROLLER.encode() if annotate else b""
    return b'{%b"spec":{"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":%b,"name":%b%b}}}' % (
        _metadata("", version, more),
        quoted(claim.namespace),
        quoted(claim.name),
        preconditions(claim.uid, claim_version),
    )


def release_volume(version: str) -> bytes:
    """Take the claim off a volume again, and the annotation that came with it."""
    more = b',"annotations":{"%b":null}' % BOUND_BY_CONTROLLER.encode()
    return b'{%b"spec":{"claimRef":null}}' % _metadata("", version, more)


def select_node(uid: str, version: str, node: str) -> bytes:
    """Have a claim's volume provisioned for a node."""
    more = b',"annotations":{"%b":%b}' % (SELECTED_NODE.encode(), quoted(node))
    return b"{%b}" % _metadata(uid, version, more)[:-1]
