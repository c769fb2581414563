"""The checker of histories finds every fault that it is there for."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from server.faults.history import Event, Read, Watched, Write, problems

EVENTS = [
    Event("ADDED", 2, "a", "1"),
    Event("ADDED", 3, "b", "2"),
    Event("MODIFIED", 5, "a", "3"),
    Event("DELETED", 6, "b", "2"),
    Event("ADDED", 7, "b", "4"),
]
WRITES = [
    Write(0, "create", "a", "1", 0, 1.0, 1.1, 2),
    Write(1, "create", "b", "2", 0, 1.05, 1.2, 3),
    Write(0, "update", "a", "3", 2, 2.0, 2.1, 5),
    Write(1, "delete", "b", "2", 3, 3.0, 3.1),
    Write(0, "create", "b", "4", 0, 4.0, 4.1, 7),
    Write(1, "create", "b", "5", 0, 4.0, 4.2, outcome="refused"),
    Write(0, "update", "b", "6", 7, 5.0, 5.1, outcome="unknown"),
]
READS = [Read(4, {"a": (2, "1"), "b": (3, "2")}), Read(6, {"a": (5, "3")}), Read(9, {"a": (5, "3"), "b": (7, "4")})]


class History:
    def __init__(self) -> None:
        self.watches = [
            Watched(lambda key: True, list(EVENTS)),
            Watched(lambda key: True, list(EVENTS)),
            Watched(lambda key: key == "b", [event for event in EVENTS if event.key == "b"]),
        ]
        self.writes = list(WRITES)
        self.reads = list(READS)

    def problems(self) -> list[str]:
        return problems(self.watches, self.writes, self.reads)


def test_a_history_that_is_right_has_no_problems() -> None:
    assert History().problems() == []


def lost(history: History) -> None:
    for watch in history.watches:
        watch.events = [event for event in watch.events if event.revision != 7]
    history.reads.pop()


def lost_delete(history: History) -> None:
    for watch in history.watches:
        watch.events = [event for event in watch.events if event.revision < 6]
    history.reads = history.reads[:1]
    history.writes = history.writes[:4]


def gap(history: History) -> None:
    del history.watches[1].events[2]


def gap_of_a_part(history: History) -> None:
    del history.watches[2].events[1]


def repeat(history: History) -> None:
    history.watches[1].events.insert(3, EVENTS[2])


def swap(history: History) -> None:
    events = history.watches[1].events
    events[0], events[1] = events[1], events[0]


def shown_and_taken_back(history: History) -> None:
    history.watches[1].events[3] = Event("MODIFIED", 6, "a", "9")


def revision_given_twice(history: History) -> None:
    history.writes.append(Write(1, "create", "c", "8", 0, 6.0, 6.1, 7))


def happened_twice(history: History) -> None:
    for watch in history.watches[:2]:
        watch.events.append(Event("MODIFIED", 8, "a", "3"))
    history.reads.pop()


def other_revision(history: History) -> None:
    history.writes[2] = replace(WRITES[2], revision=4)


def refused_and_done(history: History) -> None:
    history.writes[2] = replace(WRITES[2], outcome="refused")


def compared_with_nothing(history: History) -> None:
    history.writes[2] = replace(WRITES[2], expected=1)


def answered_before_it_was_sent(history: History) -> None:
    history.writes[0] = replace(WRITES[0], sent=9.0, answered=9.1)


def stale_list(history: History) -> None:
    history.reads[1] = Read(6, {"a": (2, "1")})


def expired(history: History) -> None:
    history.watches[0].expired = 1


@pytest.mark.parametrize(
    "spoil",
    [
        lost, lost_delete, gap, gap_of_a_part, repeat, swap, shown_and_taken_back, revision_given_twice, happened_twice,
        other_revision, refused_and_done, compared_with_nothing, answered_before_it_was_sent, stale_list, expired,
    ],
    ids=lambda spoil: spoil.__name__.replace("_", " "),
)  # fmt: skip
def test_each_fault_is_found(spoil: Callable[[History], None]) -> None:
    history = History()
    spoil(history)
    assert history.problems()


def test_a_list_that_shows_what_never_was_is_found() -> None:
    history = History()
    history.reads[2] = Read(9, READS[2].found | {"c": (8, "6")})
    assert history.problems()
