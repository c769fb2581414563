"""Files, chunks and limits of the audit log. Records wait until the log starts, and closing writes them."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from situate.server.identity.audit import log as audit
from situate.server.identity.audit.event import AuditRecord
from situate.server.identity.audit.log import AuditLog
from situate.server.identity.audit.policy import AuditPolicy, AuditRule
from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Caller

JANE = Caller("jane", ("dev",))
CREATE = Attributes("create", "apps", "deployments", "", "shop", "web")
READ = Attributes("get", "", "secrets", "", "shop", "key")
AT_NS = 1_794_000_000_123_456_789
ALL = AuditPolicy(rules=(AuditRule("Metadata", omit_stages=("RequestReceived",)),))
BODIES = AuditPolicy(rules=(AuditRule("Request"),))


def log_in(folder: Path, **more: Any) -> AuditLog:
    return AuditLog(folder / "audit.log", wall_ns=lambda: AT_NS + 1_000, **more)


def record(asked: Attributes = CREATE, code: int = 201, **more: Any) -> AuditRecord:
    return AuditRecord(more.pop("caller", JANE), asked, more.pop("uri", "/x"), code, AT_NS, **more)


def flush(log: AuditLog) -> None:
    log.start()
    log.close()


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ids(path: Path) -> list[str]:
    return [one["auditID"] for one in lines(path)]


@pytest.fixture(scope="module")
def length(tmp_path_factory: pytest.TempPathFactory) -> int:
    """Of a line whose auditID has one character."""
    log = log_in(tmp_path_factory.mktemp("one"))
    log.record(record(audit_id="0"))
    flush(log)
    return log.path.stat().st_size


def test_a_new_log_has_nothing_to_report(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    assert (log.dropped, log.suppressed, log.last_error, log.has_policy) == (0, 0, "", False)
    assert log_in(tmp_path, policy=ALL).has_policy
    log.close()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_made_and_a_process_that_ends_does_not_wait_for_the_log(tmp_path: Path) -> None:
    log = log_in(tmp_path / "a" / "b")
    log.start()
    assert [one.daemon for one in threading.enumerate() if one.name == "audit"] == [True]
    log.record(record(audit_id="0"))
    log.close()
    log.record(record(audit_id="1"))
    flush(log)
    assert ids(log.path) == ["0", "1"]


def test_a_file_is_filled_to_its_last_byte(tmp_path: Path, length: int) -> None:
    log = log_in(tmp_path, max_file_bytes=3 * length)
    for number in range(6):
        log.record(record(audit_id=f"{number}"))
    flush(log)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.log", "audit.log.1"]
    assert ids(tmp_path / "audit.log.1") + ids(log.path) == [f"{number}" for number in range(6)]
    assert log.path.stat().st_size == 3 * length


def test_after_a_restart_the_file_is_filled_too(tmp_path: Path, length: int) -> None:
    for number in range(3):
        log = log_in(tmp_path, max_file_bytes=2 * length)
        log.record(record(audit_id=f"{number}"))
        flush(log)
    assert (ids(tmp_path / "audit.log.1"), ids(tmp_path / "audit.log")) == (["0", "1"], ["2"])


def test_without_old_files_only_the_newest_is_kept(tmp_path: Path, length: int) -> None:
    log = log_in(tmp_path, max_file_bytes=length, max_old_files=0)
    for number in range(3):
        log.record(record(audit_id=f"{number}"))
    flush(log)
    assert [path.name for path in tmp_path.iterdir()] == ["audit.log"]
    assert ids(log.path) == ["2"]


def test_one_old_file_is_replaced_by_the_next(tmp_path: Path, length: int) -> None:
    log = log_in(tmp_path, max_file_bytes=length, max_old_files=1)
    for number in range(4):
        log.record(record(audit_id=f"{number}"))
    flush(log)
    assert (ids(tmp_path / "audit.log.1"), ids(log.path)) == (["2"], ["3"])
    assert len(list(tmp_path.iterdir())) == 2


def test_a_disk_that_takes_a_few_bytes_at_a_time_gets_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    real = os.write
    monkeypatch.setattr("os.write", lambda descriptor, view: real(descriptor, view[:7]))
    log = log_in(tmp_path, max_file_bytes=2 * length)
    for number in range(3):
        log.record(record(audit_id=f"{number}"))
    flush(log)
    assert (ids(tmp_path / "audit.log.1"), ids(log.path)) == (["0", "1"], ["2"])


@pytest.mark.parametrize("more, lost", [(0, 1), (1, 2)])
def test_a_write_that_fails_loses_a_chunk_and_the_next_goes_to_the_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, more: int, lost: int
) -> None:
    monkeypatch.setattr(audit, "CHUNK_BYTES", length + more)
    log, real = log_in(tmp_path), os.write
    failed: list[int] = []

    def fail_once(descriptor: int, view: memoryview) -> int:
        if failed:
            return real(descriptor, view)
        failed.append(1)
        log.path.rename(tmp_path / "moved")
        raise OSError("odd")

    monkeypatch.setattr("os.write", fail_once)
    for number in range(3):
        log.record(record(audit_id=f"{number}"))
    flush(log)
    assert ids(log.path) == [f"{number}" for number in range(lost, 3)]
    assert (log.dropped, log.last_error) == (lost, "")


@pytest.mark.parametrize("error, text", [(OSError("odd"), "odd"), (OSError(28, "No space left"), "No space left")])
def test_the_last_error_says_why_the_write_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, text: str
) -> None:
    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr("os.write", fail)
    log = log_in(tmp_path)
    log.record(record())
    log.record(record())
    flush(log)
    assert (log.dropped, log.last_error) == (2, text)


def test_bodies_that_wait_fill_the_room_exactly_and_writing_makes_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_PENDING_BYTES", 20)
    log = log_in(tmp_path, policy=BODIES)
    for _ in range(3):
        for body in (b'{"a": 123}', b'{"b": 123}', b"1"):
            log.record(record(request=body))
        flush(log)
    complete = [one for one in lines(log.path) if one["stage"] == "ResponseComplete"]
    assert [one.get("requestObject") for one in complete] == [{"a": 123}, {"b": 123}, None] * 3
    assert [one["level"] for one in complete] == ["Request", "Request", "Metadata"] * 3


@pytest.mark.parametrize(
    "caller, asked, code, counts",
    [
        (JANE, CREATE, 201, False),
        (JANE, CREATE, 401, True),
        (JANE, CREATE, 403, True),
        (JANE, CREATE, 429, True),
        (JANE, CREATE, 409, False),
        (JANE, READ, 200, False),
        (JANE, READ, 399, False),
        (JANE, READ, 400, True),
        (None, CREATE, 400, True),
        (None, CREATE, 201, False),
    ],
)
def test_what_counts_as_a_refusal_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caller: Caller | None, asked: Attributes, code: int, counts: bool
) -> None:
    monkeypatch.setattr(audit, "REFUSALS_BURST", 1.0)
    log = log_in(tmp_path, policy=ALL)
    log.record(record(asked, code, caller=caller))
    log.record(record(asked, code, caller=caller))
    assert log.suppressed == (1 if counts else 0)
    flush(log)
    assert len(lines(log.path)) == (1 if counts else 2)


@pytest.mark.parametrize("field, most", [("uri", 2_048), ("agent", 1_024), ("name", 256)])
def test_text_is_cut_off_only_beyond_its_limit(tmp_path: Path, field: str, most: int) -> None:
    log = log_in(tmp_path, policy=ALL)
    for size in (most, most + 1):
        text = "x" * size
        long: dict[str, Any] = {"asked": CREATE._replace(name=text)} if field == "name" else {field: text}
        log.record(record(**long))
    flush(log)
    keys = {"uri": "requestURI", "agent": "userAgent"}
    found = [one["objectRef"]["name"] if field == "name" else one[keys[field]] for one in lines(log.path)]
    assert found == ["x" * most, "x" * most + "...TRUNCATED"]
    assert [one["verb"] for one in lines(log.path)] == ["create", "create"]


def test_a_policy_decides_whether_a_stream_is_logged_and_when(tmp_path: Path) -> None:
    rules = (
        AuditRule("None", users=("jane",)),
        AuditRule("Metadata", users=("john",), omit_stages=("ResponseStarted", "ResponseComplete")),
        AuditRule("Metadata", omit_stages=("RequestReceived",)),
    )
    log = log_in(tmp_path, policy=AuditPolicy(rules=rules))
    for name in ("jane", "john", "kate"):
        watch = record(READ._replace(verb="watch"), 200, caller=Caller(name), long_running=True)
        log.start_stream(watch)
        log.record(watch)
    flush(log)
    assert [(one["user"]["username"], one["stage"]) for one in lines(log.path)] == [
        ("john", "RequestReceived"),
        ("kate", "ResponseStarted"),
        ("kate", "ResponseComplete"),
    ]
    plain = log_in(tmp_path / "plain")
    plain.start_stream(record())
    flush(plain)
    assert not plain.path.exists()


def test_stages_have_their_own_times(tmp_path: Path) -> None:
    log = log_in(tmp_path, policy=BODIES)
    log.start_stream(record())
    log.record(record())
    flush(log)
    times = {(one["stage"], one["stageTimestamp"][-8:]) for one in lines(log.path)}
    assert times == {
        ("RequestReceived", ".123456Z"),
        ("ResponseStarted", ".123457Z"),
        ("ResponseComplete", ".123457Z"),
    }


def test_a_log_that_wrote_nothing_ends_and_one_that_did_keeps_no_file_open(tmp_path: Path) -> None:
    idle = log_in(tmp_path / "idle")
    idle.start()
    closing = threading.Thread(target=idle.close, daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    log = log_in(tmp_path, max_file_bytes=1)
    log.record(record())
    log.record(record())
    flush(log)
    still_open = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
    assert not [path for path in still_open if path.startswith(str(log.path))]
