"""Which rule of a policy decides, how a wrong policy is reported, and how much of a body is logged."""

import json
from pathlib import Path
from typing import Any

import pytest

from situate.server.identity.audit import event as audit_event
from situate.server.identity.audit import log as audit
from situate.server.identity.audit import policy as audit_policy
from situate.server.identity.audit.event import AuditRecord
from situate.server.identity.audit.log import AuditLog
from situate.server.identity.audit.policy import AuditPolicy, decide, read_policy
from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Caller
from situate.wire.errors import InputError

JANE = Caller("jane", ("dev", "system:authenticated"))
HEAD = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
AT_NS = 1_794_000_000_123_456_789
GET_SECRET = Attributes("get", "", "secrets", "", "shop", "key")


def policy(tmp_path: Path, *rules: dict[str, Any], **more: Any) -> AuditPolicy:
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps({**HEAD, "rules": rules, **more}))
    return read_policy(path)


@pytest.mark.parametrize(
    "rule, attributes, matches",
    [
        ({}, GET_SECRET, True),
        ({"users": ["jane"]}, GET_SECRET, True),
        ({"users": ["john"]}, GET_SECRET, False),
        ({"userGroups": ["dev"]}, GET_SECRET, True),
        ({"userGroups": ["ops"]}, GET_SECRET, False),
        ({"users": ["jane"], "userGroups": ["ops"]}, GET_SECRET, False),
        ({"verbs": ["get", "list"]}, GET_SECRET, True),
        ({"verbs": ["watch"]}, GET_SECRET, False),
        ({"namespaces": ["shop"]}, GET_SECRET, True),
        ({"namespaces": ["other"]}, GET_SECRET, False),
        ({"namespaces": [""]}, Attributes("get", "", "nodes", "", "", "n"), True),
        ({"resources": [{"group": ""}]}, GET_SECRET, True),
        ({"resources": [{"group": "apps"}]}, GET_SECRET, False),
        ({"resources": [{"group": "", "resources": ["secrets"]}]}, GET_SECRET, True),
        ({"resources": [{"resources": ["configmaps", "secrets"]}]}, GET_SECRET, True),
        ({"resources": [{"resources": ["*"]}]}, GET_SECRET, True),
        ({"resources": [{"resources": ["secrets"], "resourceNames": ["key"]}]}, GET_SECRET, True),
        ({"resources": [{"resources": ["secrets"], "resourceNames": ["other"]}]}, GET_SECRET, False),
        ({"resources": [{"resources": ["pods"]}]}, Attributes("get", "", "pods", "log", "a", "b"), False),
        ({"resources": [{"resources": ["pods/log"]}]}, Attributes("get", "", "pods", "log", "a", "b"), True),
        ({"resources": [{"resources": ["pods/log"]}]}, Attributes("get", "", "pods", "", "a", "b"), False),
        ({"resources": [{"resources": ["pods/*"]}]}, Attributes("get", "", "pods", "log", "a", "b"), True),
        ({"resources": [{"resources": ["pods/*"]}]}, Attributes("get", "", "pods", "", "a", "b"), True),
        ({"resources": [{"resources": ["*/status"]}]}, Attributes("update", "", "nodes", "status", "", "b"), True),
        ({"resources": [{"resources": ["*/status"]}]}, Attributes("update", "", "nodes", "", "", "b"), False),
        ({"resources": [{"resources": ["*"]}]}, Attributes("get", path="/healthz"), False),
        ({"nonResourceURLs": ["/healthz"]}, Attributes("get", path="/healthz"), True),
        ({"nonResourceURLs": ["/healthz*"]}, Attributes("get", path="/healthz/etcd"), True),
        ({"nonResourceURLs": ["*"]}, Attributes("get", path="/healthz"), True),
        ({"nonResourceURLs": ["/healthz"]}, Attributes("get", path="/healthz/etcd"), False),
        ({"nonResourceURLs": ["*"]}, GET_SECRET, False),
    ],
)
def test_a_rule_matches_as_kube_apiservers_does(
    tmp_path: Path, rule: dict[str, Any], attributes: Attributes, matches: bool
) -> None:
    made = policy(tmp_path, {"level": "Request", **rule})
    assert decide(made, JANE, attributes).level == ("Request" if matches else "None")


def test_the_first_rule_that_matches_decides(tmp_path: Path) -> None:
    made = policy(tmp_path, {"level": "None", "users": ["jane"]}, {"level": "Metadata"})
    assert decide(made, JANE, GET_SECRET).level == "None"
    assert decide(made, Caller("john"), GET_SECRET).level == "Metadata"
    assert decide(made, None, GET_SECRET).level == "Metadata"


