"""Lets other requests have their turn during work that decodes many objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final, TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

TURN_S: Final = 0.02
"""How long such work goes on before others have their turn."""


class Turns:
    """Of one piece of work."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = monotonic()

    async def others(self) -> None:
        """Call it between two objects."""
        if monotonic() - self._began > TURN_S:
            await asyncio.sleep(0)
            self._began = monotonic()


async def each_in_turn(given: Iterable[Given], make: Callable[[Given], Made | None], most: int = 0) -> list[Made]:
    """What `make` makes of each, without None; at most so many, if not 0."""
    turns, made = Turns(), list[Made]()
    for one in given:
        if (found := make(one)) is not None:
            made.append(found)
            if len(made) == most:
                break
        await turns.others()
    return made
