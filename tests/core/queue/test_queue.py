"""The scheduling queue: who comes next, how long a pod rests, and where it may leave from."""

from itertools import count

import pytest

from builders import pod
from situate.core.changes import PodRef
from situate.core.queue.queue import (
    FLUSH_EVERY_MS,
    UNSCHEDULABLE_LIMIT_MS,
    Backoff,
    SchedulingQueue,
    in_order,
)
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.cluster import Cluster

CLUSTER = Cluster()
ORDER = count()


def waiting(name: str = "p", *, priority: int = 0, since: int = 0, **fields: object) -> QueuedPod:
    made = pod(name, priority=priority)
    ref = PodRef("default", name, f"uid-{name}")
    return QueuedPod(ref, made, CLUSTER.class_of(made), since, next(ORDER), **fields)  # type: ignore[arg-type]


def queue_of(*entries: QueuedPod, backoff: Backoff | None = None) -> SchedulingQueue:
    queue = SchedulingQueue() if backoff is None else SchedulingQueue(backoff)
    for entry in entries:
        queue.add(entry)
    return queue


def names(queue: SchedulingQueue, now: int = 0) -> list[str]:
    """Everything that can be popped now, in order."""
    found = []
    while (entry := queue.pop(now)) is not None:
        found.append(entry.ref.name)
    return found


def refuse(queue: SchedulingQueue, entry: QueuedPod, now: int) -> None:
    """As the engine does when nothing fits."""
    entry.refusals += 1
    entry.errors = 0
    queue.add_unschedulable(entry, now)


def fail(queue: SchedulingQueue, entry: QueuedPod, now: int) -> None:
    entry.errors += 1
    queue.back_off(entry, now)


# -- order -----------------------------------------------------------------------------------------------------------


def test_higher_priority_goes_first() -> None:
    assert names(queue_of(waiting("low"), waiting("high", priority=9), waiting("mid", priority=5))) == [
        "high",
        "mid",
        "low",
    ]


def test_among_equals_the_longest_waiting_goes_first() -> None:
    assert names(queue_of(waiting("late", since=20), waiting("early", since=10))) == ["early", "late"]


def test_what_came_at_the_same_moment_goes_in_the_order_of_arrival() -> None:
    assert names(queue_of(*(waiting(name) for name in "cab"))) == ["c", "a", "b"]


def test_a_pod_that_is_popped_is_not_popped_again() -> None:
    queue = queue_of(waiting("only"))
    first = queue.pop(0)
    assert first is not None
    assert first.state is QueueState.IN_FLIGHT
    assert queue.pop(0) is None


def test_a_ready_pod_whose_priority_rises_moves_up() -> None:
    slow, fast = waiting("slow"), waiting("fast", priority=1)
    queue = queue_of(slow, fast)
    slow.kind = CLUSTER.class_of(pod("slow", priority=2))
    queue.changed(slow, 0, worth=True)
    assert names(queue) == ["slow", "fast"]


def test_listing_in_order_is_the_order_of_popping() -> None:
    entries = [waiting("a"), waiting("b", priority=1), waiting("c", since=-1), waiting("d", priority=1)]
    listed = [entry.ref.name for entry in in_order(entries)]
    assert listed == names(queue_of(*entries)) == ["b", "d", "c", "a"]


# -- backoff ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "times,wait", [(0, 0), (1, 1_000), (2, 2_000), (3, 4_000), (4, 8_000), (5, 10_000), (6, 10_000), (10_000, 10_000)]
)
def test_backoff_is_a_second_that_doubles_up_to_ten(times: int, wait: int) -> None:
    assert Backoff().after(times) == wait


def test_a_maximum_of_zero_turns_backoff_off() -> None:
    entry = waiting()
    queue = queue_of(entry, backoff=Backoff(1_000, 0))
    queue.pop(0)
    fail(queue, entry, 1)
    assert entry.state is QueueState.ACTIVE
    assert queue.pop(1) is entry


def test_a_failure_rests_for_as_long_as_it_failed_in_a_row() -> None:
    entry = waiting()
    queue = queue_of(entry)
    now = 0
    rests = []
    for _ in range(6):
        assert queue.pop(now) is entry
        fail(queue, entry, now)
        assert queue.pop(entry.retry_at_ms - 1) is None
        rests.append(entry.retry_at_ms - now)
        now = entry.retry_at_ms
    assert rests == [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]


def test_rests_end_at_whole_seconds_so_that_pods_of_one_second_come_back_by_priority() -> None:
    low, high = waiting("low"), waiting("high", priority=1)
    queue = queue_of(low, high)
    assert names(queue) == ["high", "low"]
    fail(queue, low, 100)
    fail(queue, high, 900)
    assert (low.retry_at_ms, high.retry_at_ms) == (2_000, 2_000)
    assert names(queue, 1_999) == []
    assert names(queue, 2_000) == ["high", "low"]