def test_a_rule_adds_to_the_stages_and_overrides_managed_fields(tmp_path: Path) -> None:
    rules = ({"level": "Metadata", "omitStages": ["ResponseStarted"], "omitManagedFields": False},)
    found = decide(policy(tmp_path, *rules, omitStages=["RequestReceived"], omitManagedFields=True), None, GET_SECRET)
    assert found.omit_stages == {"RequestReceived", "ResponseStarted"}
    assert not found.omit_managed_fields
    assert decide(policy(tmp_path, {"level": "Metadata"}, omitManagedFields=True), None, GET_SECRET).omit_managed_fields


@pytest.mark.parametrize(
    "content, expected",
    [
        ("{", "policy.yaml"),
        ("- 1", "not an audit policy"),
        ("a: 1\n---\nb: 1", "one YAML document"),
        ({"apiVersion": "v1", "kind": "Pod"}, 'it is a "Pod" of "v1"'),
        ({**HEAD}, "has no rules"),
        ({**HEAD, "rules": [{}]}, "rules[0].level: Required value"),
        ({**HEAD, "rules": [{"level": "All"}]}, 'rules[0].level: Unsupported value: "All": supported values: "None"'),
        ({**HEAD, "rules": [{"level": "None", "omitStages": ["X"]}]}, "rules[0].omitStages[0]: Unsupported value"),
        ({**HEAD, "rules": [{"level": "None", "nonResourceURLs": ["x"]}]}, "must begin with a '/' character"),
        ({**HEAD, "rules": [{"level": "None", "nonResourceURLs": ["/*a"]}]}, "must be the final character"),
        ({**HEAD, "rules": [{"level": "None", "nonResourceURLs": ["/"], "namespaces": ["a"]}]}, "cannot apply to both"),
        ({**HEAD, "rules": [{"level": "None", "resources": [{"group": "A!"}]}]}, "rules[0].resources[0].group"),
        ({**HEAD, "rules": [{"level": "None", "resources": [{"resourceNames": ["a"]}]}]}, "at least one resource"),
        ({**HEAD, "rules": [{"level": 7}]}, "rules[0].level"),
    ],
)
def test_a_wrong_policy_is_one_line(tmp_path: Path, content: Any, expected: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError) as error:
        read_policy(path)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_a_policy_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the audit policy cannot be read: No such file"):
        read_policy(tmp_path / "none.yaml")


def logged(tmp_path: Path, made: AuditPolicy, *records: AuditRecord, streams: bool = False) -> list[Any]:
    log = AuditLog(tmp_path / "audit.log", wall_ns=lambda: AT_NS + 1_000, policy=made)
    log.start()
    for record in records:
        if streams:
            log.start_stream(record)
        log.record(record)
    log.close()
    return [json.loads(line) for line in log.path.read_text().splitlines()]


def a_record(request: Any = None, response: Any = None, **more: Any) -> AuditRecord:
    bodies = {"request": json.dumps(request or {}).encode(), "response": json.dumps(response or {}).encode()}
    return AuditRecord(JANE, GET_SECRET, "/x", 200, AT_NS, **(bodies | more))


def test_each_level_has_what_kubernetes_says(tmp_path: Path) -> None:
    record = a_record({"kind": "A"}, {"kind": "B"})
    for level, keys in (
        ("Metadata", set()),
        ("Request", {"requestObject"}),
        ("RequestResponse", {"requestObject", "responseObject"}),
    ):
        (tmp_path / level).mkdir()
        first, last = logged(tmp_path / level, policy(tmp_path, {"level": level}), record)
        assert (first["stage"], last["stage"]) == ("RequestReceived", "ResponseComplete")
        assert (first["level"], last["level"]) == (level, level)
        assert "responseStatus" not in first
        assert {"requestObject", "responseObject"} & set(last) == keys
        assert not {"requestObject", "responseObject"} & set(first)


def test_a_watch_starts_and_completes(tmp_path: Path) -> None:
    made = policy(tmp_path, {"level": "RequestResponse"})
    found = logged(tmp_path, made, a_record(response={"type": "ADDED"}, long_running=True), streams=True)
    assert [one["stage"] for one in found] == ["RequestReceived", "ResponseStarted", "ResponseComplete"]
    assert "responseObject" not in found[-1]


def test_managed_fields_are_left_out_on_request(tmp_path: Path) -> None:
    thing = {"metadata": {"name": "a", "managedFields": [1]}}
    made = policy(tmp_path, {"level": "RequestResponse"}, omitManagedFields=True, omitStages=["RequestReceived"])
    (found,) = logged(tmp_path, made, a_record(thing, {"items": [thing]}))
    assert found["requestObject"] == {"metadata": {"name": "a"}}
    assert found["responseObject"] == {"items": [{"metadata": {"name": "a"}}]}


