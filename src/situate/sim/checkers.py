"""Invariants of a scheduler, checked after every step. Each checker yields the violations it finds.

They compare the scheduler with `ExpectedState`, which follows the scheduler's changes and effects, and
recompute from scratch what the scheduler decided with its caches. Nothing here changes the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from situate.core.changes import Millis, PodRef, PodSeen
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import (
    AskExtender,
    Bind,
    BindClaims,
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    Report,
    SetCondition,
    SetGroupCondition,
)
from situate.core.engine.binding import BIND_ANSWER_MS
from situate.core.engine.claims_to_bind import claims_to_bind
from situate.core.engine.engine import Engine
from situate.core.engine.framework import build_frameworks
from situate.core.engine.in_flight import NOMINATION_LIMIT_MS
from situate.core.engine.state import NOTE_BYTES
from situate.core.gang.naming import GangName, gang_of
from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.place.bind_annotations import BindAnnotations, with_annotations
from situate.core.place.filtering import fits_at, run_filters
from situate.core.place.placer import Placer
from situate.core.place.profile import Profile
from situate.core.place.sampling import draw_key, samples
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.dynamic_resources import decide as decide_devices
from situate.core.plugins.support.device_demand import DeviceDecision
from situate.core.queue.queue import BACKOFF_WINDOW_MS
from situate.core.queue.queued_pod import QueueState
from situate.core.state.audit import audit
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.sim.expected_state import ExpectedState, PendingEviction, bound_in, differing
from situate.sim.extender_calls import ExtenderCalls, Takes
from situate.sim.gang_checkers import decided_together, evicted_whole, gangs_that_fit
from situate.sim.room import overfull, running_on
from situate.sim.steps import SchedulerStep, concerns_all, gates
from situate.sim.store import ref_of

AUDIT_EVERY: Final = 101
"""Recompute all cached sums every so many steps."""
COMPARE_EVERY: Final = 17
"""Compare the pods of each node every so many steps."""
PARKED_EVERY: Final = 41
"""Check every so many steps that no unschedulable pod fits somewhere."""
CHOICE_EVERY: Final = 7
"""Recompute the choice of a node every so many binds."""
JUST_NOW_MS: Final = 2_000
"""In a calm world, a bind this young need not be done yet."""


class Checkers:
    """Checks one scheduler from its first step."""

    def __init__(self, engine: Engine, config: KubeSchedulerConfiguration, takes: Takes) -> None:
        self.engine = engine
        self._deciding = build_frameworks(config)
        self._longest_rest_ms = config.pod_max_backoff_seconds * 1_000 + BACKOFF_WINDOW_MS
        gating = frozenset(name for name, framework in self._deciding.items() if gates(framework.profile))
        self.expected = ExpectedState(frozenset(self._deciding), ExtenderCalls(config.extenders, takes), gating)
        self._now: Millis = 0
        self._binds = 0
        self._rescued = 0
        self._together: tuple[GangName, dict[str, bool]] | None = None
        """Pods of a gang that got nodes one right after another, so they were decided together. For each: whether it
        fits next to those before it."""

    def after(self, step: SchedulerStep) -> Iterator[str]:
        """The violations after a step."""
        self._now = step.now
        self.expected.begin_step(step.now)
        self._newly_asked: list[PodRef] = []
        for change in step.changes:
            self.expected.hear(change)
        self.expected.give_up_waiting(step.now)
        for effect in step.effects:
            yield from self._effect(effect)
        yield from self._gang_decided()
        yield from evicted_whole(self.expected, self._newly_asked)
        yield from self._nobody_rescued()
        yield from self._ledger(step.now)
        yield from self._queue(step.now)
        yield from self._awaiting_claims()
        if step.number % COMPARE_EVERY == 0:
            yield from self._counted()
        yield from self._not_woken(step)
        if step.number % AUDIT_EVERY == 0:
            yield from (f"audit: {line}" for line in audit(self.engine.cluster))
            yield from self._fresh()

    # -- effects -------------------------------------------------------------------------------------------------

    def _nobody_rescued(self) -> Iterator[str]:
        """A pod that the flush put back, without an event before, must still fit nowhere."""
        queue = self.engine.queue
        if queue.rescued != self._rescued:
            self._rescued = queue.rescued
            yield f"rescued by the flush: {queue.rescued} pods so far"

    def _profile(self, pod: Pod) -> Profile:
        return self._deciding[pod.spec.scheduler_name].profile

    def _effect(self, effect: Effect) -> Iterator[str]:
        match effect:
            case Bind(ref, node, attempt, _, said):
                yield from self._bind(ref, node, attempt, said)
                self.expected.ask_bind(effect, self._now)
            case BindClaims():
                yield from self._claims(effect)
            case BindVolumes(ref, node, attempt, static):
                if (pending := self.expected.current(ref, attempt)) is None or not pending.claims_pending:
                    yield from self._decision(ref, node, attempt)
                yield from self._volumes(ref, [volume for _, volume in static])
                self.expected.assumed.take(ref.key, static)
            case Evict():
                yield from self._evict(effect)
            case Nominate(ref, node):
                yield from self._nominate(ref, node)
            case SetCondition():
                yield from self._condition(effect)
            case SetGroupCondition(namespace, name, _, reason):
                if not (namespace and name and reason):
                    yield f"malformed: {effect}"
            case Report(ref, _, reason, action, note):
                if not (ref.uid and reason and action) or len(note.encode()) > NOTE_BYTES:
                    yield f"malformed: {effect}"
            case AskExtender():
                yield from self._asked(effect)

    def _asked(self, ask: AskExtender) -> Iterator[str]:
        """An extender is called about nodes that fit the pod, or about possible victims."""
        pod = self.expected.find(ask.pod)
        if pod is None or pod.spec.node_name or ask.pod.key in self.expected.pending_binds:
            if self.expected.knew(ask.pod) is None:
                yield f"extender: asked about {ask.pod.key}, which is not pending"
            return
        yield from self.expected.extender_calls.ask(ask, pod, self.expected.nodes, self._now)

    def _bind(self, ref: PodRef, node: str, attempt: int, said: BindAnnotations) -> Iterator[str]:
        pending = self.expected.current(ref, attempt)
        if pending is None and self.expected.ended.get((ref.uid, attempt)) == node:
            return  # requested in this step, before the end of the pod was known
        if pending is None:
            yield from self._decision(ref, node, attempt, said)
            if (devices := self._devices(ref, node)) is not None and (devices.allocations or devices.reserved):
                yield f"devices: {ref.key} is to be bound, and its claims are not"
        elif pending.node != node:
            yield f"double bind: attempt {attempt} of {ref.key} went to {pending.node}, and now to {node}"
        elif pending.done:
            yield f"double bind: attempt {attempt} of {ref.key} is done, and is requested again"
        elif pending.volumes_pending:
            yield f"volumes: {ref.key} is to be bound, and its volumes are not"
        elif pending.claims_pending:
            yield f"devices: {ref.key} is to be bound, and its claims are not"

    def _decision(self, ref: PodRef, node: str, attempt: int, said: BindAnnotations = ()) -> Iterator[str]:
        """The decision must be right as of what the scheduler knew."""
        expected, pod = self.expected, self.expected.find(ref)
        if pod is None:
            yield f"resurrected: a node for {ref.key} {ref.uid}, which does not exist"
            return
        yield from self._may_be_decided(ref, pod, attempt)
        row = expected.cluster.nodes.rows.get(node, NOWHERE)
        if row == NOWHERE:
            yield f"not eligible: {ref.key} on {node}, which does not exist"
            return
        yield from self._room(ref, pod, node)
        yield from expected.extender_calls.placed(ref, pod, node)
        gang = gang_of(pod)
        if self._together is not None and self._together[0] != gang:
            yield from self._gang_decided()
        kind = expected.cluster.class_of(pod)
        if gang is None:
            yield from self._eligible(ref, pod, attempt, node, row)
        else:
            fits = fits_at(self._profile(pod).filters, kind, View(expected.cluster), row)
            self._together = self._together or (gang, {})
            self._together[1][ref.key] = fits
        expected.reserve(ref, with_annotations(pod, said), node, attempt)

    def _eligible(self, ref: PodRef, pod: Pod, attempt: int, node: str, row: int) -> Iterator[str]:
        expected, profile = self.expected, self._profile(pod)
        kind, view = expected.cluster.class_of(pod), View(expected.cluster)
        if not fits_at(profile.filters, kind, view, row):
            yield f"not eligible: {ref.key} on {node}"
        elif (nominees := self._nominees(ref, kind, node, expected.cluster)) and not fits_at(
            profile.filters, kind, view.plus(nominees), row
        ):
            yield f"nomination broken: {ref.key} on {node}, where pods of its priority or above are nominated"
        self._binds += 1
        goes_round = not profile.sampling.nodes and samples(profile, len(expected.nodes))
        if expected.nominated or expected.in_doubt() or expected.extender_calls.has_say(pod) or goes_round:
            return  # filters and scores alone do not decide
        if self._binds % CHOICE_EVERY == 0:
            yield from self._choice(ref, pod, attempt, node)

    def _claims(self, ask: BindClaims) -> Iterator[str]:
        """The devices must be those that a fresh search finds."""
        ref = ask.pod
        yield from self._decision(ref, ask.node, ask.attempt)
        pending = self.expected.current(ref, ask.attempt)
        if pending is None:
            return
        decision = self._devices(ref, ask.node)
        if decision is None:
            yield f"devices: {ref.key} cannot have its devices on {ask.node}"
        elif claims_to_bind(decision) != (ask.claims, ask.create):
            yield f"devices: {ref.key} on {ask.node} gets others than a fresh search finds"
        else:
            patience_ms = self._deciding[pending.pod.spec.scheduler_name].devices_ms
            self.expected.ask_claims(ref, decision, self._now + patience_ms)

    def _devices(self, ref: PodRef, node: str) -> DeviceDecision | None:
        """The devices of a pod on a node, as of what the scheduler knew."""
        cluster, pod = self.expected.cluster, self.expected.find(ref)
        plugin = None if pod is None else self._deciding[pod.spec.scheduler_name].devices
        if pod is None or plugin is None or node not in cluster.nodes.rows:
            return None
        return decide_devices(plugin, cluster.class_of(pod), View(cluster), cluster.nodes.rows[node])

    def _gang_decided(self) -> Iterator[str]:
        together, self._together = self._together, None
        if together is not None:
            profile = self._profile(self.expected.pods[next(iter(together[1]))])
            yield from decided_together(self.expected, profile, together[1], together[0])

    def _volumes(self, ref: PodRef, volumes: Sequence[str]) -> Iterator[str]:
        """A volume is for one claim, also while its bind is pending."""
        for other in self.expected.pending_binds.values():
            if other.ref == ref:
                patience_ms = self._deciding[other.pod.spec.scheduler_name].volumes_ms
                self.expected.ask_volumes(ref, tuple(volumes), self._now + patience_ms)
            elif shared := [one for one in volumes if one in other.volumes]:
                yield f"volume assigned twice: {shared[0]} to {other.ref.key} and now to {ref.key}"

    def _may_be_decided(self, ref: PodRef, pod: Pod, attempt: int) -> Iterator[str]:
        if pod.spec.node_name:
            yield f"double bind: {ref.key} is bound to {pod.spec.node_name}"
        if ref.key in self.expected.pending_binds:
            yield f"double bind: {ref.key} has {self.expected.pending_binds[ref.key].node} already"
        if pod.spec.scheduling_gates:
            yield f"gated: {ref.key} was given a node"
        if pod.metadata.deletion_timestamp is not None:
            yield f"leaving: {ref.key} is being deleted, and was given a node"
        if attempt <= self.expected.attempts.get(ref.uid, 0):
            yield f"attempts: {ref.key} was decided again as attempt {attempt}"

    def _room(self, ref: PodRef, pod: Pod, node: str) -> Iterator[str]:
        """Recomputed from the pods, without any of the scheduler's sums."""
        expected = self.expected
        there = running_on(node, expected.pods.values())
        there += [one.pod for one in expected.pending_binds.values() if one.node == node]
        short = overfull(expected.nodes[node], [*there, pod], pod, expected.extender_calls.unwatched)
        if short:
            yield f"overcommit: {ref.key} on {node}: {short}"

    def _nominees(self, ref: PodRef, kind: PodClass, node: str, cluster: Cluster) -> list[tuple[PodClass, int]]:
        """Pods nominated to the node that have at least this pod's priority."""
        found = []
        for key, (other, promised) in self.expected.nominated.items():
            pod = self.expected.find(other)
            if promised == node and key != ref.key and pod is not None and not self.expected.leaves(other):
                nominee = cluster.class_of(pod)
                if nominee.priority >= kind.priority:
                    found.append((nominee, cluster.nodes.rows[node]))
        return found

    def _choice(self, ref: PodRef, pod: Pod, attempt: int, node: str) -> Iterator[str]:
        cluster, profile = self.expected.cluster, self._profile(pod)
        placer = Placer(cluster, profile, cache=False)
        kind, key = cluster.class_of(pod), draw_key(ref.uid, attempt) if placer.samples else 0
        avoided = cluster.nodes.rows.get(self.expected.rejected.get(ref.uid, ""), NOWHERE)
        row = NOWHERE if avoided == NOWHERE else placer.choose(kind, (avoided,), key)
        if row == NOWHERE:
            row = placer.choose(kind, (), key)
        best = "nowhere" if row == NOWHERE else cluster.nodes.names[row]
        if best != node:
            yield f"stale cache: {ref.key} on {node}, but a fresh decision is {best}"

    def _evict(self, effect: Evict) -> Iterator[str]:
        expected, victim = self.expected, self.expected.find(effect.victim)
        if victim is None or victim.spec.node_name != effect.node:
            if effect.victim.key not in expected.pending_binds:
                yield f"eviction: {effect.victim.key} is not on {effect.node}"
        elif victim.metadata.deletion_timestamp is not None:
            yield f"eviction: {effect.victim.key} is already being deleted"
        preemptor = expected.find(effect.preemptor)
        gives_up = effect.preemptor == effect.victim  # a gang that was bound in part
        if victim and preemptor and not gives_up and (victim.spec.priority or 0) >= (preemptor.spec.priority or 0):
            yield f"eviction: {effect.victim.key} has no lower priority than {effect.preemptor.key}"
        asked = expected.asked.get(effect.victim.uid)
        alone = preemptor and victim and gang_of(preemptor) is None and gang_of(victim) is None
        if preemptor and alone and asked is None:
            yield from expected.extender_calls.evicts(effect.preemptor, preemptor, effect.node, effect.victim)
        if asked is None:
            expected.asked[effect.victim.uid] = PendingEviction()
            self._newly_asked.append(effect.victim)
            return
        asked.times += 1
        if asked.times > asked.failures + 1:
            yield f"eviction repeated: {effect.victim.key}, {asked.times} times after {asked.failures} failures"

    def _nominate(self, ref: PodRef, node: str) -> Iterator[str]:
        if self.expected.knew(ref) is None:
            yield f"nomination: {ref.key} does not exist"
        elif node and node not in self.expected.nodes:
            yield f"nomination: {node} does not exist"
        self.expected.nominate(ref, node)

    def _condition(self, effect: SetCondition) -> Iterator[str]:
        pod = self.expected.find(effect.pod)
        if self.expected.knew(effect.pod) is None:
            yield f"condition: {effect.pod.key} does not exist"
        if effect.type != "PodScheduled" or not effect.reason or not effect.message:
            yield f"malformed: {effect}"
        if effect.reason == "SchedulerError" and pod is not None and gang_of(pod) is not None:
            self.expected.gave_up(effect.pod)  # a gang that could not be bound in time
        if pod is None or effect.reason != "Unschedulable" or gang_of(pod) is not None or self.expected.in_doubt():
            return
        if self.expected.extender_calls.has_say(pod) or self._profile(pod).sampling.nodes:
            return  # extenders left no node, or it sampled other nodes
        if (fits := self._fitting(self.expected.cluster, pod)) is not None:
            yield f"refused: {effect.pod.key} was refused everywhere, but fits {fits}"

    # -- reservations and the queue ------------------------------------------------------------------------------

    def _ledger(self, now: Millis) -> Iterator[str]:
        state, expected = self.engine.state, self.expected
        kept = {key: (one.entry.ref.uid, one.node, one.attempt) for key, one in state.reservations.items()}
        owed = {key: (one.ref.uid, one.node, one.attempt) for key, one in expected.pending_binds.items()}
        if kept != owed:
            yield f"reservations: {differing(kept, owed)}"
        for one in state.nominations.values():
            if not now < one.until_ms <= now + NOMINATION_LIMIT_MS:
                yield f"nomination: {one.ref.key} holds {one.node} until {one.until_ms}, and it is {now}"
            if expected.find(one.ref) is None:
                yield f"nomination: {one.ref.key} is gone, and holds {one.node}"
        counted = [ref for ref, _ in expected.nominated.values()] + [one.ref for one in state.nominations.values()]
        keys = {ref.key for ref in counted if not expected.leaves(ref)}
        promised = {one.ref.key: one.node for one in state.nominations.values() if one.ref.key in keys}
        due = {key: node for key, (_, node) in expected.nominated.items() if key in keys}
        if promised != due:
            yield f"nominations: {differing(promised, due)}"
        for uid in state.evictions:
            if uid not in expected.asked:
                yield f"evictions: {uid} is remembered, but was not requested"

    def _queue(self, now: Millis) -> Iterator[str]:
        """Every waiting pod is in exactly one queue state, and none is overdue."""
        queue, expected = self.engine.queue, self.expected
        parked = {entry.key: entry for entry in queue.unschedulable()}
        for pod in expected.waiting():
            key = key_of(pod.metadata)
            entry = queue.get(key)
            if entry is None or entry.ref.uid != pod.metadata.uid:
                yield f"lost: {key} {pod.metadata.uid} waits, and is not in the queue"
                continue
            if (entry.state is QueueState.UNSCHEDULABLE) != (parked.get(key) is entry):
                yield f"lost: {key} is {entry.state.value}, but is found elsewhere"
            if (entry.state is QueueState.RESERVED) != (key in expected.pending_binds):
                yield f"lost: {key} is {entry.state.value}, and its node is {expected.pending_binds.get(key)}"
            if entry.state is QueueState.BACKOFF:
                if entry.retry_at_ms <= now:
                    yield f"lost: {key} should have left backoff at {entry.retry_at_ms}, and it is {now}"
                if entry.retry_at_ms > now + self._longest_rest_ms:
                    yield f"lost: {key} is in backoff until {entry.retry_at_ms}, and it is {now}"
            gates, gated = bool(pod.spec.scheduling_gates), entry.state is QueueState.GATED
            if (gates and not gated and entry.state is not QueueState.RESERVED) or (
                gated and not gates and not gang_of(pod) and key not in queue.awaiting_claims
            ):
                yield f"gated: {key} is {entry.state.value}, and its gates are {pod.spec.scheduling_gates}"
            if entry.state is QueueState.IN_FLIGHT and not expected.extender_calls.is_open(pod.metadata.uid):
                yield f"lost: {key} is in flight, and nobody decides it"
        for entry in queue.values():
            if expected.find(entry.ref) is None:
                yield f"resurrected: {entry.key} {entry.ref.uid} waits, and does not exist"

    def _awaiting_claims(self) -> Iterator[str]:
        """A pod waits for claims only while it lacks one. It may be found in that state when its turn comes."""
        expected, waits = self.expected, self.engine.queue.awaiting_claims
        expected.awaiting_claims = {key: None for key in expected.pods if key in waits}
        for key in expected.awaiting_claims:
            if not expected.lacks_claims(expected.pods[key]):
                yield f"gated: {key} waits for claims, and has them all"

    # -- recomputed from scratch ---------------------------------------------------------------------------------

    def _counted(self) -> Iterator[str]:
        kept, owed = bound_in(self.engine.cluster), self.expected.bound()
        if kept != owed:
            yield f"counted: {differing(kept, owed)}"

    def _fresh(self) -> Iterator[str]:
        """A freshly built cluster must give the same feasible nodes."""
        fresh, kept = self.expected.rebuilt(), self.engine.cluster
        for pod in self._one_of_each(self.expected.waiting()):
            ours = self._all_fitting(kept, pod)
            theirs = self._all_fitting(fresh, pod)
            if ours != theirs:
                yield f"stale cache: {pod.metadata.name} fits {ours}, and on a new cluster {theirs}"

    def _not_woken(self, step: SchedulerStep) -> Iterator[str]:
        """An unschedulable pod that fits somewhere missed an event.

        Checks all after a change of a node, when a slice or class of devices goes, and now and then. Otherwise it
        checks the pods that changed, and those that were refused after calls to extenders, because much may have
        happened meanwhile.
        """
        if self.expected.in_doubt():
            return
        parked = {entry.key for entry in self.engine.queue.unschedulable()}
        everybody = step.number % PARKED_EVERY == 0 or any(map(concerns_all, step.changes))
        if not everybody:
            changed = {key_of(change.pod.metadata) for change in step.changes if isinstance(change, PodSeen)}
            refused = {effect.pod.key for effect in step.effects if isinstance(effect, SetCondition)}
            parked &= changed | {key for key in refused if key in self.expected.pods and self._asked_about(key)}
        alone = [pod for pod in self.expected.waiting() if gang_of(pod) is None and key_of(pod.metadata) in parked]
        for pod in self._one_of_each(alone):
            if (fits := self._fitting(self.expected.cluster, pod)) is not None:
                yield f"not woken: {pod.metadata.name} is unschedulable, and fits {fits}"

    def _asked_about(self, key: str) -> bool:
        return self.expected.extender_calls.has_say(self.expected.pods[key])

    def waiting_that_fit(self, now: Millis) -> Iterator[str]:
        """At the end of the calm phase, a pod that fits somewhere must be bound."""
        fresh = self.expected.rebuilt()
        drawing = set()
        for pod in self.expected.waiting():
            key = key_of(pod.metadata)
            entry = self.engine.queue.get(key)
            if pod.spec.scheduling_gates or entry is None:
                continue
            if self._is_drawing(pod, entry.state, now):
                drawing.add(key)
                continue
            if entry.state is QueueState.RESERVED:
                if not self.expected.pending_binds[key].preparing:  # may take as long as configured
                    yield f"not bound: {key} has {self.expected.pending_binds[key].node}, and is not bound"
            elif gang_of(pod) is None and (fits := self._fitting(fresh, pod)) is not None:
                yield f"not bound: {key} is {entry.state.value}, and fits {fits}"
        yield from gangs_that_fit(self.expected, self._profile, self._arrived, drawing, fresh)

    def _is_drawing(self, pod: Pod, place: QueueState, now: Millis) -> bool:
        """Whether a pod of a sampling profile may still draw the right node.

        Other checks make sure that its backoff has a limit and that somebody decides it.
        """
        if not self._profile(pod).sampling.nodes:
            return False
        if place is QueueState.RESERVED:
            return self.expected.pending_binds[key_of(pod.metadata)].until_ms > now + BIND_ANSWER_MS - JUST_NOW_MS
        return place in (QueueState.BACKOFF, QueueState.IN_FLIGHT)

    def _arrived(self, pod: Pod) -> tuple[int, int]:
        """The order in which a gang's pods are planned."""
        entry = self.engine.queue.get(key_of(pod.metadata))
        return (0, 0) if entry is None else (-entry.priority, entry.order)

    def _one_of_each(self, pods: Sequence[Pod]) -> list[Pod]:
        """One pod of each class and scheduler, because those fit alike; all pods if extenders care about them."""
        extender_calls, class_of = self.expected.extender_calls, self.expected.cluster.class_of
        alike: dict[tuple[PodClass, str, str], Pod] = {}
        for pod in pods:
            alike[class_of(pod), pod.spec.scheduler_name, pod.metadata.uid if extender_calls.has_say(pod) else ""] = pod
        return list(alike.values())

    def _all_fitting(self, cluster: Cluster, pod: Pod) -> list[str]:
        filtered = run_filters(self._profile(pod), cluster.class_of(pod), View(cluster))
        names = cluster.nodes.names
        return sorted(names[row] for row in filtered.feasible.nonzero()[0].tolist())

    def _fitting(self, cluster: Cluster, pod: Pod) -> str | None:
        """A node that fits the pod next to nominated pods, and that extenders would take."""
        kind, filters = cluster.class_of(pod), self._profile(pod).filters
        for node in self._all_fitting(cluster, pod):
            if not self.expected.extender_calls.would_take(pod, node):
                continue
            nominees = self._nominees(ref_of(pod), kind, node, cluster)
            if not nominees or fits_at(filters, kind, View(cluster).plus(nominees), cluster.nodes.rows[node]):
                return node
        return None
