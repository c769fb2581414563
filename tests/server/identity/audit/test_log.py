import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from situate.server.identity.audit.event import AuditRecord
from situate.server.identity.audit.log import AuditLog, is_logged
from situate.server.identity.audit.policy import AuditPolicy, AuditRule
from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Caller

JANE = Caller("jane", ("dev",), "7", {"k": ("v",)})
CREATE = Attributes("create", "apps", "deployments", "", "shop", "web")
AT_NS = 1_794_000_000_123_456_789


def log_in(folder: Path, **more: Any) -> AuditLog:
    return AuditLog(folder / "audit.log", wall_ns=lambda: AT_NS, **more)


def note(log: AuditLog, asked: Attributes = CREATE, code: int = 201, **more: Any) -> None:
    log.record(AuditRecord(JANE, asked, more.pop("uri", "/x"), code, AT_NS, **more))


def written(log: AuditLog) -> list[Any]:
    if not log.path.exists():
        return []
    return [json.loads(line) for line in log.path.read_text().splitlines()]


def test_a_line_is_an_event_of_kubernetes(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    note(
        log,
        uri="/apis/apps/v1/namespaces/shop/deployments",
        version="v1",
        audit_id="an-id",
        agent="kubectl/1",
        sources=("127.0.0.1",),
        impersonated=Caller("john"),
        decision="allow",
    )
    log.close()
    assert written(log) == [
        {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": "an-id",
            "stage": "ResponseComplete",
            "requestURI": "/apis/apps/v1/namespaces/shop/deployments",
            "verb": "create",
            "user": {"username": "jane", "groups": ["dev"], "uid": "7", "extra": {"k": ["v"]}},
            "impersonatedUser": {"username": "john", "groups": []},
            "sourceIPs": ["127.0.0.1"],
            "userAgent": "kubectl/1",
            "objectRef": {
                "resource": "deployments",
                "namespace": "shop",
                "name": "web",
                "apiGroup": "apps",
                "apiVersion": "v1",
            },
            "responseStatus": {"metadata": {}, "code": 201},
            "requestReceivedTimestamp": "2026-11-06T21:20:00.123456Z",
            "stageTimestamp": "2026-11-06T21:20:00.123456Z",
            "annotations": {"authorization.k8s.io/decision": "allow"},
        }
    ]
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "asked, code, logged",
    [
        (CREATE, 201, True),
        (CREATE, 403, True),
        (Attributes("list", "", "pods"), 200, False),
        (Attributes("list", "", "pods"), 399, False),
        (Attributes("list", "", "pods"), 400, True),
        (Attributes("list", "", "pods"), 403, True),
        (Attributes("get", path="/healthz"), 200, False),
        (Attributes("get", path="/readyz/etcd"), 500, False),
        (Attributes("get", path="/logs"), 403, True),
        (Attributes("get", path="/api"), 401, True),
    ],
)
def test_writes_and_refusals_are_logged_and_reads_are_not(asked: Attributes, code: int, logged: bool) -> None:
    assert is_logged(asked, code) == logged


def test_files_are_rotated_by_size_and_only_so_many_kept(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_file_bytes=2_000, max_old_files=3)
    log.start()
    for number in range(100):
        note(log, audit_id=f"id-{number:03d}")
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2", "audit.log.3"]
    ids = []
    for name in ("audit.log.3", "audit.log.2", "audit.log.1", "audit.log"):
        text = (tmp_path / name).read_text()
        assert len(text) <= 2_000
        ids += [json.loads(line)["auditID"] for line in text.splitlines()]
    assert ids == [f"id-{number:03d}" for number in range(100 - len(ids), 100)]
    assert log.dropped == 0


def test_a_line_that_is_longer_than_a_file_stands_alone(tmp_path: Path) -> None:
    log = log_in(tmp_path, max_file_bytes=500)
    log.start()
    for size in (1, 5_000, 1):
        note(log, agent="x" * size)
    log.close()
    assert len(written(log)) == 1
    assert len((tmp_path / "audit.log.1").read_text().splitlines()) == 1
    assert log.dropped == 0


def test_a_restart_goes_on_where_it_was(tmp_path: Path) -> None:
    first, second = log_in(tmp_path), log_in(tmp_path)
    for log in (first, second):
        log.start()
        note(log)
        log.close()
    assert len(written(second)) == 2


def test_what_there_is_no_room_for_is_counted_and_nobody_waits(tmp_path: Path) -> None:
    log = log_in(tmp_path, buffer=5)
    for _ in range(8):
        note(log)
    assert log.dropped == 3
    log.start()
    log.close()
    assert len(written(log)) == 5


