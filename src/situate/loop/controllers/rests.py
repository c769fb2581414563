"""Rests between the calls of one controller for one object. Pure.

The call for a Job reads all its pods, and each of them changes several times. Called for every change, it would
take the process as long as creating them. After a rest, all changes meanwhile cost one call and one status.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.refs import Millis
from situate.loop.controllers.cache import Task

REST_FROM_S: Final = 0.002
"""Shorter calls need no rest."""
REST_TIMES: Final = 20
"""How many times as long as the call the rest is: the calls for one object take a twentieth of the process at most."""
LONGEST_REST_S: Final = 0.5


class Rests:
    def __init__(self) -> None:
        self._until: dict[Task, Millis] = {}
        """Only of objects that exist: the call that finds none is short."""

    def called(self, task: Task, took_s: float, now: Millis) -> None:
        if took_s >= REST_FROM_S:
            self._until[task] = now + int(min(took_s * REST_TIMES, LONGEST_REST_S) * 1_000)
        else:
            self._until.pop(task, None)

    def after(self, task: Task, due: Millis) -> Millis:
        """When to call, if it is due then."""
        return max(due, self._until.get(task, due))
