"""Bugs of the kinds that schedulers have had, planted one at a time: the simulation must find each within a few worlds.

A checker that finds no planted bug finds no real one either. Each bug is in the scheduler alone; the checkers count and
decide for themselves.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from situate.core.changes import PodRef
from situate.core.contract import Wake
from situate.core.effects import Bind, Evict
from situate.core.engine import consultations, extenders, gang_attempt, gang_scheduling, in_flight, node_selection
from situate.core.engine import cycle as cycle_module
from situate.core.engine import engine as engine_module
from situate.core.engine import state as state_module
from situate.core.engine.actions import Fail, MarkUnschedulable, Reserve, Retry
from situate.core.engine.assumed_volumes import AssumedVolumes
from situate.core.engine.binding import BindingCycle
from situate.core.engine.cycle import Cycle
from situate.core.engine.engine import Engine
from situate.core.engine.extender_interest import ExtenderInterest
from situate.core.engine.framework import build_frameworks
from situate.core.engine.in_flight import Nominations
from situate.core.engine.node_selection import NodeSelection
from situate.core.engine.preemptor import Preemptor
from situate.core.engine.state import EngineState
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.inter_pod_affinity import InterPodAffinity
from situate.core.plugins.node_affinity import NodeAffinity
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.plugins.taint_toleration import TaintToleration
from situate.core.queue.queue import Backoff, SchedulingQueue
from situate.core.queue.queued_pod import QueueState
from situate.core.state.cluster import Cluster
from situate.sim.world import run

Plant = Callable[[pytest.MonkeyPatch], None]

WORLDS = 400
CHANGES = 600


# -- wake-ups that do not come ----------------------------------------------------------------------------------------


def deaf(kind: type, *wakes: Wake) -> Plant:
    """A plugin that does not wait for something that may help."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(kind, "wakes_on", kind.wakes_on - frozenset(wakes))  # type: ignore[attr-defined]

    return plant


def wakes_one_at_most(patch: pytest.MonkeyPatch) -> None:
    def wake_class(self: SchedulingQueue, refused: Any, kind: Any, now: int, cause: str) -> None:
        self.wake(next(iter(refused.pods[kind].values())), now, cause=cause)

    patch.setattr(SchedulingQueue, "wake_class", wake_class)


def own_changes_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_worth_own_change", lambda *_: False)


def gates_are_never_seen_to_go(patch: pytest.MonkeyPatch) -> None:
    real = Engine._waiting_seen

    def waiting_seen(self: Engine, pod: Any, ref: PodRef, now: int) -> None:
        entry = self.queue.get(ref.key)
        if entry is None or entry.state is not QueueState.GATED:
            real(self, pod, ref, now)

    patch.setattr(Engine, "_waiting_seen", waiting_seen)


# -- the queue --------------------------------------------------------------------------------------------------------


def backoff_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Backoff, "after", lambda *_: 1 << 40)


def rest_ends_and_nobody_is_put_back(patch: pytest.MonkeyPatch) -> None:
    def end_rests(self: Any, now: int) -> None:
        self._backing_off = [item for item in self._backing_off if item[0] > now]

    patch.setattr(SchedulingQueue, "_flush_backoff", end_rests)


def gated_pods_are_scheduled(patch: pytest.MonkeyPatch) -> None:
    real = Engine._waiting_seen

    def waiting_seen(self: Engine, pod: Any, ref: PodRef, now: int) -> None:
        real(self, msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=())), ref, now)

    patch.setattr(Engine, "_waiting_seen", waiting_seen)


def a_deleted_pod_stays_in_the_queue(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "_pod_gone", lambda self, ref: self._bound_gone(ref))


def pods_of_one_name_are_taken_for_one_pod(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EngineState, "known_uid", lambda *_: None)


def a_pod_that_is_being_deleted_is_placed(patch: pytest.MonkeyPatch) -> None:
    real = Engine._waiting_seen

    def waiting_seen(self: Engine, pod: Any, ref: PodRef, now: int) -> None:
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=None)
        real(self, msgspec.structs.replace(pod, metadata=metadata), ref, now)

    patch.setattr(Engine, "_waiting_seen", waiting_seen)


