"""Logins end: by time, by logging out, and when there are too many."""

import pytest

from situate.web import logins
from situate.web.limits import LOGIN_TRIES, LOGIN_TRIES_S
from situate.web.logins import Logins, Person


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_login_ends_after_its_time(clock: Clock) -> None:
    known = Logins(clock, life_s=60)
    cookie, login = known.begin(Person("alice"), "alice")
    assert known.find(cookie) is login
    clock.now = 60
    assert known.find(cookie) is None
    assert not known.any_left()


def test_logging_out_ends_the_open_streams_too(clock: Clock) -> None:
    known = Logins(clock, life_s=60)
    cookie, login = known.begin(Person(), "admin")
    clock.now = 1
    known.end(cookie)
    assert known.find(cookie) is None
    assert known.left_s(login) < 0


def test_a_cookie_that_was_never_given_is_nobody(clock: Clock) -> None:
    known = Logins(clock)
    known.begin(Person(), "admin")
    assert known.find("") is None
    assert known.find("x" * 500) is None
    assert known.find("guess") is None


def test_too_many_logins_end_the_oldest(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "MAX_LOGINS", 2)
    known = Logins(clock)
    cookies = [known.begin(Person(), "admin")[0] for _ in range(3)]
    assert [known.find(cookie) is None for cookie in cookies] == [True, False, False]


def test_failed_attempts_are_limited_for_a_while(clock: Clock) -> None:
    known = Logins(clock)
    for _ in range(LOGIN_TRIES):
        assert known.may_try()
        known.failed()
    assert not known.may_try()
    clock.now = LOGIN_TRIES_S + 1
    assert known.may_try()


def test_a_person_does_not_show_the_token() -> None:
    assert "secret" not in repr(Person(token="secret"))