def test_failures_of_one_second_and_one_priority_come_back_in_the_order_in_which_they_failed() -> None:
    first, second = waiting("first"), waiting("second")
    queue = queue_of(first, second)
    names(queue)
    fail(queue, second, 100)
    fail(queue, first, 900)
    assert names(queue, 2_000) == ["second", "first"]


def test_a_refused_pod_that_is_woken_rests_for_what_is_left_of_its_backoff() -> None:
    entry, busy = waiting(), waiting("busy")
    queue = queue_of(entry, busy)
    queue.pop(0)
    refuse(queue, entry, 0)
    queue.wake(entry, 300)
    assert (entry.state, entry.retry_at_ms) == (QueueState.BACKOFF, 1_000)


def test_a_refused_pod_that_is_woken_after_its_backoff_is_ready_at_once() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    queue.wake(entry, 1_000)
    assert entry.state is QueueState.ACTIVE


def test_a_pod_that_is_woken_at_once_does_not_rest() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    queue.wake(entry, 1, at_once=True)
    assert entry.state is QueueState.ACTIVE


# -- popping early ---------------------------------------------------------------------------------------------------


def test_when_nothing_is_ready_a_resting_pod_comes_early() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    queue.wake(entry, 1)
    assert entry.state is QueueState.BACKOFF
    assert queue.pop(1) is entry


def test_while_something_is_ready_nothing_comes_early() -> None:
    rested, ready = waiting("rested", priority=9), waiting("ready")
    queue = queue_of(rested)
    queue.pop(0)
    refuse(queue, rested, 0)
    queue.wake(rested, 1)
    queue.add(ready)
    assert names(queue, 1) == ["ready", "rested"]


def test_who_comes_early_is_who_would_be_next_by_window_then_priority_then_age() -> None:
    entries = {name: waiting(name, priority=priority) for name, priority in (("a", 0), ("b", 0), ("c", 5), ("d", 9))}
    queue = queue_of(*entries.values())
    names(queue)
    for name, now in (("b", 100), ("a", 200), ("c", 300), ("d", 1_500)):
        refuse(queue, entries[name], now)
    for entry in entries.values():
        queue.wake(entry, 1_600)
    assert [entries[name].retry_at_ms for name in "abcd"] == [2_000, 2_000, 2_000, 3_000]
    assert names(queue, 1_600) == ["c", "b", "a", "d"]


def test_a_pod_that_failed_does_not_come_early() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    fail(queue, entry, 0)
    assert [queue.pop(now) for now in (0, 500, 999)] == [None, None, None]
    assert queue.pop(1_000) is entry


def test_a_pod_that_failed_does_not_keep_others_from_coming_early() -> None:
    failed, refused = waiting("failed", priority=9), waiting("refused")
    queue = queue_of(failed, refused)
    names(queue)
    fail(queue, failed, 0)
    refuse(queue, refused, 0)
    queue.wake(refused, 1)
    assert names(queue, 1) == ["refused"]
    assert names(queue, 1_000) == ["failed"]


# -- parked and gated ------------------------------------------------------------------------------------------------


def test_a_parked_pod_is_not_popped_however_long_its_backoff_is_over() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    assert queue.pop(60_000) is None
    assert queue.unschedulable() == [entry]


def test_a_gated_pod_is_not_popped_until_its_gates_are_gone() -> None:
    entry = waiting(state=QueueState.GATED)
    queue = queue_of(entry)
    assert queue.pop(0) is None
    queue.wake(entry, 5, at_once=True)
    assert queue.pop(5) is entry


def test_a_parked_pod_that_gets_gates_is_gated() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    queue.gate(entry)
    assert (entry.state, queue.unschedulable(), queue.has_unschedulable) == (QueueState.GATED, [], False)
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS * 2) == 0


def test_a_parked_pod_that_changes_in_a_way_that_cannot_help_stays_and_is_found_as_what_it_is_now() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    entry.kind = CLUSTER.class_of(pod("p", labels={"now": "another"}))
    queue.changed(entry, 1, worth=False)
    assert entry.state is QueueState.UNSCHEDULABLE
    (refused,) = queue.rejected_pods()
    assert list(refused.pods) == [entry.kind]


