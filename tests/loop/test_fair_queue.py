"""Flows take turns."""

from situate.loop.fair_queue import FairQueue


def test_a_flow_with_many_items_delays_another_by_one() -> None:
    queue: FairQueue[int] = FairQueue()
    for number in range(5):
        queue.push("greedy", number)
    queue.push("alice", 10)
    queue.push("alice", 11)
    order = [queue.pop() for _ in range(7)]
    assert order == [
        ("greedy", 0),
        ("alice", 10),
        ("greedy", 1),
        ("alice", 11),
        ("greedy", 2),
        ("greedy", 3),
        ("greedy", 4),
    ]
    assert queue.pop() is None
    assert not queue


def test_a_flow_that_may_not_run_is_passed_over_and_keeps_its_items() -> None:
    queue: FairQueue[int] = FairQueue()
    queue.push("greedy", 1)
    queue.push("alice", 2)
    assert queue.pop(lambda flow: flow == "alice") == ("alice", 2)
    assert queue.pop(lambda flow: flow == "alice") is None
    assert queue
    assert queue.pop() == ("greedy", 1)
