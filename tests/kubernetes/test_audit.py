"""One audit policy and the same requests, on kube-apiserver and here: the logs say the same."""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kubernetes import parts
from kubernetes.api import Api, Json, RefusedError
from kubernetes.cluster import Cluster
from kubernetes.own_cluster import OwnCluster

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitManagedFields": True,
    "rules": [
        {"level": "None", "users": ["system:kube-scheduler"]},
        {"level": "Metadata", "verbs": ["get"], "resources": [{"group": "", "resources": ["secrets"]}]},
        {
            "level": "RequestResponse",
            "resources": [{"group": "", "resources": ["configmaps"], "resourceNames": ["kept"]}],
            "namespaces": ["audited"],
        },
        {
            "level": "Request",
            "omitStages": ["RequestReceived"],
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [{"group": "", "resources": ["configmaps", "secrets", "serviceaccounts/*"]}],
            "namespaces": ["audited"],
        },
        {"level": "Metadata", "nonResourceURLs": ["/version", "/healthz*"]},
        {"level": "Metadata", "resources": [{"group": "apps"}], "namespaces": ["audited"]},
    ],
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "data": {"a": "MQ=="}}
ROOT = "/api/v1/namespaces/audited"
TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
REQUESTS: list[tuple[str, str, Json | None, str]] = [
    ("POST", f"{ROOT}/configmaps", CONFIG, ""),
    ("GET", f"{ROOT}/configmaps/kept", None, ""),
    ("PUT", f"{ROOT}/configmaps/kept", {**CONFIG, "data": {"a": "2"}}, ""),
    ("PATCH", f"{ROOT}/configmaps/kept", {"data": {"b": "3"}}, "application/merge-patch+json"),
    ("POST", f"{ROOT}/configmaps", CONFIG, ""),
    ("GET", f"{ROOT}/configmaps/absent", None, ""),
    ("GET", f"{ROOT}/configmaps", None, ""),
    ("GET", f"{ROOT}/configmaps?fieldSelector=metadata.name%3Dkept", None, ""),
    ("POST", f"{ROOT}/secrets", SECRET, ""),
    ("GET", f"{ROOT}/secrets/key", None, ""),
    ("GET", f"{ROOT}/secrets", None, ""),
    ("DELETE", f"{ROOT}/secrets/key", None, ""),
    ("POST", f"{ROOT}/serviceaccounts", ACCOUNT, ""),
    ("POST", f"{ROOT}/serviceaccounts/robot/token", TOKEN, ""),
    ("GET", "/apis/apps/v1/namespaces/audited/deployments", None, ""),
    ("GET", "/apis/apps/v1/namespaces/audited/deployments/absent", None, ""),
    ("GET", "/apis/apps/v1/namespaces/default/deployments", None, ""),
    ("GET", "/apis/apps/v1/namespaces/audited/deployments?watch=1&timeoutSeconds=1", None, ""),
    ("GET", "/version", None, ""),
    ("GET", "/healthz", None, ""),
    ("GET", "/readyz", None, ""),
    ("DELETE", f"{ROOT}/configmaps/kept", None, ""),
]
SETTLE_S = 10.0


def shown(event: Json) -> Json:
    """What both servers must agree on: not times, names of machines, and fields that only one of them fills in."""
    kept = {key: event.get(key) for key in ("level", "stage", "verb", "requestURI")}
    kept["ref"] = {
        key: value for key, value in event.get("objectRef", {}).items() if key not in ("uid", "resourceVersion")
    }
    kept["code"] = event.get("responseStatus", {}).get("code")
    kept["reason"] = event.get("responseStatus", {}).get("reason")
    kept["user"] = event.get("user", {}).get("username")
    kept["decision"] = event.get("annotations", {}).get("authorization.k8s.io/decision")
    for key in ("requestObject", "responseObject"):
        thing = event.get(key)
        kept[key] = thing and {"kind": thing.get("kind"), "data": sorted(thing.get("data") or {})}
        assert "managedFields" not in json.dumps(thing)
    return kept


def asked(api: Api, log: Path) -> list[Json]:
    api.request(
        "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "audited"}}
    )
    for method, path, body, content_type in REQUESTS:
        with suppress(RefusedError, ValueError):  # a no, or an answer that is not JSON
            api.request(method, path, body, content_type or "application/json")
    deadline = time.monotonic() + SETTLE_S
    last = f'"requestURI":"{REQUESTS[-1][1]}"'
    paths = {path for _, path, _, _ in REQUESTS}
    while True:
        text = log.read_text() if log.exists() else ""
        events = [json.loads(line) for line in text.splitlines()]
        if any(last in line and '"verb":"delete"' in line for line in text.splitlines()):
            return [one for one in events if one["user"].get("username") == "admin" and one["requestURI"] in paths]
        assert time.monotonic() < deadline, text
        time.sleep(0.1)


@pytest.fixture(scope="module")
def policy_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "policy.json"
    path.write_text(json.dumps(POLICY))
    return path


@pytest.mark.skipif(parts.missing() is not None, reason="needs the real parts")
def test_the_same_policy_logs_the_same(policy_file: Path, tmp_path: Path) -> None:
    found: list[list[Any]] = []
    flags = (f"--audit-policy-file={policy_file}", f"--audit-log-path={tmp_path / 'kube.log'}")
    with Cluster(tmp_path / "kube", apiserver_flags=flags) as theirs:
        found.append([shown(one) for one in asked(theirs.api, tmp_path / "kube.log")])
    with OwnCluster(tmp_path / "own", "--audit-policy-file", str(policy_file)) as ours:
        found.append([shown(one) for one in asked(ours.api, tmp_path / "own" / "audit.log")])
    kube, own = found
    differences = [(theirs_, ours_) for theirs_, ours_ in zip(kube, own, strict=False) if theirs_ != ours_]
    assert differences == []
    assert len(own) > len(REQUESTS)
