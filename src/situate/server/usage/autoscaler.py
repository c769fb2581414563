"""Runs the HorizontalPodAutoscalers: every 15 seconds, each one reads its workload and scales it.

What an autoscaler remembers, such as its recommendations, is in memory, as in Kubernetes: a new leader begins anew. One
that fails is logged and tried again with the others; it keeps nobody up. After each one, the others in this process get
as much time as it took, however many there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final, NamedTuple

from situate.core.reconcile.autoscaling import (
    DOWNSCALE_WINDOW_S,
    MeasureError,
    Moment,
    Proposal,
    ScalingHistory,
    ScalingPolicy,
    ScalingRules,
    Tolerances,
    by_usage,
    by_utilization,
    normalized,
)
from situate.core.reconcile.effects import ObjectRef, RecordEvent
from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.controllers.registry_port import CONTROLLERS, RegistryPort
from situate.server.errors import StatusError
from situate.server.kinds.quantities import nanos
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND
from situate.server.usage.statuses import (
    ABLE,
    ACTIVE,
    LIMITED,
    NANOS_IN_MILLI,
    UNKNOWN_METRIC,
    Conditions,
    metric_status,
)
from situate.server.usage.workloads import Pods, ScaleTarget, Selectors, pods_of, workload_of
from situate.wire.bodies import seconds_time

AUTOSCALERS: Final = BY_KIND["autoscaling/v2", "HorizontalPodAutoscaler"]
EVERY_S: Final = 15.0
NANO: Final = 1_000_000_000
MOST_NAMED: Final = 20
"""Of the autoscalers of the same pods, how many a message names."""
FIELDS: Final = {"Resource": "resource", "ContainerResource": "containerResource"}
"""The metrics that are measured here."""
REASONS: Final = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}
NOT_SERVED: Final = "unable to get metric {}: no {} metrics are served here"
UNABLE: Final = "the HPA was unable to compute the replica count: {}"
NO_SCALE: Final = "the HPA controller was unable to get the target's current scale: {}"

_log = Log(__name__)


class Autoscaler:
    """`run` it until it is cancelled; on the leader only."""

    def __init__(self, registry: Registry, wall_ns: Callable[[], int]) -> None:
        self._registry = registry
        self._wall_ns = wall_ns
        self._port = RegistryPort(registry, wall_ns)
        self._histories: dict[str, ScalingHistory] = {}
        """By uid."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self.scale_all()

    async def scale_all(self) -> None:
        found = list(self._registry.cache.all(AUTOSCALERS))
        self._histories = {one.uid: self._histories.get(one.uid, ScalingHistory()) for one in found}
        selectors = Selectors(self._registry.cache, AUTOSCALERS)
        for held in found:
            started = perf_counter()
            try:
                await self._scale(held, selectors)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is about this one
                why = error.message if isinstance(error, StatusError) else describe_error(error)
                _log.warning("Cannot scale; trying again", namespace=held.namespace, name=held.name, err=why)
            await asyncio.sleep(perf_counter() - started)

    async def _scale(self, held: StoredObject, selectors: Selectors) -> None:
        now = self._wall_ns() // NANOS_IN_MILLI
        run = _Run(self._registry, held, self._histories[held.uid], now, selectors)
        wanted = await run.decide()
        if wanted is not None:
            await self._rescale(run, wanted)
        self._histories[held.uid] = run.history
        for event in run.events:
            await self._port.record(event)
        status = run.status()
        if status != run.before:
            target = Target(AUTOSCALERS, held.namespace, held.name, "status")
            await self._registry.modify(
                target, lambda obj, _stored: {**obj, "status": status}, CONTROLLERS, uid=held.uid
            )

    async def _rescale(self, run: _Run, wanted: _Wanted) -> None:
        workload = wanted.workload
        target = Target(workload.resource, workload.stored.namespace, workload.stored.name, "scale")
        try:
            await self._registry.patch(target, "merge", {"spec": {"replicas": wanted.replicas}}, CONTROLLERS)
        except StatusError as error:
            run.failed_to_rescale(wanted, error.message)
            return
        run.rescaled(wanted)


class _Wanted(NamedTuple):
    workload: ScaleTarget
    replicas: int
    why: str


class _Computed(NamedTuple):
    """What one metric says."""

    proposal: Proposal
    name: str
    status: Object


