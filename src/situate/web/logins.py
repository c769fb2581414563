"""Who is logged in: the cookie of each browser, the credentials behind it, and when they end.

Only hashes of cookies are kept. Nothing is written to disk: a new process knows nobody.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from situate.web.limits import LOGIN_S, LOGIN_TRIES, LOGIN_TRIES_S, MAX_LOGINS

COOKIE_BYTES: Final = 32
MAX_COOKIE_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class Person:
    """Whose rights a login has: the kubeconfig's own, those of a user it impersonates, or those of a token."""

    user: str = ""
    groups: tuple[str, ...] = ()
    token: str = field(default="", repr=False)
    namespace: str = ""


@dataclass(slots=True)
class Login:
    person: Person
    expires: float
    """By the clock of `Logins`."""
    name: str = ""
    """What the API server calls the user, for people."""
    streams: int = 0
    """How many are open."""
    reports: dict[str, bytes] = field(default_factory=dict)
    """Of simulations, by a random name, the oldest first."""


class Logins:
    def __init__(self, clock: Callable[[], float] = time.monotonic, life_s: float = LOGIN_S) -> None:
        self._clock = clock
        self._life_s = life_s
        self._known: dict[bytes, Login] = {}
        self._failures: deque[float] = deque(maxlen=LOGIN_TRIES)

    def __len__(self) -> int:
        return len(self._known)

    def begin(self, person: Person, name: str) -> tuple[str, Login]:
        """The cookie of a new login."""
        self._drop_expired()
        while len(self._known) >= MAX_LOGINS:
            self._known.pop(next(iter(self._known))).expires = 0.0
        cookie = secrets.token_urlsafe(COOKIE_BYTES)
        login = self._known[_hash(cookie)] = Login(person, self._clock() + self._life_s, name)
        return cookie, login

    def find(self, cookie: str) -> Login | None:
        if not cookie or len(cookie) > MAX_COOKIE_CHARS:
            return None
        found = self._known.get(_hash(cookie))
        return found if found is not None and found.expires > self._clock() else None

    def end(self, cookie: str) -> None:
        """Also for the streams that the login has open."""
        found = self._known.pop(_hash(cookie), None)
        if found is not None:
            found.expires = 0.0

    def left_s(self, login: Login) -> float:
        return login.expires - self._clock()

    def may_try(self) -> bool:
        """Whether one more attempt is allowed, after those that failed."""
        full = len(self._failures) == LOGIN_TRIES
        return not full or self._clock() - self._failures[0] > LOGIN_TRIES_S

    def failed(self) -> None:
        self._failures.append(self._clock())

    def any_left(self) -> bool:
        self._drop_expired()
        return bool(self._known)

    def _drop_expired(self) -> None:
        now = self._clock()
        for key in [key for key, login in self._known.items() if login.expires <= now]:
            del self._known[key]


def _hash(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode()).digest()
