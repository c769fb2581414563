"""Extension points of the registry: admission, and what a transaction writes together with an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from situate.server.requests import Caller, Object, Target
from situate.server.resources import Resource
from situate.store.transactions import Guard, Write

if TYPE_CHECKING:
    from situate.server.registry.cache import Cache

Action: TypeAlias = Literal["create", "update", "delete"]
AuthorizeCreate: TypeAlias = Callable[[Caller, Target], None]
"""Raises 403 unless the caller may create the target. For an update or an apply that finds no object: the request was
authorized as an update or a patch only."""


@runtime_checkable
class Admission(Protocol):
    """An admission plugin: it may change or reject a write, before the object is validated."""

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        """Change `new` in place, or raise StatusError. Called again after a conflict.

        `new` is None for a delete, and for a subresource that stores no object; `old` is None for a create.
        """

    def version(self, target: Target) -> int | None:
        """The version of the state that it reads, beside the object, when it changes a new object of this kind.
        Templates of another version are not used. None: it does not change such objects, so `admit` is called for every
        object made from a template.
        """


@runtime_checkable
class AdmissionCheck(Protocol):
    """An admission plugin that may reject a write, or warn of it, once the object is valid and complete. It changes
    nothing. A plugin may be both."""

    async def check(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        """Raise StatusError, or warn. Called after all of `Admission`, and for every object made from a template."""


AdmissionPlugin: TypeAlias = Admission | AdmissionCheck


class StatusWrite(Struct, frozen=True):
    """The request of a client's write of a status."""

    annotations: Mapping[str, Any]
    """Those that the client sets, to whatever value. An update by a controller has all annotations and sets none."""


class TransactionExtension(Protocol):
    """What must hold, and what is written, in the same transaction as an object."""

    def settled(self, cache: Cache, resource: Resource, before: Object | None, after: Object) -> Object:
        """The object to store in the place of `after`, which it leaves alone. Called before quotas count it, for each
        write by a request of a resource in `transaction.EXTENDED`, and again for each retry."""

    def extend(
        self,
        cache: Cache,
        resource: Resource,
        before: Object | None,
        after: Object | None,
        request: Any,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        """Append to the guards and writes of a transaction. Called for each write of a resource in
        `transaction.EXTENDED`, and again for each retry. A StatusError refuses the write. `request` is what
        `Registry.modify` was given, a StatusWrite if a client sets annotations with a status, else None."""

    def forget(
        self,
        cache: Cache,
        resource: Resource,
        namespace: str,
        name: str,
        guards: list[Guard],
        writes: list[Write],
    ) -> None:
        """The same, for the deletion of an unreadable value of this name."""

    def lock(
        self, resource: Resource, before: Object | None, after: Object | None, request: Any
    ) -> AbstractAsyncContextManager[None] | None:
        """Held from before `extend` until the transaction is done. None: the write need not wait for others."""
