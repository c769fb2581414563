"""What the HTTP server needs from the rest: authentication, audit, tables, computed resources, logs, kubelets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self, TypeAlias

from situate.server.identity.audit.event import AuditRecord
from situate.server.identity.authorization.attributes import Attributes
from situate.server.kubelet.connection import NodeConnection
from situate.server.registry.stored_object import ListResult, StoredObject
from situate.server.registry.watchers import WatchEvent
from situate.server.requests import Caller, ListOptions, Object, Target, WatchOptions, WriteOptions
from situate.server.resources import Resource


class Audit(Protocol):
    @property
    def has_policy(self) -> bool:
        """Whether records need the bodies of requests and responses, and streams are logged when they start."""

    def record(self, record: AuditRecord) -> None: ...

    def start_stream(self, record: AuditRecord) -> None:
        """A watch or a log begins."""


class EventStream(Protocol):
    """The events of a watch."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> WatchEvent: ...

    def ready(self) -> Iterable[WatchEvent]:
        """The events available without waiting."""

    async def aclose(self) -> None: ...


class ComputedResources(Protocol):
    """Resources that are computed when read; see situate.server.views.views.Views."""

    async def get(self, target: Target) -> StoredObject: ...

    async def list(self, target: Target, options: ListOptions) -> ListResult: ...

    async def watch(self, target: Target, options: WatchOptions) -> EventStream: ...


class Gate(Protocol):
    """Authenticates and authorizes every request; see situate.server.identity.identity.Identity."""

    @property
    def audit(self) -> Audit: ...

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller: ...

    def impersonate(self, caller: Caller, headers: Iterable[tuple[str, str]]) -> Caller: ...

    def authorize(self, caller: Caller, attributes: Attributes) -> None: ...


class Tables(Protocol):
    """The tables of `kubectl get`; see the module situate.server.tables.printers."""

    def columns_of(self, resource: Resource) -> Sequence[Mapping[str, Any]]: ...

    def printer_of(self, resource: Resource) -> Callable[[Object, int], list[Any]]: ...

    def conditions_of(self, resource: Resource, obj: Object) -> Sequence[Object]: ...


_PLAIN: Final = WriteOptions()


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A create that stores no object, without HTTP."""

    target: Target
    body: Object
    """Decoded, of the kind of the handler."""
    caller: Caller
    options: WriteOptions = _PLAIN
    dry_run: bool = False


CreateCall: TypeAlias = Callable[[CreateRequest], Awaitable[Object]]
"""Returns the object of the response, with kind and apiVersion: a Status, a review, a token."""


@dataclass(frozen=True, slots=True)
class CreateHandler:
    """Handles a create that stores no object: of a subresource, or of a review."""

    call: CreateCall
    api_version: str
    kind: str
    """Of the request body."""


CreateHandlers: TypeAlias = Mapping[tuple[str, str, str], CreateHandler]
"""By group, plural and subresource ("" for a resource itself)."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of pods/log."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    since_s: int | None = None
    since_time: str = ""
    tail_lines: int | None = None
    limit_bytes: int | None = None
    stream: str = "All"


class LogSource(Protocol):
    """Reads container logs."""

    async def open(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """The log in pieces, as they come. Raises StatusError."""
        ...


class NodeConnector(Protocol):
    """Opens connections to kubelets; see situate.server.kubelet.connector.KubeletConnector."""

    async def connect(self, name: str, purpose: str) -> NodeConnection:
        """A connection to the kubelet of this node. Raises StatusError; `purpose` is a verb for its text."""
        ...
