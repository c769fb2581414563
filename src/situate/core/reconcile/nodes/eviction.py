"""One pod whose node is lost, tainted, out of service, or gone.

A pod on an unreachable node is marked for deletion, and stays until it is known to have stopped: a StatefulSet, which
must not have two pods of a name, waits for that. It is known

- when the node is back, deleted, or tainted out-of-service, as in Kubernetes;
- when the node's lease has expired, if its agent has promised to stop its pods by then (see `fencing`). Then the pod is
  deleted at once. A pod that nobody would create again is not deleted but rebound, if it asks for that.

The promise is in the lease. Both writes are performed only if the lease is still at the version that has expired. An
agent that renews it later lists its pods after that, and finds the pod marked for deletion or gone.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode, TimedTaint
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, controller_of
from situate.core.model.tolerations import Toleration, tolerates
from situate.core.reconcile.api_values import SECOND, format_time, parse_time, with_condition
from situate.core.reconcile.effects import (
    DeleteObject,
    LeaseVersion,
    PatchStatus,
    RebindPod,
    ReconcileResult,
    RecordEvent,
    ResultBuilder,
)
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import NOT_READY, OUT_OF_SERVICE, UNREACHABLE, is_up, ready_report, repelled
from situate.core.reconcile.nodes.zones import LOOK_MS
from situate.core.reconcile.objects import ObjectLister, ref_of, to_json
from situate.core.reconcile.pods import is_active, is_finished, is_ready, ready_condition

TARGET: Final = "DisruptionTarget"
BY_TAINT: Final = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
REBIND: Final = "situate.dev/rebind"
"""Annotation of a pod without a controller: "true" to bind it to another node when its node is lost."""
BY_ABSENCE: Final = ("DeletionByPodGC", "PodGC: node no longer exists")
UNHEARD: Final = ("NodeStatusUnknown", "Kubelet stopped posting node status.")
"""The Ready condition of a pod on a silent node: the controller set it, not the agent."""


def is_at_risk(one: ManagedPod, objects: ObjectLister) -> bool:
    """Whether `reconcile_pod_on_node` may have work. Most pods are on healthy nodes."""
    if not one.spec.node_name:
        return False
    node = objects.get(ManagedNode, "", one.spec.node_name)
    if node is None or not is_up(node) or repelled(node):
        return True
    ready = ready_condition(one)
    return ready is not None and ready.reason == UNHEARD[0]


def reconcile_pod_on_node(
    one: ManagedPod, objects: ObjectLister, heartbeats: Heartbeats, now: Millis
) -> ReconcileResult:
    name, result = one.spec.node_name, ResultBuilder()
    if not name:
        return result.done()
    node = objects.get(ManagedNode, "", name)
    if node is None:
        _orphaned(one, heartbeats, now, result)
    elif one.metadata.deletion_timestamp is not None:
        _finish(one, node, heartbeats, now, result)
    else:
        due = _leaves_at(one, node, heartbeats, now)
        if due is not None and due <= now:
            _leave(one, node, heartbeats, now, result)
        else:
            result.requeue(due)
            _speak_for(one, node, heartbeats, now, result)
    return result.done()


def _orphaned(one: ManagedPod, heartbeats: Heartbeats, now: Millis, result: ResultBuilder) -> None:
    since = heartbeats.absent_since(one.spec.node_name)
    # The agent may not know that its node is gone. While it renews its lease, it runs its pods.
    due = now + LOOK_MS if since is None else since + heartbeats.profile.absent_ms
    due = max(due, heartbeats.lease_over_at(one.spec.node_name) or due)
    if due > now:
        result.requeue(due)
    elif asks_to_rebind(one):
        _rebind(one, heartbeats.lease_version(one.spec.node_name), result)
    else:
        _force(one, now, result, BY_ABSENCE, heartbeats.lease_version(one.spec.node_name))


def _is_out_of_service(node: ManagedNode) -> bool:
    """A person says that nothing runs there."""
    return not is_up(node) and _has_out_of_service(node)


def _has_out_of_service(node: ManagedNode) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def _stopped_at(node: ManagedNode, heartbeats: Heartbeats, now: Millis) -> Millis | None:
    """When the pods of a silent node have stopped by its agent's promise; None: there is no promise."""
    report = ready_report(node)
    if report is None or report.status != "Unknown":
        return None
    at = heartbeats.stopped_at(node.metadata.name)
    # While we do not see leases, we do not know.
    return at if at is None or heartbeats.since is not None else max(at, now + LOOK_MS)


def _finish(one: ManagedPod, node: ManagedNode, heartbeats: Heartbeats, now: Millis, result: ResultBuilder) -> None:
    """The pod is being deleted. Delete it at once if it is known to have stopped."""
    if _is_out_of_service(node):
        _force(one, now, result)
        return
    stopped_at = _stopped_at(node, heartbeats, now)
    if stopped_at is not None and stopped_at <= now:
        _force(one, now, result, lease=heartbeats.lease_version(node.metadata.name))
    else:
        result.requeue(stopped_at)


def _leave(one: ManagedPod, node: ManagedNode, heartbeats: Heartbeats, now: Millis, result: ResultBuilder) -> None:
    """The pod must leave its node. One that asks to be rebound is not evicted from a lost node: it waits. A person may
    say that the node is out of service before it has been silent for long enough."""
    report = ready_report(node)
    lost = report is not None and report.status == "Unknown"
    if not asks_to_rebind(one) or not (lost or _has_out_of_service(node)):
        _evict(one, now, result)
        return
    stopped_at = now if _is_out_of_service(node) else _stopped_at(node, heartbeats, now)
    if stopped_at is not None and stopped_at <= now:
        _rebind(one, heartbeats.lease_version(node.metadata.name), result)
    else:
        result.requeue(stopped_at)


