"""DaemonSet: one pod on every eligible node."""

from collections.abc import Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from situate.core.model.apps import ControllerRevision, DaemonSet, DaemonSetStatus
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.adoption import claim, selector_of
from situate.core.reconcile.api_values import SECOND, parse_time, scaled_value
from situate.core.reconcile.daemonset_nodes import Fit, fit, node_of, pinned_spec
from situate.core.reconcile.effects import (
    BURST,
    DeleteObject,
    Effect,
    ReconcileResult,
    RecordEvent,
    ResultBuilder,
)
from situate.core.reconcile.history import HASH_LABEL, unused_revisions, update_revision
from situate.core.reconcile.naming import fresh_names
from situate.core.reconcile.objects import ObjectLister, controller_ref, normal_event, ref_of, update_status
from situate.core.reconcile.pods import FAILED, SUCCEEDED, is_available, is_ready, new_pod, requeue_when_available

FAILED_POD_WAIT: Millis = 10 * SECOND
"""The minimum age of a failed pod before it is replaced."""
_NUMBERS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


class _Site(msgspec.Struct, frozen=True):
    """A node, its eligibility, and its pods, oldest first."""

    node: str
    fit: Fit
    pods: tuple[ManagedPod, ...]
    staying: tuple[ManagedPod, ...]
    """Neither being deleted nor finished."""


class _Work(msgspec.Struct, frozen=True):
    needed: list[str]
    going: list[ManagedPod]
    events: list[Effect]


def daemon_set(one: DaemonSet, objects: ObjectLister, now: Millis) -> ReconcileResult:
    # 1. Adopt and release pods and revisions.
    selector = selector_of(one.spec.selector)
    if selector is None:
        return ReconcileResult()
    pods = claim(one, ManagedPod, selector, objects)
    held = claim(one, ControllerRevision, selector, objects)
    if pods.effects or held.effects:
        return ReconcileResult((*pods.effects, *held.effects))
    # 2. The revision of the present template.
    update = update_revision(one, held.mine, objects, *_NUMBERS)
    if isinstance(update, ReconcileResult):
        return update
    digest = update.metadata.labels.get(HASH_LABEL, update.metadata.name)
    # 3. Status and work for each node.
    sites = _sites(one, objects.among(ManagedNode), pods.mine)
    result = ResultBuilder(list(update_status(one, _status(one, sites, digest, now), *_NUMBERS)))
    if one.metadata.deletion_timestamp is None:
        work = _managed(one, sites, digest, now, result)
        if not work.needed and not work.going and one.spec.update_strategy.type == "RollingUpdate":
            work = _rolled(one, sites, digest, now)
        result.effects += _effects(one, work, digest, objects)
        used = [pod.metadata.labels.get(HASH_LABEL, "") for pod in pods.mine]
        live = [each.metadata.name for each in held.mine if each.metadata.labels.get(HASH_LABEL) in used]
        result.effects += unused_revisions(held.mine, [*live, update.metadata.name], one.spec.revision_history_limit)
    requeue_when_available(result, pods.mine, one.spec.min_ready_seconds, now)
    return result.done()


def _sites(one: DaemonSet, nodes: Sequence[ManagedNode], pods: Sequence[ManagedPod]) -> list[_Site]:
    by_node: dict[str, list[ManagedPod]] = {node.metadata.name: [] for node in nodes}
    for pod in sorted(pods, key=_age):
        by_node.setdefault(node_of(pod), []).append(pod)
    fits = fit(one, list(nodes))
    gone = Fit(False, False)
    return [_site(name, fits.get(name, gone), tuple(there)) for name, there in sorted(by_node.items())]


def _age(pod: ManagedPod) -> tuple[bool, str, str]:
    """Bound pods first, then by age."""
    return not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name


def _site(name: str, fits: Fit, pods: tuple[ManagedPod, ...]) -> _Site:
    ended = (FAILED, SUCCEEDED)
    staying = (pod for pod in pods if pod.metadata.deletion_timestamp is None and pod.status.phase not in ended)
    return _Site(name, fits, pods, tuple(staying))