def test_a_disk_that_refuses_is_told_and_writing_goes_on_when_it_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def full(*_: object) -> int:
        tried.set()
        raise OSError(28, "No space left on device")

    log = log_in(tmp_path)
    log.start()
    with monkeypatch.context() as patch:
        patch.setattr("os.write", full)
        note(log, audit_id="lost")
        assert tried.wait(10)
        while not log.last_error:
            tried.wait(0.001)
    assert (log.dropped, log.last_error) == (1, "No space left on device")
    note(log, audit_id="kept")
    log.close()
    assert [event["auditID"] for event in written(log)] == ["kept"]
    assert log.last_error == ""


def test_what_cannot_be_written_as_json_is_dropped_alone(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    note(log, audit_id="bad", version=object())
    note(log, audit_id="good")
    log.close()
    assert "good" in [event["auditID"] for event in written(log)]
    assert "bad" not in [event["auditID"] for event in written(log)]
    assert log.dropped == 1


def test_a_line_cannot_be_forged_by_what_a_client_sends(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    note(log, uri='/x\n{"kind":"Event"}', agent="a\r\nb")
    log.close()
    assert len(log.path.read_bytes().splitlines()) == 1
    assert written(log)[0]["requestURI"] == '/x\n{"kind":"Event"}'


def test_a_long_uri_and_a_long_agent_are_cut_off(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    note(log, uri="/" + "u" * 60_000, agent="a" * 60_000)
    note(log, uri="/" + "u" * 2_047, agent="a" * 60_000)
    log.close()
    event, whole = written(log)
    assert whole["requestURI"] == "/" + "u" * 2_047
    assert event["requestURI"] == "/" + "u" * 2_047 + "...TRUNCATED"
    assert event["userAgent"] == "a" * 1_024 + "...TRUNCATED"


@pytest.mark.parametrize(
    "caller, code",
    [
        (None, 403),
        (Caller("system:anonymous"), 403),
        (Caller("mallory"), 403),
        pytest.param(None, 400, id="a URL that is none"),
        pytest.param(Caller("mallory"), 404, id="a read of nothing"),
    ],
)
def test_a_user_with_many_refusals_does_not_flush_the_log(caller: Caller | None, code: int, tmp_path: Path) -> None:
    log = log_in(tmp_path, buffer=100_000)
    log.start()
    for number in range(20_000):
        now = AT_NS + number * 1_000_000  # twenty seconds in all
        log.record(AuditRecord(caller, Attributes("get", path=f"/{number}"), f"/{number}", code, now))
    log.record(AuditRecord(JANE, CREATE, "/x", 403, AT_NS))
    log.close()
    events = written(log)
    assert 1_300 < len(events) < 1_500
    assert events[-1]["user"]["username"] == "jane"
    assert log.suppressed == 20_001 - len(events)
    assert log.dropped == 0


def test_long_names_are_cut_off(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    long = "n" * 60_000
    note(log, Attributes("get", long, long, long, long, long), 403, uri="/" + long, version=long)
    log.close()
    assert log.path.stat().st_size < 10_000
    assert written(log)[0]["objectRef"]["name"] == "n" * 256 + "...TRUNCATED"


def test_a_long_name_in_a_body_is_cut_off(tmp_path: Path) -> None:
    log = log_in(tmp_path, policy=AuditPolicy(rules=(AuditRule("Metadata", omit_stages=("RequestReceived",)),)))
    log.start()
    body = json.dumps({"metadata": {"name": "n" * 60_000}}).encode()
    note(log, Attributes("create", "", "pods"), request=body)
    log.close()
    assert written(log)[0]["objectRef"]["name"] == "n" * 256 + "...TRUNCATED"


def test_a_client_cannot_hide_by_what_is_not_unicode(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    note(log, uri="/x?\udcff", agent="a\udcff", impersonated=Caller("j\udcff", ("g\udcff",), "", {"k": ("\udcff",)}))
    log.close()
    (event,) = written(log)
    assert (event["requestURI"], event["userAgent"]) == ("/x?\\udcff", "a\\udcff")
    assert event["impersonatedUser"] == {"username": "j\\udcff", "groups": ["g\\udcff"], "extra": {"k": ["\\udcff"]}}
    assert log.dropped == 0


def test_a_small_body_does_not_become_a_large_line(tmp_path: Path) -> None:
    log = log_in(tmp_path, policy=AuditPolicy(rules=(AuditRule("Request", omit_stages=("RequestReceived",)),)))
    log.start()
    body = b"a: &a " + b"x" * 1_000 + b"\nb: [" + b"*a, " * 1_000 + b"1]\n"
    note(log, code=400, content_type="application/yaml", request=body)
    note(log, content_type="application/yaml", request=b"a: 1 * 2")
    log.close()
    assert log.path.stat().st_size < 10_000
    first, second = written(log)
    assert "requestObject" not in first
    assert second["requestObject"] == {"a": "1 * 2"}
