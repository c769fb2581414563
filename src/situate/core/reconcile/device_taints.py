"""Device taints: pods leave devices with a NoExecute taint, unless their claims tolerate it, or for as long as they do.

A driver taints a device in its ResourceSlice; an administrator taints devices by a DeviceTaintRule, where the API has
them. What counts are the tolerations that the scheduler copied into the allocation, and of those only the ones for
NoExecute. As in Kubernetes, a pod is deleted, whatever its disruption budget says, and claims for extended resources do
not count.

`leave_devices` looks at one pod. `device_taint_rule` reports in the status of a rule how many pods have to leave, or
would have to if its effect were NoExecute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from situate.core.devices.taints import tolerates
from situate.core.model.devices import selects_device
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_devices import (
    AllocatedDevice,
    ManagedDeviceTaintRule,
    ManagedResourceClaim,
    ManagedResourceSlice,
    TimedDeviceTaint,
)
from situate.core.model.refs import Millis
from situate.core.model.stored import Condition, condition_of
from situate.core.model.tolerations import NO_EXECUTE
from situate.core.reconcile.api_values import SECOND, format_time, parse_time, without_condition
from situate.core.reconcile.effects import DeleteObject, PatchStatus, ReconcileResult, ResultBuilder
from situate.core.reconcile.nodes.eviction import TARGET, disruption_target
from situate.core.reconcile.objects import ObjectLister, normal_event, ref_of, to_json
from situate.core.reconcile.pods import is_finished
from situate.core.reconcile.resourceclaim import is_owner, is_pod

BY_DEVICE_TAINT: Final = (
    "DeletionByDeviceTaintManager",
    "Device Taint manager: deleting due to NoExecute taint",
)
EVENT: Final = ("DeviceTaintManagerEviction", "Marking for deletion")
IN_PROGRESS: Final = "EvictionInProgress"
"""The condition of a rule."""
PENDING, COMPLETED, NOT_STARTED = "PodsPendingEviction", "Completed", "NotStarted"
OTHER_EFFECT: Final = ("OtherEffect", "Eviction only happens for the NoExecute effect.")
WOULD_EVICT: Final = (
    "{} selected. {} selected. {} would be evicted in {} if the effect was NoExecute."
    " This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
)
STATUS_MS: Final[Millis] = 10 * SECOND
"""The shortest time between two updates of a rule's status."""


# -- one pod -----------------------------------------------------------------------------------------------------------


def leave_devices(pod: ManagedPod, objects: ObjectLister, now: Millis) -> ReconcileResult:
    """Delete a pod that has to leave its devices, or call again when its tolerations end."""
    result = ResultBuilder()
    due = _leaves_at(pod, objects)
    if due is None or due > now:
        result.requeue(due)
        return result.done()
    ref = ref_of(pod)
    conditions = disruption_target(pod, BY_DEVICE_TAINT, now)
    if conditions != pod.status.conditions:
        patch = {"conditions": [to_json(one) for one in conditions]}
        result.effects.append(PatchStatus(ref, pod.metadata.resource_version, patch))
    result.effects.append(DeleteObject(ref))
    result.effects.append(normal_event(pod, *EVENT))
    return result.done()


def _leaves_at(pod: ManagedPod, objects: ObjectLister) -> Millis | None:
    """When the pod has to leave its devices; None: it may stay."""
    rules = [one for one in objects.among(ManagedDeviceTaintRule) if _evicts(one)]
    times = [
        at
        for claim in _claims_in_use(pod, objects)
        for device in _devices(claim)
        for taint in _evicting_taints(device, rules, objects)
        if (at := _tolerated_until(device, taint)) is not None
    ]
    return min(times, default=None)


def _claims_in_use(pod: ManagedPod, objects: ObjectLister) -> Iterator[ManagedResourceClaim]:
    """The claims that are allocated and reserved for a pod that runs."""
    if not pod.spec.node_name or pod.metadata.deletion_timestamp is not None or is_finished(pod):
        return
    made = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        claim = None if not name else objects.get(ManagedResourceClaim, pod.metadata.namespace, name)
        if claim is None or (entry.resource_claim_name is None and not is_owner(pod, claim)):
            continue
        if any(one.uid == pod.metadata.uid for one in claim.status.reserved_for):
            yield claim