def _limits(one: DaemonSet, desired: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers of nodes."""
    rule = one.spec.update_strategy.rolling_update
    if rule is None:
        return 0, 1
    surge = scaled_value(rule.max_surge, desired, up=True)
    default = 0 if surge else 1
    away = default if rule.max_unavailable is None else scaled_value(rule.max_unavailable, desired, up=True)
    return surge, away if surge or away else 1


def _is_new(pod: ManagedPod, digest: str) -> bool:
    return pod.metadata.labels.get(HASH_LABEL) == digest


def _managed(one: DaemonSet, sites: Sequence[_Site], digest: str, now: Millis, result: ResultBuilder) -> _Work:
    """Create missing pods; delete pods from ineligible nodes, and duplicates."""
    work = _Work([], [], [])
    surges = _limits(one, len(sites))[0] > 0
    for site in sites:
        alive = [pod for pod in site.pods if pod.metadata.deletion_timestamp is None]
        if not site.fit.stays:
            work.going.extend(alive)
        elif not site.pods or (surges and not alive):
            work.needed.extend([site.node] if site.fit.runs else [])
        else:
            _clear_ended(one, site, alive, now, work, result)
            work.going.extend(_excess(one, site, digest, now, surges=surges))
    return work


def _clear_ended(
    one: DaemonSet, site: _Site, alive: Sequence[ManagedPod], now: Millis, work: _Work, result: ResultBuilder
) -> None:
    for pod in alive:
        key = f"{pod.metadata.namespace}/{pod.metadata.name} on node {site.node}"
        if pod.status.phase == FAILED:
            due = (parse_time(pod.metadata.creation_timestamp) or 0) + FAILED_POD_WAIT
            if due > now:
                result.requeue(due)
                continue
            text = f"Found failed daemon pod {key}, will try to kill it"
            work.events.append(RecordEvent(ref_of(one), "Warning", "FailedDaemonPod", text))
            work.going.append(pod)
        elif pod.status.phase == SUCCEEDED:
            text = f"Found succeeded daemon pod {key}, will try to delete it"
            work.events.append(normal_event(one, "SucceededDaemonPod", text))
            work.going.append(pod)


def _excess(one: DaemonSet, site: _Site, digest: str, now: Millis, *, surges: bool) -> list[ManagedPod]:
    if not surges:
        return list(site.staying[1:])
    new = [pod for pod in site.staying if _is_new(pod, digest)]
    old = [pod for pod in site.staying if not _is_new(pod, digest)]
    going = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or is_available(new[0], one.spec.min_ready_seconds, now)):
        going.append(old[0])
    return going


def _rolled(one: DaemonSet, sites: Sequence[_Site], digest: str, now: Millis) -> _Work:
    """One step of a rolling update."""
    surge, away = _limits(one, sum(site.fit.runs for site in sites))
    work = _Work([], [], [])
    well = {
        pod.metadata.uid: is_available(pod, one.spec.min_ready_seconds, now) for site in sites for pod in site.staying
    }
    here = [site for site in sites if site.fit.runs]
    outdated = [site for site in here if site.staying and not any(_is_new(pod, digest) for pod in site.staying)]
    broken = [site for site in outdated if not well[site.staying[0].metadata.uid]]
    sound = [site for site in outdated if well[site.staying[0].metadata.uid]]
    if surge:
        busy = sum(len(site.staying) > 1 for site in here)
        work.needed.extend(site.node for site in (*broken, *sound[: max(surge - busy, 0)]))
        return work
    unwell = sum(not any(well[pod.metadata.uid] for pod in site.staying) for site in here)
    work.going.extend(site.staying[0] for site in (*broken, *sound[: max(away - unwell, 0)]))
    return work


def _effects(one: DaemonSet, work: _Work, digest: str, objects: ObjectLister) -> list[Effect]:
    meta, owner, base = one.metadata, controller_ref(one), f"{one.metadata.name}-"
    names = fresh_names(base, meta, lambda name: objects.get(ManagedPod, meta.namespace, name) is not None)
    effects: list[Effect] = []
    for node, name in zip(work.needed, islice(names, min(len(work.needed), BURST)), strict=False):
        spec = pinned_spec(one, node)
        labels = {HASH_LABEL: digest}
        effects.append(
            new_pod(meta.namespace, name, one.spec.template, owner, labels=labels, spec=spec, generate_name=base)
        )
        effects.append(normal_event(one, "SuccessfulCreate", f"Created pod: {name}"))
    for pod in work.going[:BURST]:
        effects.append(DeleteObject(ref_of(pod)))
        effects.append(normal_event(one, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}"))
    return [*effects, *work.events]


def _status(one: DaemonSet, sites: Sequence[_Site], digest: str, now: Millis) -> DaemonSetStatus:
    desired = [site for site in sites if site.fit.runs]
    firsts = [site.pods[0] for site in desired if site.pods]
    available = sum(is_available(pod, one.spec.min_ready_seconds, now) for pod in firsts)
    return replace(
        one.status,
        current_number_scheduled=len(firsts),
        number_misscheduled=sum(bool(site.pods) and not site.fit.runs for site in sites),
        desired_number_scheduled=len(desired),
        number_ready=sum(map(is_ready, firsts)),
        observed_generation=one.metadata.generation,
        updated_number_scheduled=sum(_is_new(pod, digest) for pod in firsts),
        number_available=available,
        number_unavailable=len(desired) - available,
    )
