"""What others plug into the registry: admission, and what must be written together with an object."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from situate.server.requests import Caller, Object, Target
from situate.server.resources import Resource
from situate.store.transactions import Guard, Write

if TYPE_CHECKING:
    from situate.server.registry.cache import Cache

__all__ = ["Action", "Admission", "TransactionExtension"]

Action: TypeAlias = Literal["create", "update", "delete"]


class Admission(Protocol):
    """Somebody who may change a request, or refuse it."""

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        """Change `new` in place, or raise StatusError. Asked again when a write lost a race.

        `new` is None for a deletion, and for the creation of a subresource's answer; `old` is None for a creation.
        """

    def version(self, target: Target) -> int | None:
        """What it goes by, beside the object, when it changes a new one: a number that is another whenever that may be
        another. None: it changes none of that kind, and refuses what it refuses by the object as everybody leaves it.
        """


class TransactionExtension(Protocol):
    """What must hold, and what is written, in the same transaction as an object."""

    def extend(
        self, cache: Cache, resource: Resource, before: Object | None, after: Object | None, request: Any
    ) -> tuple[list[Guard], list[Write]]:
        """Called for each write of a resource in `transacting.EXTENDED`, and again for each retry. A StatusError
        refuses the write. `request` is what `Registry.modify` was given; None for any other write."""

    def lock(
        self, resource: Resource, before: Object | None, after: Object | None, request: Any
    ) -> AbstractAsyncContextManager[None] | None:
        """Held from before `extend` until the transaction is done. None: the write need not wait for others."""