def _devices(claim: ManagedResourceClaim) -> Sequence[AllocatedDevice]:
    return () if claim.status.allocation is None else claim.status.allocation.devices.results


def _evicts(rule: ManagedDeviceTaintRule) -> bool:
    return rule.spec.taint.effect == NO_EXECUTE and rule.spec.device_selector is not None


def _selects(rule: ManagedDeviceTaintRule, device: AllocatedDevice) -> bool:
    return selects_device(rule.spec.device_selector, device.driver, device.pool, device.device)


def _evicting_taints(
    device: AllocatedDevice, rules: Sequence[ManagedDeviceTaintRule], objects: ObjectLister
) -> Iterator[TimedDeviceTaint]:
    for one in newest_slices(objects, device.driver, device.pool):
        for published in one.spec.devices:
            if published.name == device.device:
                yield from (taint for taint in published.taints if taint.effect == NO_EXECUTE)
    yield from (rule.spec.taint for rule in rules if _selects(rule, device))


def newest_slices(objects: ObjectLister, driver: str, pool: str) -> list[ManagedResourceSlice]:
    """The slices of a pool without those that its driver has replaced."""
    slices = objects.in_pool(ManagedResourceSlice, driver, pool)
    newest = max((one.spec.pool.generation for one in slices), default=0)
    return [one for one in slices if one.spec.pool.generation == newest]


def _tolerated_until(device: AllocatedDevice, taint: TimedDeviceTaint) -> Millis | None:
    """When a claim no longer tolerates the taint of its device; None: it always does."""
    seconds: list[int] = []
    for one in device.tolerations:
        if one.effect == NO_EXECUTE and tolerates(one, taint):
            if one.toleration_seconds is None:
                return None
            seconds.append(max(one.toleration_seconds, 0))
    return (parse_time(taint.time_added) or 0) + min(seconds, default=0) * SECOND


# -- who has to be looked at -------------------------------------------------------------------------------------------


def pods_of_slice(changed: ManagedResourceSlice, objects: ObjectLister) -> Iterator[ManagedPod]:
    """The pods that may have to leave their devices after a slice was added, changed or deleted. A pod that no longer
    has to leave needs no call: it is found out when it would be due."""
    driver, pool = changed.spec.driver, changed.spec.pool.name
    if any(_has_evicting_taint(one) for one in newest_slices(objects, driver, pool)):
        for claim in objects.in_pool(ManagedResourceClaim, driver, pool):
            yield from _users(claim, objects)


def _has_evicting_taint(one: ManagedResourceSlice) -> bool:
    return any(taint.effect == NO_EXECUTE for device in one.spec.devices for taint in device.taints)


def pods_of_rule(changed: ManagedDeviceTaintRule, objects: ObjectLister) -> Iterator[ManagedPod]:
    """The pods that may have to leave their devices after a rule was added or changed."""
    if _evicts(changed):
        for claim in _selected_claims(changed, objects):
            yield from _users(claim, objects)


def rules_of_pod(pod: ManagedPod, objects: ObjectLister) -> Iterator[ManagedDeviceTaintRule]:
    """The rules whose status may change because of a change of a pod."""
    if not pod.spec.resource_claims:
        return
    for rule in objects.among(ManagedDeviceTaintRule):
        condition = condition_of(rule.status.conditions, IN_PROGRESS)
        if _evicts(rule) and condition is not None and condition.reason == PENDING:
            yield rule


def _selected_claims(rule: ManagedDeviceTaintRule, objects: ObjectLister) -> Iterator[ManagedResourceClaim]:
    selector = rule.spec.device_selector
    if selector is None:
        return
    if selector.driver is not None and selector.pool is not None:
        claims = objects.in_pool(ManagedResourceClaim, selector.driver, selector.pool)
    else:
        claims = objects.among(ManagedResourceClaim)
    yield from (one for one in claims if any(_selects(rule, device) for device in _devices(one)))


def _users(claim: ManagedResourceClaim, objects: ObjectLister) -> Iterator[ManagedPod]:
    for one in claim.status.reserved_for:
        pod = objects.get(ManagedPod, claim.metadata.namespace, one.name) if is_pod(one) else None
        if pod is not None and pod.metadata.uid == one.uid:
            yield pod


# -- the status of a rule ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Affected:
    pods: int
    namespaces: int


