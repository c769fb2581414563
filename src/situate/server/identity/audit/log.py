"""The audit log: who asked for what and what the server answered, one JSON line a request (audit.k8s.io/v1 Event).

A request only appends a record to a buffer. A thread encodes the records and writes them: if the disk is slow or full,
records are dropped and counted, and no request waits. Without a policy (policy.py), the log has all writes and
all refusals, and never a body.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from situate.loop.token_buckets import TokenBuckets
from situate.server.identity.audit.event import (
    COMPLETE,
    RECEIVED,
    REFUSED,
    STARTED,
    AuditRecord,
    PendingEvent,
    encoded,
    named,
    without_bodies,
)
from situate.server.identity.audit.policy import BODIES, METADATA, NONE, AuditDecision, AuditPolicy, decide
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.secret_files import PRIVATE

MAX_FILE_BYTES: Final = 100 * 1024 * 1024
"""When a file has reached this size, the log starts another."""
MAX_OLD_FILES: Final = 10
BUFFER: Final = 10_000
"""Records waiting to be written. The log drops the next one."""
GATHER_S: Final = 0.1
"""How long the writer waits for more records once there is one."""
CHUNK_BYTES: Final = 1024 * 1024
MAX_PENDING_BYTES: Final = 64 * 1024 * 1024
"""Bodies waiting to be written. The next records are logged without theirs."""

MAX_URI: Final = 2_048
"""A longer URI is cut off."""
MAX_AGENT: Final = 1_024
"""A longer User-Agent is cut off, as kube-apiserver does."""
MAX_NAME: Final = 256
"""Longer parts of the objectRef are cut off; no object has such a long name."""
CUT_OFF: Final = "...TRUNCATED"
REFUSALS_PER_S: Final = 20.0
"""Refusals of one user that are logged, a second, after a burst. The others are counted. All callers that are not
authenticated count as one user, so that nobody can flush the log by being refused."""
REFUSALS_BURST: Final = 1_000.0
REFUSED_USERS: Final = 1_024
"""Users whose refusals are counted. The one that was refused least recently is forgotten."""
_REFUSALS: Final = (401, 403, 429)

READS: Final = frozenset(("get", "list", "watch", "head", "options"))
ENTERING: Final = frozenset(("attach", "exec", "portforward", "proxy"))
"""Subresources by which a caller enters a container or a node, also with a GET."""
HEALTH: Final = ("/healthz", "/livez", "/readyz", "/version", "/metrics")


_DEFAULT: Final = AuditDecision(METADATA, frozenset((RECEIVED, STARTED)))


def is_logged(attributes: Attributes, code: int) -> bool:
    """Whether a request answered with this code is logged: all writes, all refusals, everything that enters a
    container, and no health checks."""
    if not attributes.resource and attributes.path.startswith(HEALTH):
        return False
    return code >= REFUSED or attributes.verb not in READS or attributes.subresource in ENTERING


class AuditLog:
    def __init__(
        self,
        path: Path,
        *,
        wall_ns: Callable[[], int],
        max_file_bytes: int = MAX_FILE_BYTES,
        max_old_files: int = MAX_OLD_FILES,
        buffer: int = BUFFER,
        policy: AuditPolicy | None = None,
    ) -> None:
        self.path: Final = path
        self.dropped = 0
        """Records lost because the buffer was full or the write failed."""
        self.suppressed = 0
        """Refusals left out because the same user had too many."""
        self._refusals = TokenBuckets(REFUSALS_PER_S, REFUSALS_BURST, REFUSED_USERS)
        self.last_error = ""
        """Why the last write failed; empty if it did not."""
        self.has_policy: Final = policy is not None
        """Whether records need the bodies of requests and responses."""
        self._policy = policy
        self._taken_bytes = 0
        """How many bytes of bodies may be logged."""
        self._written_bytes = 0
        self._wall_ns = wall_ns
        self._max_file_bytes = max_file_bytes
        self._max_old_files = max_old_files
        self._buffer = buffer
        self._pending: deque[PendingEvent] = deque()
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
        """Write the pending records, then stop."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self._close_file()

    def start_stream(self, record: AuditRecord) -> None:
        """Log the start of a watch or a followed log; `record` follows when it ends. Only a policy asks for this."""
        if self._policy is None:
            return
        decision = decide(self._policy, record.caller, record.attributes)
        if decision.level == NONE:
            return
        for stage, at_ns in ((RECEIVED, record.received_ns), (STARTED, self._wall_ns())):
            if stage not in decision.omit_stages:
                self._append(PendingEvent(_short(record), at_ns, stage, decision.level))

    def record(self, record: AuditRecord) -> None:
        """Log a request that was answered. Never waits."""
        policy = self._policy
        if policy is None:
            if not is_logged(record.attributes, record.code):
                return
            decision = _DEFAULT
        else:
            decision = decide(policy, record.caller, record.attributes)
            if decision.level == NONE:
                return
            record = named(record)
            if decision.level not in BODIES:
                record = without_bodies(record)
        if _is_refusal(record):
            user = record.caller.name if record.caller is not None else ""
            if not self._refusals.take(user, record.received_ns * 1e-9):
                self.suppressed += 1
                return
        record = _short(record)
        if RECEIVED not in decision.omit_stages and not record.long_running:
            self._append(PendingEvent(record, record.received_ns, RECEIVED, decision.level))
        if COMPLETE not in decision.omit_stages:
            at_ns = self._wall_ns()
            self._append(PendingEvent(record, at_ns, COMPLETE, decision.level, decision.omit_managed_fields))

    def _append(self, event: PendingEvent) -> None:
        if len(self._pending) >= self._buffer:
            self.dropped += 1
            return
        if event.stage == COMPLETE and (size := event.body_bytes):
            if self._taken_bytes - self._written_bytes + size > MAX_PENDING_BYTES:
                event = event._replace(record=without_bodies(event.record), level=METADATA)
            else:
                self._taken_bytes += size
        self._pending.append(event)
        if not self._wake.is_set():
            self._wake.set()

    # ── on the writer thread ───────────────────────────────────────────────────────────────────────────────────

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
                event = self._pending.popleft()
                if event.stage == COMPLETE:
                    self._written_bytes += event.body_bytes
                try:
                    line = _line(event)
                except (TypeError, ValueError, UnicodeError):
                    self.dropped += 1
                    continue
                lines.append(line)
                size += len(line)
            self._write(lines)

    def _write(self, lines: list[bytes]) -> None:
        try:
            for line in _grouped(lines, self._max_file_bytes):
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
        if self._size and self._size + wanted > self._max_file_bytes:
            self._close_file()
            for number in range(self._max_old_files, 0, -1):
                newer = self._numbered(number - 1) if number > 1 else self.path
                if newer.exists():
                    newer.replace(self._numbered(number))
            if not self._max_old_files:
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