def asks_to_rebind(one: ManagedPod) -> bool:
    """Whether to bind the pod elsewhere if its node is lost. A controller creates another pod, so its pods need not."""
    meta = one.metadata
    return is_active(one) and controller_of(meta) is None and meta.annotations.get(REBIND) == "true"


def _rebind(one: ManagedPod, lease: LeaseVersion, result: ResultBuilder) -> None:
    ref = ref_of(one)
    result.effects.append(RebindPod(ref, one.metadata.resource_version, lease))
    text = f"Node {lease.node} is lost and has stopped the pod, which can be bound to another node"
    result.effects.append(RecordEvent(ref, "Normal", "Rebinding", text))


def _force(
    one: ManagedPod,
    now: Millis,
    result: ResultBuilder,
    why: tuple[str, str] | None = None,
    lease: LeaseVersion | None = None,
) -> None:
    """Fail and delete the pod at once: no agent can stop it."""
    if is_finished(one) and one.metadata.deletion_timestamp is not None and one.metadata.finalizers:
        return  # it waits for finalizers
    if not is_finished(one):
        status: dict[str, Any] = {"phase": "Failed"}
        if why is not None:
            status["conditions"] = [to_json(each) for each in disruption_target(one, why, now)]
        result.effects.append(PatchStatus(ref_of(one), one.metadata.resource_version, status, lease))
    result.effects.append(DeleteObject(ref_of(one), grace_s=0, lease=lease))


def _evict(one: ManagedPod, now: Millis, result: ResultBuilder) -> None:
    ref, version = ref_of(one), one.metadata.resource_version
    conditions = disruption_target(one, BY_TAINT, now)
    if conditions != one.status.conditions:
        result.effects.append(PatchStatus(ref, version, {"conditions": [to_json(each) for each in conditions]}))
    result.effects.append(DeleteObject(ref))
    text = f"Marking for deletion Pod {one.metadata.namespace}/{one.metadata.name}"
    result.effects.append(RecordEvent(ref, "Normal", "TaintManagerEviction", text))


def disruption_target(one: ManagedPod, why: tuple[str, str], now: Millis) -> tuple[Condition, ...]:
    """The pod's conditions with the one that says why it is about to be deleted. `why`: its reason and message."""
    reason, message = why
    condition = Condition(
        type=TARGET, status="True", reason=reason, message=message, last_transition_time=format_time(now)
    )
    return with_condition(one.status.conditions, condition)


def _leaves_at(one: ManagedPod, node: ManagedNode, heartbeats: Heartbeats, now: Millis) -> Millis | None:
    """When the pod must leave the node; None: it may stay."""
    due: Millis | None = None
    for taint in repelled(node):
        at = _tolerated_until(one.spec.tolerations, taint, now)
        if at is not None and taint.key in (NOT_READY, UNREACHABLE):
            at = _when_lost(at, node, heartbeats, now)
        if at is not None and (due is None or at < due):
            due = at
    return due


def _tolerated_until(tolerations: tuple[Toleration, ...], taint: TimedTaint, now: Millis) -> Millis | None:
    """When the toleration of a taint ends; None: never, or the taint's time is unknown."""
    held = next((each for each in tolerations if tolerates(each, taint)), None)
    if held is None:
        return now
    if held.toleration_seconds is None:
        return None
    if held.toleration_seconds <= 0:
        return now
    added = parse_time(taint.time_added)
    return None if added is None else added + held.toleration_seconds * SECOND


def _when_lost(at: Millis, node: ManagedNode, heartbeats: Heartbeats, now: Millis) -> Millis | None:
    """That a node is lost is our own judgement: no pod leaves while it may be wrong."""
    may, report = heartbeats.may_give_up_at, ready_report(node)
    silent_at = heartbeats.silent_at(node.metadata.name, heartbeats.profile.grace_ms)
    if report is None or report.status == "True":
        return None  # the taint is about to go
    if may is None or silent_at is None or not heartbeats.somebody_is_up(now):
        return max(at, now + LOOK_MS)
    if report.status == "Unknown":
        may = max(may, silent_at)  # it may have been heard from again
    return max(at, may)


def _speak_for(one: ManagedPod, node: ManagedNode, heartbeats: Heartbeats, now: Millis, result: ResultBuilder) -> None:
    """Set pods of a silent node to not ready, and back when the node is back."""
    report, ready = ready_report(node), ready_condition(one)
    if report is None or ready is None or not is_active(one):
        return
    reason, message = UNHEARD
    if report.status == "Unknown" and is_ready(one) and heartbeats.up:
        new = replace(ready, status="False", reason=reason, message=message, last_transition_time=format_time(now))
        event = RecordEvent(ref_of(one), "Warning", "NodeNotReady", "Node is not ready")
    elif report.status == "True" and ready.status == "False" and ready.reason == reason:
        new = replace(ready, status="True", reason="", message="", last_transition_time=format_time(now))
        event = None
    else:
        return
    conditions = [to_json(new if each is ready else each) for each in one.status.conditions]
    result.effects.append(PatchStatus(ref_of(one), one.metadata.resource_version, {"conditions": conditions}))
    if event is not None:
        result.effects.append(event)
