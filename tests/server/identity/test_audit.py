import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from situate.server.identity import audit
from situate.server.identity.attributes import Attributes
from situate.server.identity.audit import AuditLog, Policy, level_of
from situate.server.requests import Caller

JANE = Caller("jane", ("dev",), "7", {"k": ("v",)})
CREATE = Attributes("create", "apps", "deployments", "", "shop", "web")
AT_NS = 1_794_000_000_123_456_789
FULL = Policy("RequestResponse", "RequestResponse", "RequestResponse")


def log_in(folder: Path, **more: Any) -> AuditLog:
    return AuditLog(folder / "audit.log", wall_ns=lambda: AT_NS, **more)


def note(log: AuditLog, asked: Attributes = CREATE, code: int = 201, **more: Any) -> None:
    log.record(JANE, asked, uri=more.pop("uri", "/x"), code=code, received_ns=AT_NS, **more)


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
    "asked, code, level",
    [
        (CREATE, 201, "Metadata"),
        (CREATE, 403, "Metadata"),
        (Attributes("list", "", "pods"), 200, "None"),
        (Attributes("list", "", "pods"), 403, "Metadata"),
        (Attributes("get", path="/healthz"), 200, "None"),
        (Attributes("get", path="/readyz/etcd"), 500, "None"),
        (Attributes("get", path="/logs"), 403, "Metadata"),
        (Attributes("get", path="/api"), 401, "Metadata"),
    ],
)
def test_writes_and_refusals_are_noted_and_reads_are_not(asked: Attributes, code: int, level: str) -> None:
    assert level_of(audit.DEFAULT, asked, code) == level


def test_a_policy_says_how_much_of_what() -> None:
    policy = Policy(resources={"/pods": "Request", "apps/deployments": "None"})
    assert level_of(policy, Attributes("create", "", "pods"), 201) == "Request"
    assert level_of(policy, CREATE, 201) == "None"
    assert level_of(policy, CREATE, 409) == "Metadata"


def test_bodies_come_with_the_level(tmp_path: Path) -> None:
    for level, kept in (
        ("Metadata", set()),
        ("Request", {"requestObject"}),
        ("RequestResponse", {"requestObject", "responseObject"}),
    ):
        log = log_in(tmp_path / level, policy=Policy(level))  # type: ignore[arg-type]
        log.start()
        note(log, request={"a": 1}, response={"b": 2})
        log.close()
        assert {"requestObject", "responseObject"} & set(written(log)[0]) == kept


@pytest.mark.parametrize(
    "asked",
    [
        Attributes("create", "", "secrets", "", "shop"),
        Attributes("list", "", "secrets"),
        Attributes("create", "", "serviceaccounts", "token", "shop", "x"),
        Attributes("create", "authentication.k8s.io", "tokenreviews"),
    ],
)
@pytest.mark.parametrize("code", [200, 403])
def test_secrets_and_tokens_never_get_into_the_log(tmp_path: Path, asked: Attributes, code: int) -> None:
    policy = Policy("RequestResponse", "RequestResponse", "RequestResponse", {"/secrets": "RequestResponse"})
    log = log_in(tmp_path, policy=policy)
    log.start()
    note(log, asked, code, request={"data": "HUSH"}, response={"data": "HUSH"})
    log.close()
    assert len(written(log)) == 1
    assert "HUSH" not in log.path.read_text()


def test_files_are_rotated_by_size_and_only_so_many_kept(tmp_path: Path) -> None:
    log = log_in(tmp_path, most_bytes=2_000, most_files=3)
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
    log = log_in(tmp_path, most_bytes=500, policy=FULL)
    log.start()
    for size in (1, 5_000, 1):
        note(log, request="x" * size)
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
    log = log_in(tmp_path, policy=FULL)
    log.start()
    note(log, audit_id="bad", request={"x": object()})
    note(log, audit_id="odd", uri="/\udcff")
    note(log, audit_id="good")
    log.close()
    assert "good" in [event["auditID"] for event in written(log)]
    assert "bad" not in [event["auditID"] for event in written(log)]
    assert log.dropped >= 1


def test_a_line_cannot_be_forged_by_what_a_client_sends(tmp_path: Path) -> None:
    log = log_in(tmp_path)
    log.start()
    note(log, uri='/x\n{"kind":"Event"}', agent="a\r\nb")
    log.close()
    assert len(log.path.read_bytes().splitlines()) == 1
    assert written(log)[0]["requestURI"] == '/x\n{"kind":"Event"}'