def device_taint_rule(rule: ManagedDeviceTaintRule, objects: ObjectLister, now: Millis) -> ReconcileResult:
    result = ResultBuilder()
    old = condition_of(rule.status.conditions, IN_PROGRESS)
    is_reported = old is not None and old.observed_generation == rule.metadata.generation
    if is_reported and rule.spec.taint.effect != NO_EXECUTE:
        return result.done()
    if is_reported and old is not None:
        due = (parse_time(old.last_transition_time) or 0) + STATUS_MS
        if due > now:
            result.requeue(due)
            return result.done()
    new = _condition(rule, old, objects)
    if old is None or replace(old, last_transition_time=None) != new:
        stamped = replace(new, last_transition_time=format_time(now))
        conditions = (*without_condition(rule.status.conditions, IN_PROGRESS), stamped)
        patch = {"conditions": [to_json(one) for one in conditions]}
        result.effects.append(PatchStatus(ref_of(rule), rule.metadata.resource_version, patch))
    if new.reason == PENDING:
        result.requeue(now + STATUS_MS)
    return result.done()


def _condition(rule: ManagedDeviceTaintRule, old: Condition | None, objects: ObjectLister) -> Condition:
    """What to report, without a time."""
    status, reason, message = "False", *OTHER_EFFECT
    match rule.spec.taint.effect:
        case "NoExecute":
            affected = _affected(rule, objects)
            is_begun = (old is not None and old.reason in (PENDING, COMPLETED)) or _has_evicted(rule, objects)
            reason, message = COMPLETED if is_begun else NOT_STARTED, ""
            if affected.pods:
                verb = "needs" if affected.pods == 1 else "need"
                status, reason = "True", PENDING
                message = f"{_count(affected.pods, 'pod')} {verb} to be evicted in {_spaces(affected)}."
        case "None":
            reason, message = "NoEffect", _what_if(rule, objects)
        case _:
            pass
    return Condition(
        type=IN_PROGRESS,
        status=status,
        reason=reason,
        message=message,
        observed_generation=rule.metadata.generation,
    )


def _what_if(rule: ManagedDeviceTaintRule, objects: ObjectLister) -> str:
    published = sum(
        selects_device(rule.spec.device_selector, one.spec.driver, one.spec.pool.name, device.name)
        for one in _all_newest(objects)
        for device in one.spec.devices
    )
    claims = _selected_claims(rule, objects)
    allocated = sum(_selects(rule, device) for claim in claims for device in _devices(claim))
    evicting = replace(rule, spec=replace(rule.spec, taint=replace(rule.spec.taint, effect=NO_EXECUTE)))
    affected = _affected(evicting, objects)
    return WOULD_EVICT.format(
        _count(published, "published device"),
        _count(allocated, "allocated device"),
        _count(affected.pods, "pod"),
        _spaces(affected),
    )


def _all_newest(objects: ObjectLister) -> Iterator[ManagedResourceSlice]:
    slices = objects.among(ManagedResourceSlice)
    for driver, pool in dict.fromkeys((one.spec.driver, one.spec.pool.name) for one in slices):
        yield from newest_slices(objects, driver, pool)


def _affected(rule: ManagedDeviceTaintRule, objects: ObjectLister) -> _Affected:
    """How many pods this rule makes leave, now or later."""
    found: dict[tuple[str, str], None] = {}
    for claim in _selected_claims(rule, objects):
        if all(_tolerated_until(one, rule.spec.taint) is None for one in _devices(claim) if _selects(rule, one)):
            continue
        for pod in _users(claim, objects):
            if any(one is claim for one in _claims_in_use(pod, objects)):
                found[pod.metadata.namespace, pod.metadata.name] = None
    return _Affected(len(found), len(dict.fromkeys(space for space, _ in found)))


def _has_evicted(rule: ManagedDeviceTaintRule, objects: ObjectLister) -> bool:
    """Whether a pod that used one of its devices is being deleted for a taint."""
    conditions = (
        condition_of(pod.status.conditions, TARGET)
        for claim in _selected_claims(rule, objects)
        for pod in _users(claim, objects)
    )
    return any(one is not None and one.reason == BY_DEVICE_TAINT[0] for one in conditions)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _spaces(affected: _Affected) -> str:
    return "1 namespace" if affected.namespaces == 1 else f"{affected.namespaces} different namespaces"
