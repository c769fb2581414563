"""The virtual cluster: time jumps from event to event, and the real engine decides.

Decisions take no time, and effects are carried out at once: a bound pod runs, volumes are provisioned, and a victim is
gone after its grace period. Nothing fails. The ledger records what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, unique
from heapq import heappop, heappush
from typing import Final

from msgspec.structs import replace

from situate.core.changes import (
    Change,
    ClaimsBound,
    EvictDone,
    Millis,
    NodeSeen,
    ObjectSeen,
    PodGone,
    PodRef,
    PodSeen,
    VolumesBound,
)
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, BindClaims, BindVolumes, Effect, Evict, ReleaseClaim, SetCondition
from situate.core.engine.engine import Engine
from situate.core.gang.naming import gang_of
from situate.core.model.meta import controller_of
from situate.core.model.pod import Pod, PodStatus
from situate.core.model.policy import PodDisruptionBudget
from situate.core.plugins.scheduling_gates import SchedulingGates
from situate.core.queue.queued_pod import QueueState
from situate.core.state.classes import signature
from situate.core.state.pods import DISRUPTION_TARGET, timestamp_text
from situate.sim.whatif.backlog import Backlog
from situate.sim.whatif.budgets import BudgetTracker
from situate.sim.whatif.claims import ClaimBook
from situate.sim.whatif.distributions import draw
from situate.sim.whatif.expansion import letters, renamed
from situate.sim.whatif.ledger import OPEN, Origin, PodEnd, RunLedger, reason_in
from situate.sim.whatif.script import Arrival, ClusterSnapshot, NextPod, Script, no_claims, owner_name
from situate.sim.whatif.volumes import bind_volumes

SETTLING_MS: Final[Millis] = 10 * 60 * 1_000
"""How long the engine may still act after the last event of the script."""
PROGRESS_EVERY: Final = 256
"""The number of moments between progress reports."""
ELSEWHERE: Final = "waits for scheduler {}"

Progress = Callable[[int, int], None]
"""Called with the number of arrived and of all pods."""


@unique
class Remade(Enum):
    """Which evicted pods are recreated."""

    OWNED = "owned"
    """Those with a controller, as in a cluster."""
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Shared by all configurations."""

    until_ms: Millis | None = None
    grace_ms: Millis = 0
    remade: Remade = Remade.OWNED
    base_ms: Millis = 0
    """The start of the simulation in milliseconds since the epoch, for times in the snapshot."""


@dataclass(frozen=True, slots=True)
class SimulationRun:
    ledger: RunLedger
    engine: Engine
    end_ms: Millis
    moments: int
    groups: list[str]


@dataclass(slots=True, eq=False)
class _Live:
    """A pod that exists."""

    pod: Pod
    row: int
    group: int
    number: int
    runs_ms: Millis | None
    stay: int = OPEN
    reason: int = OPEN
    reason_since: Millis = 0
    repays: tuple[str, ...] = ()
    leaving: bool = False
    stands: bytes = b""
    """Its class, if it is refused and in the queue."""
    held: bytes = b""
    """Its class, if it is held back."""


def run(
    snapshot: ClusterSnapshot,
    script: Script,
    config: KubeSchedulerConfiguration,
    others: Mapping[str, type],
    settings: SimulationSettings,
    progress: Progress,
) -> SimulationRun:
    """Run the script with this configuration. Extenders are not called."""
    world = _World(snapshot, script, Engine(replace(config, extenders=()), others), settings)
    return world.play(progress)


