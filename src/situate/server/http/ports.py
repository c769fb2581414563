"""What the HTTP side asks of its neighbours: who is it, may they, note it, show it, read its log. Protocols only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, TypeAlias

from situate.server.identity.attributes import Attributes
from situate.server.identity.audit import AuditRecord
from situate.server.registry.stored_object import ListResult, StoredObject
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import Caller, ListOptions, Object, Target, WatchOptions, WriteOptions
from situate.server.resources import Resource

__all__ = [
    "CreateRequest",
    "Audit",
    "ComputedResources",
    "EventStream",
    "Gate",
    "LogOptions",
    "LogSource",
    "CreateHandler",
    "CreateCall",
    "CreateHandlers",
    "Tables",
]


class Audit(Protocol):
    def record(self, record: AuditRecord) -> None: ...


class EventStream(Protocol):
    """Events of a watch."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> WatchEvent: ...

    def ready(self) -> list[WatchEvent]:
        """What can be told without waiting."""

    async def aclose(self) -> None: ...


class ComputedResources(Protocol):
    """Resources that are worked out when they are asked for; situate.server.views.views.Views is one."""

    async def get(self, target: Target) -> StoredObject: ...

    async def list(self, target: Target, options: ListOptions) -> ListResult: ...

    async def watch(self, target: Target, options: WatchOptions) -> EventStream: ...


class Gate(Protocol):
    """What every request passes; situate.server.identity.identity.Identity is one."""

    @property
    def audit(self) -> Audit: ...

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller: ...

    def impersonate(self, caller: Caller, headers: Iterable[tuple[str, str]]) -> Caller: ...

    def authorize(self, caller: Caller, attributes: Attributes) -> None: ...


class Tables(Protocol):
    """How `kubectl get` shows things; the module situate.server.tables.printers is one."""

    def columns_of(self, resource: Resource) -> Sequence[Mapping[str, Any]]: ...

    def printer_of(self, resource: Resource) -> Callable[[Object, int], list[Any]]: ...

    def conditions_of(self, resource: Resource, obj: Object) -> Sequence[Object]: ...


_PLAIN: Final = WriteOptions()


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A request that is no plain read or write of an object, without anything of HTTP."""

    target: Target
    body: Object
    """Decoded, of the kind that was promised."""
    caller: Caller
    options: WriteOptions = _PLAIN
    dry_run: bool = False


CreateCall: TypeAlias = Callable[[CreateRequest], Awaitable[Object]]
"""Gives the object of the answer, with kind and apiVersion: a Status, a review, a token."""


@dataclass(frozen=True, slots=True)
class CreateHandler:
    """A create whose object is not kept: of a subresource, or of a resource that is only asked."""

    call: CreateCall
    api_version: str
    kind: str
    """Of the body."""


CreateHandlers: TypeAlias = Mapping[tuple[str, str, str], CreateHandler]
"""By group, plural and subresource ("" for a resource itself)."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Of a pod's log."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_s: int | None = None
    since_time: str = ""
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = "All"


class LogSource(Protocol):
    """Whoever can reach what a container wrote."""

    async def open(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Pieces of it as they come. Raises StatusError."""
        ...
