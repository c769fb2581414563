"""Warnings of kinds that the server keeps, and on which nothing here acts."""

from collections.abc import Callable
from typing import Final

from situate.server.objects import Object

KEPT: Final = "{kind} is stored and has no effect here: {why}"
NO_TRAFFIC: Final = "situate forwards no traffic to pods"


def kept(kind: str, why: str = NO_TRAFFIC) -> Callable[[Object], list[str]]:
    """The `warnings` of a strategy."""
    text = KEPT.format(kind=kind, why=why)
    return lambda _: [text]