def test_a_long_body_is_left_out_and_the_event_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_event, "MAX_BODY_BYTES", 100)
    made = policy(tmp_path, {"level": "RequestResponse"}, omitStages=["RequestReceived"])
    long = a_record({"a": "x" * 100}, {"b": 1})
    unread = AuditRecord(JANE, GET_SECRET, "/x", 200, AT_NS, request=b"{}", response=None)
    for one in logged(tmp_path, made, long, unread):
        assert one["annotations"]["audit.k8s.io/truncated"] == "true"


def test_a_body_of_just_the_limit_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"a": 1}'
    monkeypatch.setattr(audit_event, "MAX_BODY_BYTES", len(body))
    made = policy(tmp_path, {"level": "RequestResponse"}, omitStages=["RequestReceived"])
    (found,) = logged(tmp_path, made, AuditRecord(JANE, GET_SECRET, "/x", 200, AT_NS, request=body, response=body))
    assert found["requestObject"] == found["responseObject"] == {"a": 1}
    assert "annotations" not in found


def test_bodies_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MAX_PENDING_BYTES", 1_000)
    log = AuditLog(tmp_path / "audit.log", wall_ns=lambda: AT_NS, policy=policy(tmp_path, {"level": "Request"}))
    for _ in range(10):
        log.record(a_record({"a": "x" * 400}))
    assert sum(one.body_bytes for one in log._pending if one.stage == "ResponseComplete") <= 1_000
    log.start()
    log.close()
    found = [json.loads(line) for line in log.path.read_text().splitlines()]
    complete = [one for one in found if one["stage"] == "ResponseComplete"]
    assert len(complete) == 10
    assert sum("requestObject" in one for one in complete) == 2


@pytest.mark.parametrize("body", [b"{", b"[" * 100_000, b"\xff", b""])
def test_a_body_that_is_not_json_does_not_prevent_the_log_line(tmp_path: Path, body: bytes) -> None:
    made = policy(tmp_path, {"level": "Request"}, omitStages=["RequestReceived"])
    (found,) = logged(tmp_path, made, _raw(body))
    assert "requestObject" not in found


def _raw(body: bytes) -> AuditRecord:
    return AuditRecord(JANE, GET_SECRET, "/x", 400, AT_NS, request=body)


@pytest.mark.parametrize(
    "content_type, body",
    [
        ("application/json", b'{"kind": "A", "list": [1]}'),
        ("", b'{"kind": "A", "list": [1]}'),
        ("application/yaml", b"kind: A\nlist:\n- 1\n"),
        ("application/merge-patch+json", b'{"kind": "A", "list": [1]}'),
    ],
)
def test_a_body_is_read_by_its_type(tmp_path: Path, content_type: str, body: bytes) -> None:
    made = policy(tmp_path, {"level": "Request"}, omitStages=["RequestReceived"])
    record = AuditRecord(JANE, GET_SECRET, "/x", 200, AT_NS, content_type=content_type, request=body)
    (found,) = logged(tmp_path, made, record)
    assert found["requestObject"] == {"kind": "A", "list": [1]}


def test_yaml_is_not_json(tmp_path: Path) -> None:
    made = policy(tmp_path, {"level": "Request"}, omitStages=["RequestReceived"])
    record = AuditRecord(JANE, GET_SECRET, "/x", 400, AT_NS, content_type="application/json", request=b"kind: A\n")
    (found,) = logged(tmp_path, made, record)
    assert "requestObject" not in found


def test_a_create_has_the_name_of_its_object(tmp_path: Path) -> None:
    made = policy(tmp_path, {"level": "Metadata"}, omitStages=["RequestReceived"])
    create = Attributes("create", "", "secrets", "", "shop", "")
    records = [
        AuditRecord(JANE, create, "/x", 201, AT_NS, request=b'{"metadata": {"name": "key"}}'),
        AuditRecord(JANE, create, "/x", 201, AT_NS, request=b'{"metadata": {"generateName": "key"}}'),
        AuditRecord(JANE, create, "/x", 400, AT_NS, request=b"[1]"),
        AuditRecord(JANE, GET_SECRET, "/x", 200, AT_NS, request=b'{"metadata": {"name": "other"}}'),
    ]
    found = logged(tmp_path, made, *records)
    assert [one["objectRef"].get("name") for one in found] == ["key", None, None, "key"]


