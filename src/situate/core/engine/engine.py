"""The scheduler as a function of time and changes. It does no I/O, has no clock and uses no randomness.

    effects = engine.step(now, changes)

A recorded list of (now, changes) is a whole history: stepping through it again gives the same effects, bit for bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from situate.core.changes import (
    Change,
    ClaimsBound,
    ClaimsFailed,
    ExtenderSaid,
    Leading,
    Millis,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    Paused,
    PodGone,
    PodRef,
    PodSeen,
)
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.contract import Filter, Wake
from situate.core.devices.claims import ClaimProblemError, pod_claims
from situate.core.effects import Effect
from situate.core.engine.cycle import Cycle
from situate.core.engine.framework import Framework, build_frameworks
from situate.core.engine.metrics import EngineMetrics
from situate.core.engine.state import EngineState
from situate.core.engine.wake_events import bound_pod_events, node_events, object_events, own_events
from situate.core.model.devices import DeviceClass, ResourceClaim
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.place.stopwatch import NO_STOPWATCH, Stopwatch
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.preempt.extender_preemption import EXTENDER
from situate.core.queue.incoming import CAUSES, CLAIMS_MADE, GATES_GONE
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS, Backoff, SchedulingQueue
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.queue.queueing_hints import may_help, waits_for
from situate.core.state.classes import PodClass
from situate.core.state.cluster import FINISHED_PHASES, Cluster

BATCH: Final = 1_024
"""How many pods are decided in one step at most, so that the next changes are seen in between."""
DEVICE_WORK: Final = 100_000
"""After how much work for devices a step decides on no further pod, for the same reason."""
REFUSALS: Final = 16
"""How many pods that fit nowhere a step decides on, at most. Each takes milliseconds: reasons are found for every node,
and evictions are tried. Meanwhile everything else in the process waits."""


class Engine:
    """One scheduler: its cluster, its queue, and what it has decided and not seen confirmed."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        others: Mapping[str, type] | None = None,
        *,
        batch: int = BATCH,
        unschedulable_limit_ms: Millis = UNSCHEDULABLE_LIMIT_MS,
        metrics: EngineMetrics | None = None,
        stopwatch: Stopwatch = NO_STOPWATCH,
    ) -> None:
        backoff = Backoff(config.pod_initial_backoff_seconds * 1_000, config.pod_max_backoff_seconds * 1_000)
        self._profiles = build_frameworks(config, others)
        self._filters: dict[str, dict[str, Filter]] = {
            name: {plugin.name: plugin for plugin in framework.profile.filters}
            for name, framework in self._profiles.items()
        }
        self.cluster = Cluster(config.rules)
        self.metrics = metrics or EngineMetrics()
        self.queue = SchedulingQueue(backoff, self.metrics.incoming, unschedulable_limit_ms)
        self.state = EngineState(self.cluster, self.queue, self.metrics)
        self.cycle = Cycle(self.state, self._profiles, config.extenders, stopwatch)
        self._batch = batch
        self._arrivals = 0
        self._answers: list[ExtenderSaid] = []
        self.leading = True
        """A standby follows all changes and decides nothing, so that it can take over at once: see the change
        Leading."""
        self.paused = False

    @property
    def profiles(self) -> Mapping[str, Framework]:
        """By scheduler name: whose pods are decided here, and how."""
        return self._profiles

    def step(self, now: Millis, changes: Sequence[Change]) -> list[Effect]:
        """Take in what happened, decide what is due, and return what has to be done."""
        self.cycle.begin(now)
        # 1. Fold the changes into the cluster, the queue and the reservations.
        for change in changes:
            self._fold(change, now)
        # Answers of extenders may decide where pods go, so they come after all that was seen.
        answers, self._answers = self._answers, []
        for answer in answers:
            self.cycle.answered(answer)
        # 2. Handle what is due: binds and evictions to retry, nominations that ran out.
        self.cycle.due_timers()
        if not self.leading:
            self._wake(now)
            self.queue.prune()
            return self.cycle.end()
        self.cycle.review_gangs()
        # 3. Wake the unschedulable pods that all this may help.
        self._wake(now)
        self.queue.flush(now)
        # 4. Decide on the due pods, in order, up to the batch limit.
        devices = self.cluster.objects.devices
        most_work = devices.work + DEVICE_WORK
        for _ in range(0 if self.paused else self._batch):
            if devices.work > most_work or self.cycle.refused >= REFUSALS:
                break
            entry = self.queue.pop(now)
            if entry is None:
                break
            if entry.pod.spec.resource_claims and self._await_claims(entry):
                continue
            self.cycle.decide(entry)
            if self.state.events:
                self._wake(now)
        # 5. Return what has to be done.
        return self.cycle.end()

    def next_due_ms(self, now: Millis) -> Millis | None:
        """When to step again if nothing happens; None: not before something does."""
        if not self.leading or self.paused:
            return self.cycle.next_timer_ms()
        moments = (self.queue.next_due_ms(now), self.cycle.next_timer_ms())
        return min((moment for moment in moments if moment is not None), default=None)

    # -- folding -------------------------------------------------------------------------------------------------

    def _fold(self, change: Change, now: Millis) -> None:
        match change:
            case NodeSeen(node):
                self._node_seen(node)
            case NodeGone(name):
                self.cycle.node_gone(name)
            case PodSeen(pod):
                self._pod_seen(pod, now)
            case PodGone(ref):
                self._pod_gone(ref)
            case ObjectSeen(item):
                self._object_seen(item)
            case ObjectGone(item):
                self._object_gone(item)
            case ExtenderSaid():
                self._answers.append(change)
            case ClaimsBound() | ClaimsFailed():
                for claim in self.state.assumed_claims.news(change.claims):
                    self._object_seen(claim)
                self.cycle.answered(change)
            case Leading(leads):
                self.leading = leads
            case Paused(paused):
                self.paused = paused
            case _:
                self.cycle.answered(change)

    def _node_seen(self, node: Node) -> None:
        row = self.cluster.nodes.rows.get(node.metadata.name)
        before = None if row is None else self.cluster.nodes.objects[row]
        if self.cluster.add_node(node):
            self.state.events.extend(node_events(before, node, self.cluster.resources, self.cluster.objects))
            self.cycle.node_changed(before, node)

    def _pod_seen(self, pod: Pod, now: Millis) -> None:
        ref = PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        key = ref.key
        known = self.state.known_uid(key)
        if known is not None and known != ref.uid:
            # Another pod of the same name: the one that we knew is gone, whether or not we saw it leave.
            self._pod_gone(PodRef(ref.namespace, ref.name, known))
        if pod.spec.node_name:
            self._bound_seen(pod, ref)
        elif pod.status.phase in FINISHED_PHASES or pod.spec.scheduler_name not in self._profiles:
            self.cycle.leave(key)
        else:
            self._waiting_seen(pod, ref, now)
        if pod.status.phase in FINISHED_PHASES:
            self.state.gangs.drop(key)
        else:
            self.state.gangs.note(pod)

    def _bound_seen(self, pod: Pod, ref: PodRef) -> None:
        """Bound, by us or by another scheduler; or finished, and then it holds nothing any more."""
        key = ref.key
        before = self.cluster.counted(key)
        self.cycle.confirm(key, pod.spec.node_name)
        if pod.status.phase in FINISHED_PHASES:
            self._bound_gone(ref)
        elif self.cluster.add_pod(pod):
            after = self.cluster.counted(key)
            self.state.events.extend(bound_pod_events(before, after, self.cluster.objects))

    def _waiting_seen(self, pod: Pod, ref: PodRef, now: Millis) -> None:
        kind = self.cluster.class_of(pod)
        entry = self.queue.get(ref.key)
        if entry is None:
            self._arrivals += 1
            entry = QueuedPod(ref, pod, kind, now, self._arrivals)
            lacking = self._lacking_claim(pod) if pod.spec.resource_claims else None
            held = pod.spec.scheduling_gates or lacking is not None
            entry.state = QueueState.GATED if held else QueueState.ACTIVE
            self.queue.add(entry)
            if lacking is not None and not pod.spec.scheduling_gates:
                self.queue.awaiting_claims.add(entry, lacking.claim)
            gated = entry.state is QueueState.GATED and not self.cluster.rules.nominates_gated_pods
            if pod.status.nominated_node_name and not gated:
                self.cycle.preemptor.renominate(entry, pod.status.nominated_node_name)
            return
        if not self.leading and pod.status.nominated_node_name != entry.nominated:
            self.cycle.preemptor.follow(entry, pod.status.nominated_node_name)
        before, gated = entry.kind, entry.state is QueueState.GATED
        was_held = bool(entry.pod.spec.scheduling_gates)
        other_notes = entry.pod.metadata.annotations != pod.metadata.annotations
        entry.pod, entry.kind = pod, kind
        self.cycle.preemptor.restate(entry)
        if entry.state in (QueueState.IN_FLIGHT, QueueState.RESERVED) and pod.metadata.deletion_timestamp is not None:
            self.cycle.leave(ref.key)  # it cannot be bound any more, so others may have its room at once
            self.state.evictions.pop(ref.uid, None)  # its end may come as another pod of its name, which says nothing
        elif entry.state in (QueueState.IN_FLIGHT, QueueState.RESERVED):
            self.state.event_count += before is not kind  # if it is decided again, then as it is now
        elif pod.spec.scheduling_gates:
            self.queue.gate(entry)
        elif pod.spec.resource_claims and gated and self._await_claims(entry):
            pass
        elif gated:
            awaited = ref.key in self.queue.awaiting_claims
            if was_held or awaited:
                self._renominate(entry)
            self.queue.wake(entry, now, at_once=True, cause=CLAIMS_MADE if awaited else GATES_GONE)
        elif before is not kind or (other_notes and EXTENDER in entry.unschedulable_plugins):
            self.queue.changed(entry, now, worth=self._worth_own_change(entry, before))

    def _lacking_claim(self, pod: Pod) -> ClaimProblemError | None:
        """Why a pod must not be queued, as far as its claims are concerned. DynamicResources decides that."""
        if DynamicResources.name not in self._filters.get(pod.spec.scheduler_name, {}):
            return None
        try:
            pod_claims(pod, self.cluster.objects.devices.claims)
        except ClaimProblemError as problem:
            return problem
        return None

    def _await_claims(self, entry: QueuedPod) -> bool:
        """Gate a pod that lacks a claim, without a condition or event: that is up to whoever creates claims."""
        lacking = self._lacking_claim(entry.pod)
        if lacking is None:
            return False
        self.queue.await_claim(entry, lacking.claim)
        self.state.gangs.touch(entry.key)
        return True

    def _claim_changed(self, item: NamedObject, cause: Wake) -> None:
        """Queue the pods that waited for a claim alone."""
        if not isinstance(item, ResourceClaim):
            return
        for entry in self.queue.awaiting_claims.of((item.metadata.namespace, item.metadata.name)):
            if not self._await_claims(entry):
                self._renominate(entry)
                self.queue.wake(entry, self.state.now, cause=CAUSES[cause])
                self.state.gangs.touch(entry.key)

    def _renominate(self, entry: QueuedPod) -> None:
        """A pod is gated no longer: hold the node that its status names, if that was left until now."""
        node = entry.pod.status.nominated_node_name
        held = self.state.nominations.get(entry.key)
        if node and held is None and not self.cluster.rules.nominates_gated_pods:
            self.cycle.preemptor.renominate(entry, node)

    def _worth_own_change(self, entry: QueuedPod, before: PodClass) -> bool:
        """Whether a change of a refused pod itself could make it fit. It is not known what extenders read of a pod."""
        if EXTENDER in entry.unschedulable_plugins:
            return True
        events = own_events(before, entry.kind, self.cluster.objects)
        filters = self._filters.get(entry.pod.spec.scheduler_name, {})
        return events is None or any(
            may_help(entry.kind, entry.unschedulable_plugins, event, filters) for event in events
        )

    def _pod_gone(self, ref: PodRef) -> None:
        if self.state.known_uid(ref.key) not in (None, ref.uid):
            return  # outdated: a younger pod has this name
        self.cycle.leave(ref.key)
        self._bound_gone(ref)
        self.state.gangs.drop(ref.key)

    def _bound_gone(self, ref: PodRef) -> None:
        before = self.cluster.counted(ref.key)
        self.cycle.bound_gone(ref)
        if self.cluster.remove_pod(ref.key):
            self.state.events.extend(bound_pod_events(before, None, self.cluster.objects))

    def _object_seen(self, item: NamedObject | PriorityClass) -> None:
        if isinstance(item, PriorityClass):
            return  # priorities are resolved when a pod is created
        item = self.state.assumed_claims.seen(self.state.assumed.seen(item))
        before = self.cluster.find_object(item)
        if self.cluster.put_object(item):
            self.state.events.extend(object_events(before, item, self.cluster.objects))
            self.cycle.gangs.group_changed(item)
            self._reclassify(item)
            cause = Wake.RESOURCE_CLAIM_ADDED if before is None else Wake.RESOURCE_CLAIM_UPDATED
            self._claim_changed(item, cause)

    def _reclassify(self, item: NamedObject) -> None:
        """Pods with extended resources have classes of their own if a DeviceClass serves these."""
        if isinstance(item, DeviceClass):
            for entry in self.queue.values():
                if entry.kind.requested_names and self.cluster.class_of(entry.pod) is not entry.kind:
                    self._waiting_seen(entry.pod, entry.ref, self.state.now)

    def _object_gone(self, item: NamedObject | PriorityClass) -> None:
        if isinstance(item, PriorityClass):
            return
        self.state.assumed.gone(item)
        self.state.assumed_claims.gone(item)
        before = self.cluster.find_object(item)
        if self.cluster.forget_object(item):
            self.state.events.extend(object_events(before, None, self.cluster.objects))
            self.cycle.gangs.group_changed(item)
            self._reclassify(item)

    # -- waking --------------------------------------------------------------------------------------------------

    def _wake(self, now: Millis) -> None:
        """Wake the unschedulable pods that events may help; and count the events for pods that are in flight."""
        events, self.state.events = self.state.events, []
        self.state.event_count += len(events)
        if not events:
            return
        for entry in self.queue.flushed_pods():
            filters = self._filters.get(entry.pod.spec.scheduler_name, {})
            if any(
                waits_for(entry.unschedulable_plugins, event.kind, filters)
                and may_help(entry.kind, entry.unschedulable_plugins, event, filters)
                for event in events
            ):
                self.queue.clear_flushed(entry)
        if not self.queue.has_unschedulable:
            return
        for group in self.queue.rejected_pods():
            filters = self._filters.get(group.scheduler, {})
            relevant = [event for event in events if waits_for(group.by, event.kind, filters)]
            for kind in list(group.pods) if relevant else ():
                helping = (event for event in relevant if may_help(kind, group.by, event, filters))
                if (event := next(helping, None)) is not None:
                    self.queue.wake_class(group, kind, now, CAUSES[event.kind])