class _World:
    def __init__(self, snapshot: ClusterSnapshot, script: Script, engine: Engine, settings: SimulationSettings) -> None:
        self._engine = engine
        self._script = script
        self._settings = settings
        self._ledger = RunLedger()
        self._live: dict[str, _Live] = {}
        self._leaving: list[tuple[Millis, int, str, str, PodEnd]] = []
        """A heap of (time, sequence, key, uid, end)."""
        self._sequence = 0
        self._groups = [group.name for group in script.groups]
        self._made = [group.first for group in script.groups]
        """The number of pods of each set, created or in the script."""
        for arrival in script.arrivals:
            self._made[arrival.group] = max(self._made[arrival.group], arrival.number + 1)
        priorities = dict.fromkeys(pod.spec.priority or 0 for pod in snapshot.bound)
        priorities |= dict.fromkeys(arrival.pod.spec.priority or 0 for arrival in script.arrivals)
        self._ranked = len(priorities) > 1
        """Whether any pod could be evicted: only then start times matter."""
        self._owners = {name: at for at, name in enumerate(self._groups)}
        self._remade: dict[int, int] = {}
        self._reasons: dict[str, int] = {}
        self._now: Millis = 0
        self._stamp = ""
        self._last_ms: Millis = 0
        self._moments = 0
        self._came = self._deleted = 0
        self._seen: list[Change] = []
        """Bound pods to report with the next event; the engine counts them already."""
        self._backlog: Backlog[_Live] = Backlog()
        self._due_ms: Millis | None = None
        """When the engine is due."""
        named = [*snapshot.named, *script.named]
        self._budgets = BudgetTracker(one for one in named if isinstance(one, PodDisruptionBudget))
        self._claims = ClaimBook(named, script.templates)
        changes: list[Change] = [NodeSeen(node) for node in snapshot.nodes]
        changes += [ObjectSeen(one) for one in named]
        changes += [PodSeen(pod) for pod in snapshot.bound]
        self._engine.step(0, changes)
        for pod in snapshot.bound:
            self._settled(pod)

    def _settled(self, pod: Pod) -> None:
        """Add a bound pod of the snapshot."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        cluster = self._engine.cluster
        pod_row = cluster.pods.rows.get(key)
        if pod_row is None:
            return  # its node does not exist
        row = self._ledger.pod(key, Origin.SNAPSHOT, self._owner_group(pod), 0)
        self._ledger.shape(row, cluster.pods.kind(pod_row))
        live = self._live[key] = _Live(pod, row, self._ledger.groups[row], 0, None)
        live.stay = self._ledger.stay(row, cluster.pods.node_rows[pod_row], 0)

    def _owner_group(self, pod: Pod) -> int:
        """The set of a pod that is not in the script: one for each owner."""
        name = owner_name(pod)
        at = self._owners.get(name)
        if at is None:
            at = self._owners[name] = len(self._groups)
            self._groups.append(name)
        return at

    # -- time ----------------------------------------------------------------------------------------------------

    def play(self, progress: Progress) -> SimulationRun:
        total = len(self._script.arrivals)
        while (moment := self._next()) is not None:
            self._now, self._stamp = moment, ""
            self._moments += 1
            if self._moments % PROGRESS_EVERY == 0:
                progress(self._came, total)
            self._happen(moment)
        progress(self._came, total)
        if self._seen:
            self._engine.step(self._now, self._seen)
        end_ms = self._last_ms if self._settings.until_ms is None else self._settings.until_ms
        self._close()
        return SimulationRun(self._ledger, self._engine, end_ms, self._moments, self._groups)

    def _next(self) -> Millis | None:
        """The next moment at which something happens; None: the run is over."""
        script = self._script
        coming = []
        if self._came < len(script.arrivals):
            coming.append(script.arrivals[self._came].at_ms)
        if self._deleted < len(script.deletions):
            coming.append(script.deletions[self._deleted].at_ms)
        if self._leaving:
            coming.append(self._leaving[0][0])
        due = self._due_ms
        if due is not None and (coming or self._unsettled(due)):
            coming.append(max(due, self._now))
        moment = min(coming, default=None)
        until = self._settings.until_ms
        return None if moment is None or (until is not None and moment > until) else moment

    def _unsettled(self, due: Millis) -> bool:
        """Whether the engine may still change something by itself: unschedulable pods only retry."""
        if due > self._last_ms + SETTLING_MS:
            return False
        counts = self._engine.queue.counts()
        waiting = (
            counts[QueueState.ACTIVE]
            + counts[QueueState.BACKOFF]
            + counts[QueueState.IN_FLIGHT]
            + counts[QueueState.RESERVED]
        )
        return bool(waiting or len(self._engine.state.nominations))

    def _happen(self, now: Millis) -> None:
        """Process one moment until nothing follows from it."""
        due = self._due(now)
        if due:
            self._last_ms = now
        changes, self._seen = [*self._seen, *due], []
        while True:
            effects = self._engine.step(now, changes)
            changes = self._carried_out(effects, now)
            if changes:
                self._last_ms = now
                changes, self._seen = [*self._seen, *changes], []
                continue
            if self._seen:
                self._last_ms = now
            self._due_ms = self._engine.next_due_ms(now)
            if self._due_ms is None or self._due_ms > now:
                return

    def _due(self, now: Millis) -> list[Change]:
        """Leaving, deleted and arriving pods at this moment, in this order."""
        changes: list[Change] = []
        while self._leaving and self._leaving[0][0] <= now:
            _, _, key, uid, end = heappop(self._leaving)
            live = self._live.get(key)
            if live is not None and live.pod.metadata.uid == uid:
                self._gone(live, end, changes)
        script = self._script
        while self._deleted < len(script.deletions) and script.deletions[self._deleted].at_ms <= now:
            live = self._live.get(script.deletions[self._deleted].key)
            if live is not None:
                self._gone(live, PodEnd.DELETED, changes)
            self._deleted += 1
        while self._came < len(script.arrivals) and script.arrivals[self._came].at_ms <= now:
            arrival = script.arrivals[self._came]
            self._came += 1
            self._arrive(arrival, Origin.ARRIVED, changes)
        return changes

    # -- pods ----------------------------------------------------------------------------------------------------

    def _arrive(self, arrival: Arrival, origin: Origin, changes: list[Change]) -> _Live:
        pod, meta = self._claims.arrived(arrival.pod, changes), arrival.pod.metadata
        key = f"{meta.namespace}/{meta.name}"
        row = self._ledger.pod(key, origin, arrival.group, self._now)
        live = self._live[key] = _Live(pod, row, arrival.group, arrival.number, arrival.runs_ms)
        if arrival.group < len(self._script.groups) and self._script.groups[arrival.group].claims is not no_claims:
            claims = self._script.groups[arrival.group].claims(arrival.number)
            known = self._engine.cluster.objects.storage.claims
            changes.extend(
                ObjectSeen(one) for one in claims if (one.metadata.namespace, one.metadata.name) not in known
            )
        if pod.spec.scheduler_name not in self._engine.profiles:
            self._waits(live, ELSEWHERE.format(pod.spec.scheduler_name))
        elif pod.spec.scheduling_gates:
            gated = SchedulingGates().admit(pod.spec)
            self._waits(live, "gated" if gated is None else gated.text)
        elif self._backlog.busy and _alone(pod) and self._backlog.covers(kind := signature(pod)):
            self._hold(live, kind)
            return live
        changes.append(PodSeen(pod))
        return live

    def _hold(self, live: _Live, kind: bytes) -> None:
        """Treat the pod as refused like others of its class."""
        live.held = kind
        self._backlog.hold(kind, live)
        self._waits(live, self._backlog.why[kind])

    def _release(self, live: _Live | None, changes: list[Change]) -> None:
        """Queue a pod that was held back; if it is gone, the next one."""
        while live is not None:
            kind, live.held = live.held, b""
            meta = live.pod.metadata
            if self._live.get(f"{meta.namespace}/{meta.name}") is live:
                # It represents its class before it is refused: if it is placed, the next one follows.
                live.stands = kind
                self._backlog.stand(kind)
                changes.append(PodSeen(live.pod))
                return
            live = self._backlog.next(kind)

    def _step_down(self, live: _Live, changes: list[Change]) -> None:
        if live.stands:
            kind, live.stands = live.stands, b""
            self._release(self._backlog.step_down(kind), changes)

    def _gone(self, live: _Live, end: PodEnd, changes: list[Change]) -> None:
        """Remove a pod; its controller may create another."""
        meta = live.pod.metadata
        self._ledger.ends[live.row] = end
        self._stop_waiting(live, self._now)
        if live.stay != OPEN:
            self._ledger.stay_to[live.stay] = self._now
        del self._live[f"{meta.namespace}/{meta.name}"]
        if not live.held:
            changes.append(PodGone(PodRef(meta.namespace, meta.name, meta.uid)))
        changes += self._claims.gone(live.pod)
        self._step_down(live, changes)
        if end is PodEnd.EVICTED:
            self._remake(live, changes)
        elif end is PodEnd.FINISHED:
            self._follow(live, NextPod.FINISHED, changes)

    def _follow(self, live: _Live, when: NextPod, changes: list[Change]) -> None:
        """Create the next pod of a sequential set."""
        if live.group >= len(self._script.groups):
            return
        group, number = self._script.groups[live.group], self._made[live.group]
        if group.next is not when or number >= group.total:
            return
        self._made[live.group] += 1
        pod = group.member(number)
        runs = None if group.duration is None else group.duration.at(draw(self._script.seed, "runs", pod.metadata.uid))
        self._arrive(Arrival(self._now, pod, live.group, number, runs), Origin.ARRIVED, changes)

    def _remake(self, live: _Live, changes: list[Change]) -> None:
        rule, owner = self._settings.remade, controller_of(live.pod.metadata)
        if rule is Remade.NONE or (rule is Remade.OWNED and owner is None):
            return
        times = self._remade[live.group] = self._remade.get(live.group, 0) + 1
        pod, name = live.pod, live.pod.metadata.name
        named = live.group < len(self._script.groups) and self._script.groups[live.group].named
        if owner is not None and not named and owner.kind not in ("StatefulSet", "DaemonSet"):
            name = f"{owner.name}-{letters(f'remade {owner.name}', times)}"
            while f"{pod.metadata.namespace}/{name}" in self._live:
                name = f"{name}-{times}"
        made = renamed(pod, name)
        meta = replace(made.metadata, uid=f"{made.metadata.uid}#{times}", creation_timestamp=None)
        meta = replace(meta, deletion_timestamp=None)
        again = replace(made, metadata=meta, spec=replace(pod.spec, node_name=""), status=PodStatus())
        number, runs = live.number, live.runs_ms
        there = self._arrive(Arrival(self._now, again, live.group, number, runs), Origin.REMADE, changes)
        there.repays = live.repays

    # -- effects -------------------------------------------------------------------------------------------------

    def _carried_out(self, effects: list[Effect], now: Millis) -> list[Change]:
        changes: list[Change] = []
        for effect in effects:
            kind = type(effect)
            if kind is Bind:
                self._bind(effect, now, changes)  # type: ignore[arg-type]
            elif kind is SetCondition:
                self._refused(effect, changes)  # type: ignore[arg-type]
            elif kind is Evict:
                self._evict(effect, now, changes)  # type: ignore[arg-type]
            elif kind is BindVolumes:
                changes += bind_volumes(self._engine.cluster, effect)  # type: ignore[arg-type]
                changes.append(VolumesBound(effect.pod, effect.attempt))  # type: ignore[union-attr]
            elif kind is BindClaims:
                changes += self._claims.bound(effect)  # type: ignore[arg-type]
                changes.append(ClaimsBound(effect.pod, effect.attempt))  # type: ignore[union-attr]
            elif kind is ReleaseClaim:
                changes += self._claims.released(effect)  # type: ignore[arg-type]
        return changes

    def _bind(self, effect: Bind, now: Millis, changes: list[Change]) -> None:
        key = effect.pod.key
        live = self._live[key]
        cluster = self._engine.cluster
        pod_row = cluster.pods.rows[key]
        self._ledger.shape(live.row, cluster.pods.kind(pod_row))
        self._stop_waiting(live, now)
        self._step_down(live, changes)
        live.stay = self._ledger.stay(live.row, cluster.pods.node_rows[pod_row], now)
        pod = live.pod
        if self._ranked and not self._stamp:
            self._stamp = timestamp_text(self._settings.base_ms + now)
        claims = pod.status.resource_claim_statuses
        status = PodStatus(phase="Running", start_time=self._stamp or None, resource_claim_statuses=claims)
        live.pod = Pod(metadata=pod.metadata, spec=replace(pod.spec, node_name=effect.node), status=status)
        self._seen.append(PodSeen(live.pod))
        if live.runs_ms is not None:
            self._leave(now + live.runs_ms, live, PodEnd.FINISHED)
        if live.repays:
            self._budgets.give_back(live.repays, changes)
            live.repays = ()
        self._follow(live, NextPod.BOUND, changes)

    def _leave(self, at_ms: Millis, live: _Live, end: PodEnd) -> None:
        self._sequence += 1
        meta = live.pod.metadata
        heappush(self._leaving, (at_ms, self._sequence, f"{meta.namespace}/{meta.name}", meta.uid, end))

    def _evict(self, effect: Evict, now: Millis, changes: list[Change]) -> None:
        live = self._live.get(effect.victim.key)
        if live is None or live.pod.metadata.uid != effect.victim.uid or live.leaving:
            return
        live.leaving = True
        self._ledger.evictions += 1
        live.repays = self._budgets.take(live.pod, changes)
        changes.append(EvictDone(effect.victim))
        if not self._settings.grace_ms:
            self._gone(live, PodEnd.EVICTED, changes)
            return
        meta = replace(live.pod.metadata, deletion_timestamp=timestamp_text(self._settings.base_ms + now))
        status = replace(live.pod.status, conditions=(DISRUPTION_TARGET,))
        changes.append(PodSeen(replace(live.pod, metadata=meta, status=status)))
        self._leave(now + self._settings.grace_ms, live, PodEnd.EVICTED)

    def _refused(self, effect: SetCondition, changes: list[Change]) -> None:
        live = self._live.get(effect.pod.key)
        if effect.status != "False" or live is None or live.stay != OPEN or live.held:
            return
        entry = self._engine.queue.get(effect.pod.key)
        if entry is None:
            return
        if self._ledger.pod_shapes[live.row] == OPEN:
            self._ledger.shape(live.row, entry.kind)
        self._waits(live, effect.message)
        if not _alone(live.pod):
            return
        kind = entry.kind.signature
        if entry.nominated:
            self._step_down(live, changes)
            self._release(self._backlog.next(kind), changes)
        elif not live.stands:
            self._backlog.why[kind] = effect.message
            if self._backlog.covers(kind):
                changes.append(PodGone(effect.pod))
                self._hold(live, kind)
            else:
                live.stands = kind
                self._backlog.stand(kind)
        else:
            self._backlog.why[kind] = effect.message

    def _waits(self, live: _Live, message: str) -> None:
        at = self._reasons.get(message)
        if at is None:
            at = self._reasons[message] = self._ledger.reason(reason_in(message))
        if live.reason != at:
            self._stop_waiting(live, self._now)
            live.reason, live.reason_since = at, self._now

    def _stop_waiting(self, live: _Live, now: Millis) -> None:
        if live.reason != OPEN and live.reason_since < now:
            self._ledger.waited(live.row, live.reason, live.reason_since, now)
        live.reason = OPEN

    def _close(self) -> None:
        """Close the open waits."""
        for live in self._live.values():
            if live.held:
                self._waits(live, self._backlog.why[live.held])
            if live.stay == OPEN and live.reason != OPEN:
                self._ledger.waited(live.row, live.reason, live.reason_since, OPEN)


def _alone(pod: Pod) -> bool:
    """Whether the pod is not in a gang."""
    return gang_of(pod) is None