# -- reservations and binds -------------------------------------------------------------------------------------------


def a_failed_bind_keeps_its_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BindingCycle, "release", lambda self, one: self._state.reservations.pop(one.entry.key, None))


def a_failed_bind_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BindingCycle, "bind_failed", lambda *_, **__: None)


def old_answers_count(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BindingCycle, "_current", lambda self, ref, _: self._state.reservations.get(ref.key))


def a_bind_is_not_tried_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cycle, "due_timers", lambda self: self._state.timers._heap.clear())


def a_bind_is_tried_again_elsewhere(patch: pytest.MonkeyPatch) -> None:
    real = BindingCycle._bind

    def bind(self: Any, reservation: Any) -> None:
        real(self, reservation)
        if reservation.tries > 1:
            effects, cluster = self._state.effects, self._state.cluster
            last = effects.pop()
            effects.append(Bind(last.pod, next(iter(cluster.nodes.rows)), last.attempt))

    patch.setattr(BindingCycle, "_bind", bind)


def the_room_is_given_back_when_the_bind_is_done(patch: pytest.MonkeyPatch) -> None:
    def bind_done(self: Any, ref: PodRef, attempt: int) -> None:
        reservation = self._current(ref, attempt)
        if reservation is not None:
            self.release(reservation)

    patch.setattr(BindingCycle, "bind_done", bind_done)


def a_pod_seen_bound_during_its_bind_is_passed_over(patch: pytest.MonkeyPatch) -> None:
    real = Engine._bound_seen

    def bound_seen(self: Engine, pod: Any, ref: PodRef) -> None:
        if ref.key not in self.state.reservations:
            real(self, pod, ref)

    patch.setattr(Engine, "_bound_seen", bound_seen)


def a_pod_deleted_during_its_bind_keeps_its_room(patch: pytest.MonkeyPatch) -> None:
    def leave(self: Any, key: str) -> None:
        self._state.reservations.pop(key, None)
        self._state.queue.remove(key)

    patch.setattr(Cycle, "leave", leave)


def a_pod_is_reserved_twice(patch: pytest.MonkeyPatch) -> None:
    real = BindingCycle.reserve

    def reserve(self: Any, entry: Any, row: int, annotations: Any = None) -> str:
        problem = real(self, entry, row, annotations)
        if entry.attempts % 5 == 2:
            entry.attempts += 1
            bind = Bind(entry.ref, self._state.cluster.nodes.names[row], entry.attempts)
            self._state.effects.append(bind)
        return problem

    patch.setattr(BindingCycle, "reserve", reserve)


def attempts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    real = Cycle.decide

    def decide(self: Cycle, entry: Any) -> None:
        entry.attempts = 0
        real(self, entry)

    patch.setattr(Cycle, "decide", decide)


def reserved_pods_take_no_room(patch: pytest.MonkeyPatch) -> None:
    real = BindingCycle.reserve

    def reserve(self: Any, entry: Any, row: int, annotations: Any = None) -> str:
        problem = real(self, entry, row, annotations)
        self._state.cluster.remove_pod(entry.key)
        return problem

    patch.setattr(BindingCycle, "reserve", reserve)


# -- preemption -------------------------------------------------------------------------------------------------------


def evictions_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    real = Cycle.decide

    def decide(self: Cycle, entry: Any) -> None:
        self._state.evictions.clear()
        real(self, entry)

    patch.setattr(Cycle, "decide", decide)


def a_victim_is_evicted_at_every_step(patch: pytest.MonkeyPatch) -> None:
    real = Cycle.due_timers

    def due_timers(self: Any) -> None:
        for eviction in list(self._state.evictions.values()):
            self._state.effects.append(Evict(eviction.victim, eviction.node, eviction.preemptor, eviction.message))
        real(self)

    patch.setattr(Cycle, "due_timers", due_timers)


def promises_are_never_taken_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Preemptor, "withdraw", lambda *_, **__: None)


