"""Carries out the scheduler's effects after a delay and with faults, and answers, or does not.

Guarantee: an effect that is requested often enough is carried out or fails with an answer. What was carried out may
stay unanswered or be answered as failed; then the objects show it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias, assert_never

from msgspec.structs import replace

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    ClaimsBound,
    ClaimsFailed,
    EvictDone,
    EvictFailed,
    PodRef,
    VolumesBound,
    VolumesFailed,
)
from situate.core.effects import (
    AskExtender,
    Bind,
    BindClaims,
    BindVolumes,
    Effect,
    Evict,
    Nominate,
    ReleaseClaim,
    Report,
    SetCondition,
    SetGroupCondition,
    UnreserveClaims,
)
from situate.core.model.pod import PodCondition
from situate.core.state.pods import DISRUPTION_TARGET
from situate.sim.devices.claim_writer import ClaimWriter
from situate.sim.extender import BROKEN, SimulatedExtenders
from situate.sim.faults import Faults
from situate.sim.storage import bind_volumes
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline

REQUEST_MS: Final = (1, 30)
SLOW_MS: Final = (200, 3_000)
ANSWER_MS: Final = (1, 30)
LATE_MS: Final = (300, 5_000)
AGAIN_MS: Final = ((1, 100), (800, 2_500), (1, 12_000))
"""The delay of a repeated answer: at once, when the pod is decided again, or any time."""
SURE_AFTER: Final = 2
"""The first so many requests of a bind may be carried out and answered as failed, but not the last: a scheduler that
gives up must know that the bind did not happen."""

TIMEOUT: Final = "Timeout: request did not complete within the allotted duration"
UNAVAILABLE: Final = "etcdserver: leader changed"
FORBIDDEN: Final = "admission webhook denied the request"


Answer: TypeAlias = (
    BindDone | BindFailed | EvictDone | EvictFailed | VolumesBound | VolumesFailed | ClaimsBound | ClaimsFailed
)


class FaultyPerformer:
    """For one scheduler. When it dies, its requests may still be carried out, without an answer."""

    def __init__(
        self,
        timeline: Timeline,
        rng: Random,
        store: ObjectStore,
        answer: Callable[[str, Change], None],
        extenders: SimulatedExtenders,
    ) -> None:
        self.faults = Faults()
        self._extenders = extenders
        self.binding = False
        """Whether the current write is a bind that the scheduler requested."""
        self.claims: ClaimWriter | None = None
        """None: the world has no devices."""
        self._timeline = timeline
        self._rng = rng
        self._store = store
        self._answer = answer
        self._generation = 0
        self._asked: dict[tuple[str, str], int] = {}
        """The number of requests for each bind, by the pod's uid and the node."""

    def restart(self) -> None:
        self._generation += 1
        self._asked.clear()
        self._extenders.restart()
        if self.claims is not None:
            self.claims.kill()

    def perform(self, effect: Effect) -> None:
        if isinstance(effect, AskExtender):
            self._extenders.ask(effect)
        elif isinstance(effect, BindClaims | UnreserveClaims | ReleaseClaim):
            if self.claims is not None:
                self.claims.perform(effect)
        elif not isinstance(effect, Report):
            slow = self._rng.random() < self.faults.server_is_slow
            delay = self._rng.randint(*(SLOW_MS if slow else REQUEST_MS))
            self._timeline.after(delay, self._carry_out, effect, self._generation)

    def _carry_out(self, effect: Effect, generation: int) -> None:
        if generation != self._generation and self._rng.random() < 0.5:
            return  # it died before it sent this
        match effect:
            case Bind():
                self._bind(effect, generation)
            case BindVolumes():
                self._bind_volumes(effect, generation)
            case Evict():
                self._evict(effect, generation)
            case Nominate(ref, node):
                self._note(ref, node)
            case SetCondition():
                self._set_condition(effect)
            case SetGroupCondition() | Report() | AskExtender() | BindClaims() | UnreserveClaims() | ReleaseClaim():
                pass  # nobody reads events; extenders and claims have their own performers
            case _:
                assert_never(effect)

    # -- binds ---------------------------------------------------------------------------------------------------

    def _bind(self, bind: Bind, generation: int) -> None:
        ref, attempt, faults, rng = bind.pod, bind.attempt, self.faults, self._rng
        asked = self._asked[ref.uid, bind.node] = self._asked.get((ref.uid, bind.node), 0) + 1
        if faults.bind_is_lost and rng.random() < faults.bind_is_lost:
            return
        if rng.random() < faults.bind_fails:
            self._say(BindFailed(ref, attempt, UNAVAILABLE), generation)
            return
        if self._extenders.fails_to_bind(bind):
            self._say(BindFailed(ref, attempt, BROKEN), generation)
            return
        pod = self._store.find(ref)
        there = pod is not None and pod.spec.node_name == bind.node
        if rng.random() < faults.bind_is_refused and not there:  # what is refused for good was not carried out
            self._say(BindFailed(ref, attempt, FORBIDDEN, final=True), generation)
            return
        self.binding = True
        problem = self._store.bind(ref, bind.node, bind.annotations)
        self.binding = False
        if problem:
            self._say(BindFailed(ref, attempt, problem, final=True), generation)
            return
        if asked <= SURE_AFTER and rng.random() < faults.bind_is_unsure:
            self._say(BindFailed(ref, attempt, TIMEOUT), generation)
        elif rng.random() >= faults.answer_is_lost:
            self._say(BindDone(ref, attempt), generation)

    def _bind_volumes(self, ask: BindVolumes, generation: int) -> None:
        silent = self._rng.random() < self.faults.volumes_are_silent
        if self._rng.random() < self.faults.volumes_fail:
            if not silent:
                self._say(VolumesFailed(ask.pod, ask.attempt, UNAVAILABLE), generation)
            return
        problem = bind_volumes(self._store, ask)
        if silent:
            return
        said = VolumesFailed(ask.pod, ask.attempt, problem) if problem else VolumesBound(ask.pod, ask.attempt)
        self._say(said, generation)

    def answer_claims(self, answer: ClaimsBound | ClaimsFailed) -> None:
        if self._rng.random() >= self.faults.claims_are_silent:
            self._say(answer, self._generation)

    # -- evictions -----------------------------------------------------------------------------------------------

    def _evict(self, evict: Evict, generation: int) -> None:
        if self._rng.random() < self.faults.evict_fails:
            self._say(EvictFailed(evict.victim, UNAVAILABLE), generation)
            return
        pod = self._store.find(evict.victim)
        if pod is not None:
            kept = tuple(one for one in pod.status.conditions if one.type != DISRUPTION_TARGET.type)
            status = replace(pod.status, conditions=(*kept, DISRUPTION_TARGET))
            self._store.mark_leaving(evict.victim, self._timeline.now, status)
        if self._rng.random() >= self.faults.answer_is_lost:
            self._say(EvictDone(evict.victim), generation)

    # -- notes on pods -------------------------------------------------------------------------------------------

    def _note(self, ref: PodRef, node: str) -> None:
        pod = self._store.find(ref)
        if pod is not None and not pod.spec.node_name:
            self._store.put_pod(replace(pod, status=replace(pod.status, nominated_node_name=node)))

    def _set_condition(self, said: SetCondition) -> None:
        pod = self._store.find(said.pod)
        if pod is None or pod.spec.node_name:
            return
        made = PodCondition(type=said.type, status=said.status, reason=said.reason)
        if made not in pod.status.conditions:
            kept = tuple(one for one in pod.status.conditions if one.type != said.type)
            self._store.put_pod(replace(pod, status=replace(pod.status, conditions=(*kept, made))))

    # -- answers -------------------------------------------------------------------------------------------------

    def _say(self, answer: Answer, generation: int) -> None:
        late = self._rng.random() < self.faults.answer_is_late
        delay = self._rng.randint(*(LATE_MS if late else ANSWER_MS))
        self._timeline.after(delay, self._deliver, answer, generation)
        if self._rng.random() < self.faults.answer_comes_twice:
            again = delay + self._rng.randint(*self._rng.choice(AGAIN_MS))
            self._timeline.after(again, self._deliver, answer, generation)

    def _deliver(self, answer: Answer, generation: int) -> None:
        if generation == self._generation:
            self._answer(describe_answer(answer), answer)


def describe_answer(answer: Change) -> str:
    """A short form for the trace."""
    match answer:
        case BindDone(pod, attempt) | VolumesBound(pod, attempt) | ClaimsBound(pod, attempt):
            return f"{type(answer).__name__} {pod.key} {pod.uid} #{attempt}"
        case (
            BindFailed(pod, attempt, problem)
            | VolumesFailed(pod, attempt, problem)
            | ClaimsFailed(pod, attempt, problem)
        ):
            return f"{type(answer).__name__} {pod.key} {pod.uid} #{attempt}: {problem}"
        case EvictDone(pod):
            return f"EvictDone {pod.key} {pod.uid}"
        case EvictFailed(pod, problem):
            return f"EvictFailed {pod.key} {pod.uid}: {problem}"
        case _:
            return type(answer).__name__