def _is_refusal(record: AuditRecord) -> bool:
    """Whether it counts as a refusal: it changed nothing, and the caller is unknown, forbidden, or only reads."""
    code = record.code
    return code >= REFUSED and (code in _REFUSALS or record.caller is None or record.attributes.verb in READS)


def _line(event: PendingEvent) -> bytes:
    made = encoded(event)
    try:
        return _ENCODER.encode(made) + b"\n"
    except UnicodeEncodeError:  # a request with bytes that are not UTF-8 must be logged, too
        return _ENCODER.encode(_printable(made)) + b"\n"


def _printable(value: Any) -> Any:
    """Without surrogates: HTTP clients may send any bytes in a header."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(one) for key, one in value.items()}
    return [_printable(one) for one in value] if isinstance(value, list | tuple) else value


def _grouped(lines: list[bytes], most: int) -> list[bytes]:
    """Lines joined into chunks that fit a file. A line longer than a file is a chunk of its own."""
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


def _short(record: AuditRecord) -> AuditRecord:
    attributes = record.attributes
    # The URI has all names but that of an object that is created.
    if len(record.uri) <= MAX_URI and len(record.agent) <= MAX_AGENT and len(attributes.name) <= MAX_NAME:
        return record
    return msgspec.structs.replace(
        record,
        uri=_cut(record.uri, MAX_URI),
        agent=_cut(record.agent, MAX_AGENT),
        version=_cut(record.version, MAX_NAME),
        attributes=Attributes(attributes.verb, *(_cut(one, MAX_NAME) for one in attributes[1:])),
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + CUT_OFF