def promises_outlive_their_pods(patch: pytest.MonkeyPatch) -> None:
    real = Nominations.remove

    def remove(self: Nominations, key: str) -> Any:
        found = self.get(key)
        return real(self, key) if found is not None and found.version % 3 else None

    patch.setattr(Nominations, "remove", remove)


def promises_have_no_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(in_flight, "NOMINATION_LIMIT_MS", 1 << 40)


def promises_hold_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(NodeSelection, "_fits_with_nominated", lambda *_: True)


# -- the cluster ------------------------------------------------------------------------------------------------------


def without(name: str) -> Plant:
    """The scheduler decides without one of its filters."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        def fewer(config: Any, others: Any = None) -> Any:
            return {
                scheduler: replace(
                    deciding,
                    profile=replace(
                        deciding.profile, filters=tuple(one for one in deciding.profile.filters if one.name != name)
                    ),
                )
                for scheduler, deciding in build_frameworks(config, others).items()
            }

        patch.setattr(engine_module, "build_frameworks", fewer)

    return plant


def a_node_that_left_is_still_there(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cycle, "node_gone", lambda *_: None)


def a_node_that_changed_is_as_it_was(patch: pytest.MonkeyPatch) -> None:
    real = Engine._node_seen

    def node_seen(self: Engine, node: Any) -> None:
        if node.metadata.name not in self.cluster.nodes.rows:
            real(self, node)

    patch.setattr(Engine, "_node_seen", node_seen)


def answers_stand_for_ever(patch: pytest.MonkeyPatch) -> None:
    real = Engine.__init__

    def init(self: Engine, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        patch.setattr(self.cluster, "_touch", lambda _: None)

    patch.setattr(Engine, "__init__", init)


# -- gangs and volumes ------------------------------------------------------------------------------------------------


def gangs_are_bound_by_halves(patch: pytest.MonkeyPatch) -> None:
    real = gang_attempt.GangAttempt._reserve

    def reserve(self: Any, found: Any) -> Any:
        half = len(found.rows) // 2
        return real(self, replace(found, rows=(*found.rows[:half], *[NOWHERE] * (len(found.rows) - half))))

    patch.setattr(gang_attempt.GangAttempt, "_reserve", reserve)


def gangs_are_nothing_special(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(gang_scheduling.GangScheduling, "decide", lambda *_: None)
    patch.setattr(gang_scheduling.GangScheduling, "review", lambda *_: ())


def gangs_are_evicted_by_halves(patch: pytest.MonkeyPatch) -> None:
    for module in (cycle_module, gang_attempt):
        patch.setattr(module, "evicted_together", lambda victim, *_: (victim,))


def one_volume_is_given_to_two_claims(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_module, "AssumedVolumes", Forgetful)


class Forgetful(AssumedVolumes):
    def take(self, key: str, bindings: Any) -> None:
        pass


# -- extenders --------------------------------------------------------------------------------------------------------


def an_extender_is_asked_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consultations, "_narrow", lambda *_: None)


def an_extender_may_add_nodes(patch: pytest.MonkeyPatch) -> None:
    def narrow(one: Any, answer: Any) -> None:
        if answer.nodes is not None:
            one.nodes = answer.nodes

    patch.setattr(consultations, "_narrow", narrow)


def an_extender_s_silence_is_waited_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consultations.Consultations, "timed_out", lambda *_: None)


def an_extender_that_fails_is_passed_over(patch: pytest.MonkeyPatch) -> None:
    real = consultations.Consultations.answered
    patch.setattr(
        consultations.Consultations,
        "answered",
        lambda self, said: real(self, msgspec.structs.replace(said, problem="")),
    )


def what_an_extender_left_is_taken_unseen(patch: pytest.MonkeyPatch) -> None:
    def place(self: Any, one: Any) -> Any:
        rows = [self._row(node) for node in one.nodes if self._row(node) != NOWHERE]
        return [Reserve(one.entry, rows[0]) if rows else Retry(one.entry)]

    patch.setattr(extenders.ExtenderScheduling, "_place", place)


def an_extender_s_answer_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(extenders.ExtenderScheduling, "_outdated", lambda *_: ())


def nobody_is_spared_for_an_extender(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(consultations, "_narrow_evictions", lambda *_: None)


def what_happens_while_an_extender_is_asked_is_missed(patch: pytest.MonkeyPatch) -> None:
    real = Cycle._apply_one

    def apply(self: Any, action: Any) -> None:
        if isinstance(action, MarkUnschedulable):
            action = msgspec.structs.replace(action, asked_at=self._state.event_count)
        real(self, action)

    patch.setattr(Cycle, "_apply_one", apply)


def extenders_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ExtenderInterest, "has_say", lambda *_: False)


# -- configurations and restarts --------------------------------------------------------------------------------------


def the_same_nodes_are_drawn_at_every_try(patch: pytest.MonkeyPatch) -> None:
    real = node_selection._draw_key
    patch.setattr(node_selection, "_draw_key", lambda entry: real(replace(entry, attempts=1)))


def one_profile_decides_for_all(patch: pytest.MonkeyPatch) -> None:
    def first(config: Any, others: Any = None) -> Any:
        made = build_frameworks(config, others)
        return dict.fromkeys(made, next(iter(made.values())))

    patch.setattr(engine_module, "build_frameworks", first)


def promises_of_an_earlier_scheduler_are_overlooked(patch: pytest.MonkeyPatch) -> None:
    real = Preemptor.renominate
    patch.setattr(
        Preemptor, "renominate", lambda self, entry, node: real(self, entry, node) if entry.attempts else None
    )


def pods_that_came_before_their_node_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    real = Cluster.add_node

    def add_node(self: Cluster, node: Any) -> bool:
        if node.metadata.name not in self.nodes.rows and patched(self):
            self.orphans.pop(node.metadata.name, None)
        return real(self, node)

    def patched(cluster: Cluster) -> bool:
        return cluster in engines

    engines: list[Cluster] = []
    remember_clusters(patch, engines)
    patch.setattr(Cluster, "add_node", add_node)


def remember_clusters(patch: pytest.MonkeyPatch, found: list[Cluster]) -> None:
    """The clusters of schedulers, and not those that the checkers keep."""
    real = Engine.__init__

    def init(self: Engine, *arguments: Any, **options: Any) -> None:
        real(self, *arguments, **options)
        found.append(self.cluster)

    patch.setattr(Engine, "__init__", init)


def a_pod_bound_elsewhere_stays_where_it_was_reserved(patch: pytest.MonkeyPatch) -> None:
    real = Engine._bound_seen

    def bound_seen(self: Engine, pod: Any, ref: PodRef) -> None:
        kept = self.state.reservations.get(ref.key)
        if kept is not None and kept.node != pod.spec.node_name:
            spec = msgspec.structs.replace(pod.spec, node_name=kept.node)
            pod = msgspec.structs.replace(pod, spec=spec)
        real(self, pod, ref)

    patch.setattr(Engine, "_bound_seen", bound_seen)


def a_victim_is_followed_to_another_node(patch: pytest.MonkeyPatch) -> None:
    def evict_again(self: Any, uid: str) -> None:
        one = self._state.evictions.get(uid)
        if one is not None:
            self._state.effects.append(Evict(one.victim, one.node, one.preemptor, one.message))

    patch.setattr(Preemptor, "evict_again", evict_again)


def a_bind_without_an_answer_is_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BindingCycle, "time_out", lambda self: self._unanswered.clear() or ())


def a_failure_counts_for_the_next_try(patch: pytest.MonkeyPatch) -> None:
    real = BindingCycle._retry
    patch.setattr(BindingCycle, "_retry", lambda self, one, after_ms, anew: real(self, one, after_ms, anew=False))


def room_that_came_is_overlooked_when_an_extender_fails(patch: pytest.MonkeyPatch) -> None:
    def failed(self: Any, one: Any, problem: str) -> Any:
        if one.stage == "preempt":
            return [Fail(one.entry, self._fit_failure(one).diagnosis.message(problem), "Unschedulable")]
        return [Fail(one.entry, problem)]

    patch.setattr(extenders.ExtenderScheduling, "_failed", failed)


BUGS: dict[str, Plant] = {
    "a pod that leaves wakes nobody who waits for room": deaf(NodeResourcesFit, Wake.POD_DELETED),
    "a node that comes wakes nobody who waits for room": deaf(NodeResourcesFit, Wake.NODE_ADDED),
    "a node that grows wakes nobody": deaf(NodeResourcesFit, Wake.NODE_ALLOCATABLE),
    "a taint that goes wakes nobody": deaf(TaintToleration, Wake.NODE_TAINT),
    "an uncordoned node wakes nobody": deaf(NodeUnschedulable, Wake.NODE_TAINT),
    "a label that comes wakes nobody": deaf(NodeAffinity, Wake.NODE_LABEL),
    "a pod that comes wakes nobody who wants to be near": deaf(InterPodAffinity, Wake.POD_ADDED),
    "only one of several pods of a class is woken": wakes_one_at_most,
    "a waiting pod's own change does not wake it": own_changes_wake_nobody,
    "gates that are removed are not noticed": gates_are_never_seen_to_go,
    "a backoff never ends": backoff_never_ends,
    "pods are lost when their rest ends": rest_ends_and_nobody_is_put_back,
    "gated pods are scheduled": gated_pods_are_scheduled,
    "a deleted pod stays in the queue": a_deleted_pod_stays_in_the_queue,
    "two pods of one name are taken for one": pods_of_one_name_are_taken_for_one_pod,
    "a pod that is being deleted is placed": a_pod_that_is_being_deleted_is_placed,
    "a failed bind keeps its room": a_failed_bind_keeps_its_room,
    "a failed bind is not heard of": a_failed_bind_is_not_heard,
    "an old answer undoes a newer reservation": old_answers_count,
    "nothing is ever tried again": a_bind_is_not_tried_again,
    "a bind is tried again on another node": a_bind_is_tried_again_elsewhere,
    "room is given back when the bind is done": the_room_is_given_back_when_the_bind_is_done,
    "a pod seen bound during its bind is passed over": a_pod_seen_bound_during_its_bind_is_passed_over,
    "a pod deleted during its bind keeps its room": a_pod_deleted_during_its_bind_keeps_its_room,
    "a pod is bound twice": a_pod_is_reserved_twice,
    "attempts are not counted": attempts_are_not_counted,
    "reserved pods take no room": reserved_pods_take_no_room,
    "evictions are forgotten and repeated": evictions_are_forgotten,
    "a victim is evicted at every step": a_victim_is_evicted_at_every_step,
    "promises are never taken back": promises_are_never_taken_back,
    "promises outlive their pods": promises_outlive_their_pods,
    "promises have no end": promises_have_no_end,
    "promises hold nothing": promises_hold_nothing,
    "capacity is not checked": without("NodeResourcesFit"),
    "taints are ignored": without("TaintToleration"),
    "cordons are ignored": without("NodeUnschedulable"),
    "node affinity is ignored": without("NodeAffinity"),
    "pod affinity is ignored": without("InterPodAffinity"),
    "spreading is ignored": without("PodTopologySpread"),
    "host ports are ignored": without("NodePorts"),
    "a node that left is still there": a_node_that_left_is_still_there,
    "a node that changed is as it was": a_node_that_changed_is_as_it_was,
    "remembered answers are never renewed": answers_stand_for_ever,
    "gangs are bound by halves": gangs_are_bound_by_halves,
    "pods of gangs are placed one by one": gangs_are_nothing_special,
    "gangs are evicted by halves": gangs_are_evicted_by_halves,
    "one volume is given to two claims": one_volume_is_given_to_two_claims,
    "an extender's refusal counts for nothing": an_extender_is_asked_for_nothing,
    "an extender may add nodes": an_extender_may_add_nodes,
    "an extender's silence is waited out": an_extender_s_silence_is_waited_out,
    "an extender that fails is passed over": an_extender_that_fails_is_passed_over,
    "what an extender left is taken unseen": what_an_extender_left_is_taken_unseen,
    "a pod that changed while an extender was asked is forgotten": an_extender_s_answer_is_not_heard,
    "pods are evicted whom an extender spared": nobody_is_spared_for_an_extender,
    "what happens while an extender is asked is missed": what_happens_while_an_extender_is_asked_is_missed,
    "extenders are not asked": extenders_are_not_asked,
    "the same nodes are drawn at every try": the_same_nodes_are_drawn_at_every_try,
    "one profile decides for all": one_profile_decides_for_all,
    "promises of an earlier scheduler are overlooked": promises_of_an_earlier_scheduler_are_overlooked,
    "pods that came before their node are not counted": pods_that_came_before_their_node_are_not_counted,
    "a pod bound elsewhere stays where it was reserved": a_pod_bound_elsewhere_stays_where_it_was_reserved,
    "a victim is followed to another node": a_victim_is_followed_to_another_node,
    "a bind without an answer is waited for": a_bind_without_an_answer_is_waited_for,
    "a failure that is told again counts for the next try": a_failure_counts_for_the_next_try,
    "room that came is overlooked when an extender fails": room_that_came_is_overlooked_when_an_extender_fails,
}


FOUND_IN: dict[str, int] = {
    "a node that comes wakes nobody who waits for room": 17,
    "a node that grows wakes nobody": 8,
    "a taint that goes wakes nobody": 8,
    "an uncordoned node wakes nobody": 2,
    "a label that comes wakes nobody": 2,
    "only one of several pods of a class is woken": 2,
    "a waiting pod's own change does not wake it": 8,
    "gates that are removed are not noticed": 3,
    "gated pods are scheduled": 3,
    "two pods of one name are taken for one": 17,
    "a pod that is being deleted is placed": 2,
    "an old answer undoes a newer reservation": 274,
    "a pod deleted during its bind keeps its room": 6,
    "evictions are forgotten and repeated": 8,
    "a victim is evicted at every step": 8,
    "promises are never taken back": 40,
    "promises outlive their pods": 8,
    "promises have no end": 8,
    "promises hold nothing": 14,
    "cordons are ignored": 2,
    "pod affinity is ignored": 7,
    "spreading is ignored": 3,
    "host ports are ignored": 3,
    "a node that left is still there": 3,
    "remembered answers are never renewed": 2,
    "gangs are bound by halves": 4,
    "gangs are evicted by halves": 149,
    "one volume is given to two claims": 14,
    "an extender may add nodes": 11,
    "pods are evicted whom an extender spared": 44,
    "what happens while an extender is asked is missed": 17,
    "the same nodes are drawn at every try": 21,
    "one profile decides for all": 5,
    "promises of an earlier scheduler are overlooked": 32,
    "a pod bound elsewhere stays where it was reserved": 3,
    "a victim is followed to another node": 14,
    "a bind without an answer is waited for": 16,
    "a pod that changed while an extender was asked is forgotten": 12,
    "room that came is overlooked when an extender fails": 2731,
}
"""The world in which each bug was found last: where it is looked for first, to save time. Any other will do as well.
`python tests/sim/test_planted_bugs.py` finds them anew."""


def find(name: str) -> int | None:
    """The first world in which a bug is found."""
    seeds: list[int] = [FOUND_IN.get(name, 1), *range(1, WORLDS + 1)]
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            BUGS[name](patch)
            if run(seed, changes=CHANGES, devices=False).violations:
                return seed
    return None


@pytest.mark.parametrize("name", BUGS)
def test_the_simulation_finds(name: str) -> None:
    assert find(name) is not None, f"not found in {WORLDS} worlds"


def test_without_a_bug_nothing_is_found_in_those_worlds() -> None:
    seeds = dict.fromkeys(FOUND_IN.values())
    assert [line for seed in seeds for line in run(seed, changes=CHANGES, devices=False).violations] == []


def test_at_least_twenty_bugs_are_planted() -> None:
    assert len(BUGS) >= 20


if __name__ == "__main__":
    for bug in sys.argv[1:] or BUGS:
        FOUND_IN.pop(bug, None)
        print(f"    {json.dumps(bug)}: {find(bug)},", flush=True)
