"""A lease ends when nobody has kept it alive for its time, and not before."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from situate.store.entries import LeaseId
from situate.store.lease_expiry import LeaseExpiry

ONE, OTHER = LeaseId(1), LeaseId(2)


class Timer:
    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Clock:
    """The part of an event loop that expiry uses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, at: float, call: Callable[..., None], *arguments: Any) -> Timer:
        self.timers.append(Timer(at, lambda: call(*arguments)))
        return self.timers[-1]

    def go_to(self, now: float) -> None:
        self.now = now
        for timer in [timer for timer in self.timers if timer.at <= now]:
            self.timers.remove(timer)
            if timer.call is not None:
                timer.call()

    @property
    def running(self) -> list[float]:
        return [timer.at for timer in self.timers if timer.call is not None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: made)
    return made


def test_a_lease_that_nobody_keeps_ends_once_at_its_time(clock: Clock) -> None:
    ended: list[LeaseId] = []
    expiry = LeaseExpiry(ended.append)
    expiry.add(ONE, 10)
    expiry.add(OTHER, 20)
    clock.go_to(109)
    assert ended == []
    clock.go_to(110)
    assert ended == [ONE]
    assert not expiry.keep_alive(ONE)
    assert expiry.keep_alive(OTHER)
    clock.go_to(200)
    assert ended == [ONE, OTHER]


def test_each_keep_alive_gives_it_its_whole_time_again(clock: Clock) -> None:
    ended: list[LeaseId] = []
    expiry = LeaseExpiry(ended.append)
    expiry.add(ONE, 10)
    for now in (105, 110, 119):
        clock.go_to(now)
        assert expiry.keep_alive(ONE)
    clock.go_to(128)
    assert ended == []
    clock.go_to(129)
    assert ended == [ONE]
    assert clock.running == []


def test_a_lease_that_was_dropped_never_ends(clock: Clock) -> None:
    ended: list[LeaseId] = []
    expiry = LeaseExpiry(ended.append)
    expiry.add(ONE, 10)
    expiry.drop(ONE)
    expiry.drop(ONE)
    assert not expiry.keep_alive(ONE)
    assert clock.running == []
    clock.go_to(200)
    assert ended == []


def test_a_timer_that_was_set_again_is_cancelled_with_its_lease(clock: Clock) -> None:
    expiry = LeaseExpiry(lambda _lease: None)
    expiry.add(ONE, 10)
    clock.go_to(105)
    expiry.keep_alive(ONE)
    clock.go_to(110)
    assert clock.running == [115]
    expiry.drop(ONE)
    assert clock.running == []


def test_closing_stops_all_timers(clock: Clock) -> None:
    ended: list[LeaseId] = []
    expiry = LeaseExpiry(ended.append)
    expiry.add(ONE, 10)
    expiry.add(OTHER, 10)
    expiry.close()
    assert clock.running == []
    clock.go_to(200)
    assert ended == []