def test_waking_a_class_wakes_its_pods_on_that_shelf_and_nobody_else() -> None:
    same, too, other = waiting("same"), waiting("too"), waiting("other", priority=3)
    queue = queue_of(same, too, other)
    names(queue)
    for entry in (same, too, other):
        entry.unschedulable_plugins = ("NodePorts",)
        refuse(queue, entry, 0)
    (refused,) = queue.rejected_pods()
    queue.wake_class(refused, same.kind, 5_000)
    assert [entry.state for entry in (same, too, other)] == [
        QueueState.ACTIVE,
        QueueState.ACTIVE,
        QueueState.UNSCHEDULABLE,
    ]


# -- leaving ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(QueueState), ids=lambda state: f"while it is {state.value}")
def test_a_pod_may_leave_at_any_moment_and_never_comes_back(state: QueueState) -> None:
    entry = waiting(state=QueueState.GATED if state is QueueState.GATED else QueueState.ACTIVE)
    queue = queue_of(entry)
    if state not in (QueueState.ACTIVE, QueueState.GATED):
        assert queue.pop(0) is entry
    if state is QueueState.UNSCHEDULABLE:
        refuse(queue, entry, 0)
    if state is QueueState.BACKOFF:
        fail(queue, entry, 0)
    if state is QueueState.RESERVED:
        queue.take(entry, QueueState.RESERVED)
    assert entry.state is state
    assert queue.remove(entry.key) is entry
    assert (len(queue), queue.get(entry.key), queue.unschedulable()) == (0, None, [])
    assert queue.pop(60_000) is None
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS * 2) == 0
    assert queue.next_due_ms(60_000) is None


def test_removing_who_is_not_there_is_nothing() -> None:
    assert queue_of().remove("default/nobody") is None


def test_another_pod_of_the_same_name_is_not_taken_for_the_one_that_left() -> None:
    old, young = waiting("same", priority=9), waiting("same")
    queue = queue_of(old)
    queue.remove(old.key)
    queue.add(young)
    assert queue.pop(0) is young
    assert queue.pop(0) is None


# -- the flush -------------------------------------------------------------------------------------------------------


def test_the_flush_puts_back_what_was_parked_for_five_minutes_and_counts_it() -> None:
    old, new = waiting("old"), waiting("new")
    queue = queue_of(old, new)
    names(queue)
    refuse(queue, old, 0)
    refuse(queue, new, FLUSH_EVERY_MS)
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS - 1) == 0
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS + FLUSH_EVERY_MS - 1) == 1
    assert (old.state, new.state, queue.flushed) == (QueueState.ACTIVE, QueueState.UNSCHEDULABLE, 1)


def test_how_long_a_pod_is_parked_before_the_flush_can_be_said() -> None:
    entry = waiting()
    queue = SchedulingQueue(unschedulable_limit_ms=60_000)
    queue.add(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    assert queue.flush(60_000 - 1) == 0
    assert queue.flush(60_000 - 1 + FLUSH_EVERY_MS) == 1


def test_the_flush_looks_every_thirty_seconds_only() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 0)
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS - 10) == 0
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS + 10) == 0
    assert queue.flush(UNSCHEDULABLE_LIMIT_MS - 10 + FLUSH_EVERY_MS) == 1


def test_without_parked_pods_the_flush_has_nothing_to_do() -> None:
    queue = queue_of(waiting())
    assert queue.flush(10 * UNSCHEDULABLE_LIMIT_MS) == 0
    assert queue.flushed == 0


# -- looking ---------------------------------------------------------------------------------------------------------


def test_there_is_something_to_do_now_while_a_pod_is_ready() -> None:
    assert queue_of(waiting()).next_due_ms(7) == 7


def test_the_next_thing_to_do_is_the_end_of_the_first_rest() -> None:
    first, second = waiting("first"), waiting("second")
    queue = queue_of(first, second)
    names(queue)
    fail(queue, first, 5_000)
    fail(queue, second, 0)
    assert queue.next_due_ms(0) == 1_000


def test_with_parked_pods_the_next_thing_to_do_is_to_look_for_the_flush() -> None:
    entry = waiting()
    queue = queue_of(entry)
    queue.pop(0)
    refuse(queue, entry, 500)
    assert queue.next_due_ms(500) == 500 + FLUSH_EVERY_MS


def test_an_empty_queue_has_nothing_to_do() -> None:
    assert queue_of().next_due_ms(0) is None


def test_counts_are_by_place() -> None:
    ready, gated, parked = waiting("ready"), waiting("gated", state=QueueState.GATED), waiting("parked", priority=9)
    queue = queue_of(ready, gated, parked)
    assert queue.pop(0) is parked
    refuse(queue, parked, 0)
    found = {state: number for state, number in queue.counts().items() if number}
    assert found == {QueueState.ACTIVE: 1, QueueState.GATED: 1, QueueState.UNSCHEDULABLE: 1}
