"""The audit log: who asked what and what was answered, one JSON line a request (audit.k8s.io/v1 Event).

A request only puts its note into a buffer. A thread of its own makes lines of them and writes: if the disk is slow or
full, notes are dropped and counted, and no request waits. Bodies of secrets and tokens are never noted.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from situate.server.identity.attributes import RequestAttributes
from situate.server.identity.secret_files import PRIVATE
from situate.server.requests import Caller
from situate.wire.bodies import micro_time

__all__ = ["AuditLog", "Level", "Policy", "level_of"]

Level: TypeAlias = Literal["None", "Metadata", "Request", "RequestResponse"]

MOST_BYTES: Final = 100 * 1024 * 1024
"""A file of the log; then another is begun."""
MOST_FILES: Final = 10
"""Old files that are kept, beside the one that is written."""
BUFFER: Final = 10_000
"""Notes that wait to be written. One more is dropped."""
GATHER_S: Final = 0.1
"""How long the writer waits for more, once there is something."""
CHUNK_BYTES: Final = 1024 * 1024
REFUSED: Final = 400

READS: Final = frozenset(("get", "list", "watch", "head", "options"))
HEALTH: Final = ("/healthz", "/livez", "/readyz", "/version", "/metrics")
SECRET: Final = frozenset(
    (("", "secrets", ""), ("", "serviceaccounts", "token"), ("authentication.k8s.io", "tokenreviews", ""))
)


@dataclass(frozen=True, slots=True)
class Policy:
    """How much is noted: of writes, of reads, of what was refused, and of resources by `group/plural`."""

    writes: Level = "Metadata"
    reads: Level = "None"
    refusals: Level = "Metadata"
    resources: Mapping[str, Level] = field(default_factory=dict)


DEFAULT: Final = Policy()
_ORDER: Final[Mapping[Level, int]] = {"None": 0, "Metadata": 1, "Request": 2, "RequestResponse": 3}


def level_of(policy: Policy, attributes: RequestAttributes, code: int) -> Level:
    """What is noted of a request that was answered with this code."""
    if not attributes.resource and attributes.path.startswith(HEALTH):
        return "None"
    special = policy.resources.get(f"{attributes.group}/{attributes.resource}") if policy.resources else None
    level = special or (policy.reads if attributes.verb in READS else policy.writes)
    if code >= REFUSED and _ORDER[policy.refusals] > _ORDER[level]:
        level = policy.refusals
    if _ORDER[level] > 1 and (attributes.group, attributes.resource, attributes.subresource) in SECRET:
        return "Metadata"
    return level


class _Note(NamedTuple):
    level: Level
    caller: Caller | None
    attributes: RequestAttributes
    uri: str
    code: int
    received_ns: int
    done_ns: int
    version: str
    audit_id: str
    agent: str
    sources: tuple[str, ...]
    impersonated: Caller | None
    decision: str
    reason: str
    request: Any
    response: Any


class AuditLog:
    def __init__(
        self,
        path: Path,
        *,
        wall_ns: Callable[[], int],
        policy: Policy = DEFAULT,
        most_bytes: int = MOST_BYTES,
        most_files: int = MOST_FILES,
        buffer: int = BUFFER,
    ) -> None:
        self.path: Final = path
        self.dropped = 0
        """Notes for which there was no room, or which could not be written."""
        self.last_error = ""
        """Why the last write failed; empty if it did not."""
        self._policy = policy
        self._wall_ns = wall_ns
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._buffer = buffer
        self._pending: deque[_Note] = deque()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._size = 0
        self._descriptor: int | None = None

    def start(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what waits, and stop."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def record(
        self,
        caller: Caller | None,
        attributes: RequestAttributes,
        *,
        uri: str,
        code: int,
        received_ns: int,
        version: str = "",
        audit_id: str = "",
        agent: str = "",
        sources: tuple[str, ...] = (),
        impersonated: Caller | None = None,
        decision: str = "",
        reason: str = "",
        request: Any = None,
        response: Any = None,
    ) -> None:
        """Note a request that was answered; never waits. Bodies must not be changed afterwards.

        `caller` is who asked, `impersonated` for whom; `decision` is allow or forbid, `reason` why.
        """
        level = level_of(self._policy, attributes, code)
        if level == "None":
            return
        if len(self._pending) >= self._buffer:
            self.dropped += 1
            return
        self._pending.append(
            _Note(
                level,
                caller,
                attributes,
                uri,
                code,
                received_ns,
                self._wall_ns(),
                version,
                audit_id,
                agent,
                sources,
                impersonated,
                decision,
                reason,
                request if level in ("Request", "RequestResponse") else None,
                response if level == "RequestResponse" else None,
            )
        )
        if not self._wake.is_set():
            self._wake.set()

    # ── in the thread that writes ───────────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._closing.wait(GATHER_S)
            self._wake.clear()
            self._drain()
        self._drain()

    def _drain(self) -> None:
        while self._pending:
            lines: list[bytes] = []
            size = 0
            while self._pending and size < CHUNK_BYTES:
                try:
                    line = _ENCODER.encode(_event(self._pending.popleft())) + b"\n"
                except (TypeError, ValueError, UnicodeError) as error:
                    self.dropped += 1
                    self.last_error = str(error)
                    continue
                lines.append(line)
                size += len(line)
            self._write(lines)

    def _write(self, lines: list[bytes]) -> None:
        try:
            for line in _grouped(lines, self._most_bytes):
                self._rotate(len(line))
                self._put(line)
        except OSError as error:
            self.dropped += len(lines)
            self.last_error = error.strerror or str(error)
            self._close_file()
        else:
            self.last_error = ""

    def _put(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view and self._descriptor is not None:
            written = os.write(self._descriptor, view)
            self._size += written
            view = view[written:]

    def _rotate(self, wanted: int) -> None:
        if self._descriptor is None:
            self._open()
        if self._size and self._size + wanted > self._most_bytes:
            self._close_file()
            for number in range(self._most_files, 0, -1):
                older = self._numbered(number)
                if number == self._most_files:
                    older.unlink(missing_ok=True)
                newer = self._numbered(number - 1) if number > 1 else self.path
                if newer.exists():
                    newer.replace(older)
            if not self._most_files:
                self.path.unlink(missing_ok=True)
            self._open()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self.path, flags, PRIVATE)
        self._size = os.fstat(self._descriptor).st_size

    def _close_file(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_ENCODER: Final = msgspec.json.Encoder()


def _grouped(lines: list[bytes], most: int) -> list[bytes]:
    """Lines joined, as many as fit into a file; one that is longer than a file stands alone."""
    found: list[bytes] = []
    group: list[bytes] = []
    size = 0
    for line in lines:
        if group and size + len(line) > most:
            found.append(b"".join(group))
            group, size = [], 0
        group.append(line)
        size += len(line)
    if group:
        found.append(b"".join(group))
    return found


def _event(note: _Note) -> dict[str, Any]:
    status: dict[str, Any] = {"metadata": {}, "code": note.code}
    if note.code >= REFUSED:
        status |= {"status": "Failure"} | ({"reason": note.reason} if note.reason else {})
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": note.level,
        "auditID": note.audit_id,
        "stage": "ResponseComplete",
        "requestURI": note.uri,
        "verb": note.attributes.verb,
        "user": _user(note.caller),
        "sourceIPs": note.sources,
        "userAgent": note.agent,
        "responseStatus": status,
        "requestReceivedTimestamp": micro_time(note.received_ns),
        "stageTimestamp": micro_time(note.done_ns),
    }
    if note.impersonated is not None:
        event["impersonatedUser"] = _user(note.impersonated)
    if note.attributes.resource:
        event["objectRef"] = _reference(note)
    if note.request is not None:
        event["requestObject"] = note.request
    if note.response is not None:
        event["responseObject"] = note.response
    if note.decision:
        event["annotations"] = {"authorization.k8s.io/decision": note.decision}
    return event


def _user(caller: Caller | None) -> dict[str, Any]:
    if caller is None:
        return {}
    shown: dict[str, Any] = {"username": caller.name, "groups": caller.groups}
    if caller.uid:
        shown["uid"] = caller.uid
    if caller.extra:
        shown["extra"] = dict(caller.extra)
    return shown


def _reference(note: _Note) -> dict[str, str]:
    attributes = note.attributes
    parts = {
        "resource": attributes.resource,
        "namespace": attributes.namespace,
        "name": attributes.name,
        "apiGroup": attributes.group,
        "apiVersion": note.version,
        "subresource": attributes.subresource,
    }
    return {key: value for key, value in parts.items() if value}
