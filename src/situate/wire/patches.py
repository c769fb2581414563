"""Patches as JSON bytes: of pod status, event series, and volumes and claims to bind.

Each names the uid and the version it holds for, where that is given: an object that is another by now is not patched.
Opens nothing and knows no clock.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from situate.core.changes import PodRef
from situate.wire.bodies import preconditions, quoted, seconds_time, series

STRATEGIC: Final = "application/strategic-merge-patch+json"
MERGE: Final = "application/merge-patch+json"

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Annotates a volume whose claimRef a controller set, which removes it again when the claim is gone."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


class ConditionPatch(NamedTuple):
    """A pod condition to set."""

    type: str
    status: str
    reason: str
    message: str
    generation: int = 0
    """The observed generation of the pod; 0 if unknown."""
    since_ns: int | None = None
    """When the status changed; None if it did not."""


def status_patch(uid: str, version: str, conditions: Iterable[ConditionPatch], nominated: str | None) -> bytes:
    """Set conditions, without touching other types, and the nominated node: "" clears it, None leaves it."""
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
    """Set the claimRef of a volume. `annotate`: it was not reserved for the claim before."""
    more = b',"annotations":{"%b":"yes"}' % BOUND_BY_CONTROLLER.encode() if annotate else b""
    return b'{%b"spec":{"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":%b,"name":%b%b}}}' % (
        _metadata("", version, more),
        quoted(claim.namespace),
        quoted(claim.name),
        preconditions(claim.uid, claim_version),
    )


def release_volume(version: str) -> bytes:
    """Remove the claimRef of a volume, and its annotation."""
    more = b',"annotations":{"%b":null}' % BOUND_BY_CONTROLLER.encode()
    return b'{%b"spec":{"claimRef":null}}' % _metadata("", version, more)


def select_node(uid: str, version: str, node: str) -> bytes:
    """Select the node for which to provision a claim's volume."""
    more = b',"annotations":{"%b":%b}' % (SELECTED_NODE.encode(), quoted(node))
    return b"{%b}" % _metadata(uid, version, more)[:-1]
