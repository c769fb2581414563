"""What somebody asks beyond the write itself, on its way to the transaction: values, and the context that carries them.

The registry calls the companions of a write with the pod as it was and as it is to be. Who binds or evicts has more to
say: whose decision it was, which version it is, what else joins in. That travels with the task that writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from situate.server.asking import Object
from situate.server.placing.decisions import Details
from situate.server.registry.held import Held
from situate.server.registry.selectable import Seen
from situate.server.resources import Resource
from situate.store.transactions import Guard, Write

__all__ = ["Ask", "Joining", "Reads", "aim", "asked", "asking", "joins_nothing"]


Joining: TypeAlias = Callable[["Reads", Object | None, Object | None], tuple[list[Guard], list[Write]]]
"""(cache, the pod before, the pod after). May raise StatusError."""


class Reads(Protocol):
    """Of the cache, what is asked and told here. It never waits."""

    def get(self, resource: Resource, namespace: str, name: str) -> Held | None: ...

    def all(self, resource: Resource, namespace: str = "") -> Iterator[Held]: ...

    def expect(self, key: str, value: bytes, seen: Seen) -> None: ...


def joins_nothing(_cache: Reads, _before: Object | None, _after: Object | None) -> tuple[list[Guard], list[Write]]:
    return [], []


class Ask(Struct, frozen=True):
    """What comes with one write of one pod."""

    uid: str
    """The pod's: another pod's writes in the same task are none of this."""
    binds: bool = False
    """It is a bind, and every check of a bind is to be made."""
    binding_version: int | None = None
    term: int | None = None
    scheduler: str = ""
    details: Details | None = None
    joining: Joining = joins_nothing
    """What else is asked for and written with it; called again whenever the write is tried again."""


_ASK: Final[ContextVar[Ask | None]] = ContextVar("ask", default=None)


class asking:  # noqa: N801 - used as a function; there are thousands a second, so it is no generator
    """While this is open, the task's writes of that pod come with it."""

    __slots__ = ("_ask", "_token")

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __enter__(self) -> None:
        self._token: Token[Ask | None] = _ASK.set(self._ask)

    def __exit__(self, *_: object) -> None:
        _ASK.reset(self._token)


def aim(ask: Ask) -> None:
    """Inside of `asking`: it is this that comes with the write, now that it is known which pod is written."""
    _ASK.set(ask)


def asked(uid: str) -> Ask | None:
    """What comes with the write of this pod that is being made."""
    ask = _ASK.get()
    return ask if ask is not None and ask.uid == uid else None