@pytest.mark.parametrize(
    "resources, matches",
    [
        ([{"group": "apps"}, {"group": ""}], True),
        ([{"group": "apps"}, {"group": "batch"}], False),
        ([{"resources": ["secrets"], "resourceNames": ["other"]}, {"resources": ["secrets"]}], True),
        ([{"resources": ["pods"]}, {"resources": ["secrets"]}], True),
        ([{"resources": ["pods"], "resourceNames": ["key"]}, {"resources": ["configmaps"]}], False),
    ],
)
def test_one_of_several_groups_is_enough(tmp_path: Path, resources: list[Any], matches: bool) -> None:
    made = policy(tmp_path, {"level": "Request", "resources": resources})
    assert (decide(made, JANE, GET_SECRET).level == "Request") is matches
    elsewhere = policy(tmp_path, {"level": "Request", "resources": resources, "namespaces": ["other"]})
    assert decide(elsewhere, JANE, GET_SECRET).level == "None"


@pytest.mark.parametrize("rule", [{"users": ["jane"]}, {"userGroups": ["dev"]}])
def test_a_rule_about_users_does_not_match_a_request_without_one(tmp_path: Path, rule: dict[str, Any]) -> None:
    assert decide(policy(tmp_path, {"level": "Metadata", **rule}), None, GET_SECRET).level == "None"


def test_a_path_is_matched_from_its_beginning(tmp_path: Path) -> None:
    made = policy(tmp_path, {"level": "Metadata", "nonResourceURLs": ["/a", "/b*"]})
    found = {
        path: decide(made, JANE, Attributes("get", path=path)).level for path in ("/a", "/ab", "/b", "/bc", "/c/b")
    }
    assert found == {"/a": "Metadata", "/ab": "None", "/b": "Metadata", "/bc": "Metadata", "/c/b": "None"}


@pytest.mark.parametrize(
    "more, expected",
    [
        ({"omitStages": ["Panic", "X"]}, 'omitStages[1]: Unsupported value: "X": supported values: "RequestReceived"'),
        ({"rules": [{"level": "None"}, {"level": "X"}]}, "rules[1].level: Unsupported value"),
        ({"rules": [{"level": "None", "omitStages": ["Panic", "X"]}]}, "rules[0].omitStages[1]: "),
        ({"rules": [{"level": "None", "nonResourceURLs": ["*", "/a*", "/*/b"]}]}, "rules[0].nonResourceURLs[2]: "),
        ({"rules": [{"level": "None", "nonResourceURLs": ["/"], "resources": [{}]}]}, "cannot apply to both"),
        ({"rules": [{"level": "None", "resources": [{}, {"group": "A!"}]}]}, "rules[0].resources[1].group: "),
        (
            {"rules": [{"level": "None", "resources": [{}, {"resourceNames": ["a"]}]}]},
            "rules[0].resources[1].resourceNames: ",
        ),
    ],
)
def test_the_place_of_a_mistake_is_named(tmp_path: Path, more: dict[str, Any], expected: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps({**HEAD, "rules": [{"level": "None"}], **more}))
    with pytest.raises(InputError) as error:
        read_policy(path)
    assert expected in str(error.value)


def test_a_policy_without_mistakes_is_read(tmp_path: Path) -> None:
    group = {"group": "apps", "resources": ["deployments"], "resourceNames": ["a"]}
    made = policy(
        tmp_path,
        {"level": "None", "resources": [group], "namespaces": ["shop"]},
        {"level": "Metadata", "nonResourceURLs": ["*", "/a", "/b*"]},
        omitStages=["Panic"],
    )
    assert [rule.level for rule in made.rules] == ["None", "Metadata"]


def test_a_policy_is_one_document_of_limited_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.yaml"
    text = json.dumps({**HEAD, "rules": [{"level": "None"}]})
    path.write_text(f"---\n---\n{text}\n")
    assert read_policy(path).rules
    monkeypatch.setattr(audit_policy, "MAX_FILE_BYTES", path.stat().st_size)
    assert read_policy(path).rules
    path.write_text(f"---\n---\n{text}\n\n")
    with pytest.raises(InputError, match="is larger than"):
        read_policy(path)
    path.write_text("---\n")
    with pytest.raises(InputError, match="this file has 0"):
        read_policy(path)


def test_unknown_fields_are_named_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rules = ({"level": "None"}, {"level": "None", "b": 1, "resources": [{}, {"group": "apps", "c": 1}]})
    policy(tmp_path, *rules, a=1)
    assert [one.__dict__["keys"]["field"] for one in caplog.records] == ["a", "rules[1].b", "rules[1].resources[1].c"]
    caplog.clear()
    policy(tmp_path, {"level": "None"})
    assert not caplog.records