class _Run:
    """One look at one autoscaler."""

    def __init__(
        self, registry: Registry, held: StoredObject, history: ScalingHistory, now: int, selectors: Selectors
    ) -> None:
        obj = held.object(AUTOSCALERS)
        self._cache = registry.cache
        self._selectors = selectors
        self._held = held
        self._spec: Mapping[str, Any] = obj.get("spec", {})
        self.before: Object = obj.get("status", {})
        self.history = history
        self.events: list[RecordEvent] = []
        self._now = now
        self._time = seconds_time(now * NANOS_IN_MILLI)
        self._conditions = Conditions(self.before.get("conditions") or (), self._time)
        self._current = self.before.get("currentReplicas", 0)
        self._desired = self.before.get("desiredReplicas", 0)
        self._metrics: list[Object] | None = self.before.get("currentMetrics")
        self._scaled_at: str | None = self.before.get("lastScaleTime")

    def status(self) -> Object:
        made: Object = {"desiredReplicas": self._desired, "conditions": self._conditions.listed()}
        if self._current:
            made["currentReplicas"] = self._current
        if self._metrics:
            made["currentMetrics"] = self._metrics
        if self._scaled_at is not None:
            made["lastScaleTime"] = self._scaled_at
        return made

    async def decide(self) -> _Wanted | None:
        """How the workload is to be scaled; None: not at all."""
        workload = workload_of(self._cache, self._held.namespace, self._spec.get("scaleTargetRef", {}))
        if isinstance(workload, str):
            self._say("Warning", "FailedGetScale", workload)
            self._conditions.set(ABLE, False, "FailedGetScale", NO_SCALE.format(workload))
            return None
        text = "the HPA controller was able to get the target's current scale"
        self._conditions.set(ABLE, True, "SucceededGetScale", text)
        current, least, most = workload.replicas, self._spec.get("minReplicas", 1), self._spec.get("maxReplicas", 0)
        self._current = current
        if not self.history.recommendations:
            self.history = ScalingHistory((Moment(self._now, current),))
        if current == 0:
            text = "scaling is disabled since the replica count of the target is zero"
            self._conditions.set(ACTIVE, False, "ScalingDisabled", text)
            self._desired, self._metrics = 0, None
            return None
        if current > most:
            return self._outside(workload, most, "Current number of replicas above Spec.MaxReplicas")
        if current < least:
            return self._outside(workload, least, "Current number of replicas below Spec.MinReplicas")
        found = await self._measure(workload)
        if found is None:
            return None
        proposed, metric = found
        up, down = self._behavior()
        bounded = normalized(self.history, current, proposed, least, most, self._now, up, down)
        self.history = bounded.history
        self._conditions.set(ABLE, True, *bounded.able)
        self._conditions.set(LIMITED, bounded.limited, *bounded.limit)
        self._desired = bounded.replicas
        if bounded.replicas == current:
            return None
        why = f"{metric} above target" if proposed > current else "All metrics below target"
        return _Wanted(workload, bounded.replicas, why if proposed != current else "")

    def _outside(self, workload: ScaleTarget, replicas: int, why: str) -> _Wanted:
        self._desired, self._metrics = replicas, None
        return _Wanted(workload, replicas, why)

    def rescaled(self, wanted: _Wanted) -> None:
        self._desired, self._scaled_at = wanted.replicas, self._time
        self._conditions.set(
            ABLE,
            True,
            "SucceededRescale",
            f"the HPA controller was able to update the target scale to {wanted.replicas}",
        )
        self._say("Normal", "SuccessfulRescale", f"New size: {wanted.replicas}; reason: {wanted.why}")
        if self._spec.get("behavior") is not None:
            self.history = self.history.scaled(self._current, wanted.replicas, self._now)

    def failed_to_rescale(self, wanted: _Wanted, error: str) -> None:
        self._desired = self.before.get("desiredReplicas", 0)
        self._say("Warning", "FailedRescale", f"New size: {wanted.replicas}; reason: {wanted.why}; error: {error}")
        text = f"the HPA controller was unable to update the target scale: {error}"
        self._conditions.set(ABLE, False, "FailedUpdateScale", text)

    # -- metrics -------------------------------------------------------------------------------------------------------

    async def _measure(self, workload: ScaleTarget) -> tuple[int, str] | None:
        """The highest number that a metric asks for, and its name. None: that cannot be said."""
        if workload.selector is None:
            self._say("Warning", "SelectorRequired", "selector is required")
            text = "the HPA target's scale is missing a selector"
            self._conditions.set(ACTIVE, False, "InvalidSelector", text)
            self._say("Warning", "FailedComputeMetricsReplicas", "selector is required")
            return None
        pods = await pods_of(self._cache, self._held.namespace, workload.selector)
        named = sorted((*self._selectors.others(self._held, pods), self._held.name))
        if len(named) > 1:
            more = (f"and {len(named) - MOST_NAMED} more",) if len(named) > MOST_NAMED else ()
            listed = " ".join((*(f"{self._held.namespace}/{name}" for name in named[:MOST_NAMED]), *more))
            text = f"pods by selector {workload.selector_text} are controlled by multiple HPAs: [{listed}]"
            self._say("Warning", "AmbiguousSelector", text)
            self._conditions.set(ACTIVE, False, "AmbiguousSelector", text)
            self._say("Warning", "FailedComputeMetricsReplicas", text)
            return None
        return self._highest(workload, pods)

    def _highest(self, workload: ScaleTarget, pods: Pods) -> tuple[int, str] | None:
        best: tuple[int, str] | None = None
        wrong: list[tuple[str, str]] = []
        metrics = self._spec.get("metrics", ())
        statuses: list[Object] = []
        for metric in metrics:
            kind = metric.get("type", "")
            try:
                computed = self._compute(metric, workload, pods)
            except MeasureError as error:
                statuses.append(UNKNOWN_METRIC)
                self._say("Warning", REASONS.get(kind, "InvalidMetricSourceType"), str(error))
                wrong.append((kind, str(error)))
                continue
            statuses.append(computed.status)
            if best is None or computed.proposal.replicas > best[0]:
                best = computed.proposal.replicas, computed.name
        self._metrics = statuses
        if best is None or (wrong and best[0] < workload.replicas):
            kind, first = wrong[0]
            self._conditions.set(ACTIVE, False, REASONS.get(kind, "InvalidMetricSourceType"), UNABLE.format(first))
            text = f"invalid metrics ({len(wrong)} invalid out of {len(metrics)}), first error is: {first}"
            self._say("Warning", "FailedComputeMetricsReplicas", text)
            return None
        text = f"the HPA was able to successfully calculate a replica count from {best[1]}"
        self._conditions.set(ACTIVE, True, "ValidMetricFound", text)
        return best

    def _compute(self, metric: Mapping[str, Any], workload: ScaleTarget, pods: Pods) -> _Computed:
        kind = metric.get("type", "")
        field = FIELDS.get(kind)
        if field is None:
            source = metric.get(kind.lower(), {})
            raise MeasureError(NOT_SERVED.format(source.get("metric", {}).get("name", ""), kind.lower()))
        source = metric.get(field, {})
        resource, container, target = source.get("name", ""), source.get("container", ""), source.get("target", {})
        tolerances, current = self._tolerances(), workload.replicas
        if "averageValue" in target:
            wanted = -(-nanos(target["averageValue"]) // NANOS_IN_MILLI)
            with_prefix = f"failed to get {resource} usage: "
            name = f"{resource} resource"
        else:
            wanted = target.get("averageUtilization", 0)
            with_prefix = f"failed to get {resource} utilization: "
            name = f"{resource} {'container ' if container else ''}resource utilization (percentage of request)"
        try:
            used, scaled = pods.usage(resource, container), pods.scaled()
            if "averageValue" in target:
                proposal = by_usage(current, wanted, resource, tolerances, scaled, used, self._now)
            else:
                requests = pods.requests(resource, container) if scaled else {}
                proposal = by_utilization(current, wanted, resource, tolerances, scaled, used, requests, self._now)
        except MeasureError as error:
            raise MeasureError(f"{with_prefix}{error}") from None
        return _Computed(proposal, name, metric_status(kind, field, source, proposal))

    # -- the behavior --------------------------------------------------------------------------------------------------

    def _behavior(self) -> tuple[ScalingRules | None, ScalingRules | None]:
        behavior = self._spec.get("behavior")
        if behavior is None:
            return None, None
        return _rules(behavior.get("scaleUp", {}), 0), _rules(behavior.get("scaleDown", {}), DOWNSCALE_WINDOW_S)

    def _tolerances(self) -> Tolerances:
        behavior = self._spec.get("behavior") or {}
        given = {}
        for name, field in (("down", "scaleDown"), ("up", "scaleUp")):
            tolerance = (behavior.get(field) or {}).get("tolerance")
            if tolerance is not None:
                given[name] = nanos(tolerance) / NANO
        return Tolerances(**given)

    def _say(self, kind: Any, reason: str, message: str) -> None:
        held = self._held
        ref = ObjectRef(AUTOSCALERS.api_version, AUTOSCALERS.kind, held.namespace, held.name, held.uid)
        self.events.append(RecordEvent(ref, kind, reason, message))


def _rules(rules: Mapping[str, Any], window_s: int) -> ScalingRules:
    policies = tuple(
        ScalingPolicy(one.get("type", "Pods"), one.get("value", 0), one.get("periodSeconds", 0))
        for one in rules.get("policies", ())
    )
    return ScalingRules(policies, rules.get("selectPolicy", "Max"), rules.get("stabilizationWindowSeconds", window_s))
