"""PodSecurity and RuntimeClass say what kube-apiserver says, of one table of pods."""

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kubernetes.cluster import Cluster
from kubernetes.objects import Json
from kubernetes.own_cluster import OwnCluster

LEVELS = ("baseline", "restricted")
VERSIONS = ("v1.0", "v1.8", "v1.18", "v1.19", "v1.24", "v1.25", "v1.28", "v1.31", "v1.34", "v1.35", "v1.99", "latest")
PREFIX = "pod-security.kubernetes.io/"
LEAST = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What every version of the restricted level allows."""
CONTAINERS: list[Json] = [
    {"securityContext": {}},
    {"securityContext": {"allowPrivilegeEscalation": True}},
    {"securityContext": {"privileged": True, "allowPrivilegeEscalation": True}},
    {"securityContext": {"capabilities": {"add": ["NET_RAW", "SYS_ADMIN", "CHOWN"]}}},
    {"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}},
    {"securityContext": {"capabilities": {"drop": ["KILL"], "add": ["KILL"]}}},
    {"securityContext": {"runAsNonRoot": False, "runAsUser": 0}},
    {"securityContext": {"runAsUser": 0}},
    {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    {"securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a"}}},
    {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    {"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r"}}},
    {"securityContext": {"seLinuxOptions": {"type": "container_engine_t", "level": "s0"}}},
    {"securityContext": {"windowsOptions": {"hostProcess": False}}},
    {"ports": [{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81, "hostPort": 100}]},
    {
        "livenessProbe": {"httpGet": {"host": "b.x", "port": 1}},
        "readinessProbe": {"tcpSocket": {"host": "a", "port": 1}},
    },
    {"lifecycle": {"preStop": {"httpGet": {"host": "127.0.0.1", "port": 1}}}},
    {"lifecycle": {"postStart": {"httpGet": {"port": 1}}}},
]
PODS: list[Json] = [
    {"securityContext": {}},
    {"hostNetwork": True, "hostPID": True, "hostIPC": True},
    {"hostPID": True},
    {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    {"volumes": [{"name": "a", "nfs": {"server": "s", "path": "/"}}, {"name": "b", "hostPath": {"path": "/"}}]},
    {
        "volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "csi": {"driver": "x.y"}},
            {"name": "c", "secret": {"secretName": "s"}},
        ]
    },
    {"securityContext": {"runAsNonRoot": True}},
    {"securityContext": {"runAsNonRoot": False, "runAsUser": 0}},
    {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, "runAsNonRoot": True}},
    {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    {"securityContext": {"seLinuxOptions": {"type": "a_t"}}},
    {
        "securityContext": {
            "sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "1"}]
        }
    },
    {"securityContext": {"sysctls": [{"name": "net.ipv4.tcp_fin_timeout", "value": "1"}]}},
    {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}]}},
    {"os": {"name": "windows"}},
    {
        "hostUsers": False,
        "containers": [{"name": "c", "image": "i", "securityContext": {"procMount": "Unmasked", "runAsUser": 0}}],
    },
    {"os": {"name": "windows"}, "hostNetwork": True, "securityContext": {"windowsOptions": {"hostProcess": True}}},
]
WRONG_LABELS: list[Json] = [
    {"enforce": "strict"},
    {"enforce": "baseline", "enforce-version": "1.30"},
    {"enforce": "", "audit": "x", "warn": "y", "warn-version": "", "audit-version": "v2.0"},
]


def pod(name: str, **spec: Any) -> Json:
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def pods() -> Iterator[Json]:
    for at, fields in enumerate(CONTAINERS):
        one = {"name": "c", "image": "i"}
        more = {**fields, "securityContext": {**LEAST, **fields.get("securityContext", {})}}
        yield pod(f"bare-{at}", containers=[{**one, **fields}])
        yield pod(f"least-{at}", containers=[{**one, **more}], initContainers=[{**one, "name": "i", **fields}])
        yield pod(
            f"two-{at}",
            securityContext={"runAsNonRoot": True},
            containers=[{**one, **more}, {**one, "name": "d", **more}],
        )
    for at, fields in enumerate(PODS):
        yield pod(f"pod-{at}", **fields)


class Said:
    """Answers with their warnings. Close it."""

    def __init__(self, cluster: Cluster) -> None:
        self._token = cluster.api.token
        tls = ssl._create_unverified_context()
        self._connection = http.client.HTTPSConnection(urlsplit(cluster.url).netloc, timeout=60.0, context=tls)

    def __enter__(self) -> "Said":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def __call__(self, method: str, path: str, body: Json | None = None) -> list[Any]:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        found = json.loads(answer.read())
        warnings = answer.headers.get_all("Warning") or []
        if answer.status < http.client.BAD_REQUEST:
            return [answer.status, warnings]
        return [answer.status, warnings, found["reason"], found["message"], found.get("details")]


def namespace(name: str, labels: Json) -> Json:
    labels = {PREFIX + key: value for key, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def security(ask: Said) -> dict[str, Any]:
    said = dict[str, Any]()
    for at, labels in enumerate(WRONG_LABELS):
        said[f"labels {at}"] = ask("POST", "/api/v1/namespaces", namespace(f"wrong-{at}", labels))
    for level in LEVELS:
        for version in VERSIONS:
            name = f"{level}-{version.replace('.', '-')}"
            said[name] = ask("POST", "/api/v1/namespaces", namespace(name, {"warn": level, "warn-version": version}))
            for one in pods():
                path = f"/api/v1/namespaces/{name}/pods?dryRun=All"
                said[f"{name} {one['metadata']['name']}"] = ask("POST", path, one)
        space, path = f"enforcing-{level}", f"/api/v1/namespaces/enforcing-{level}/pods"
        said[space] = ask("POST", "/api/v1/namespaces", namespace(space, {"enforce": level}))
        for one in pods():
            said[f"{space} {one['metadata']['name']}"] = ask("POST", f"{path}?dryRun=All", one)
            template = {"metadata": {"labels": {"a": "b"}}, "spec": one["spec"]}
            spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
            where = f"/apis/apps/v1/namespaces/{space}/deployments?dryRun=All"
            said[f"{space} deployment {one['metadata']['name']}"] = ask("POST", where, owner)
        nameless = pod("")
        nameless["metadata"] = {"generateName": "g-"}
        nameless["spec"]["hostPID"] = True
        refused = ask("POST", path, nameless)
        said[f"{space} nameless"] = refused[:2]
        said[f"{space} invalid"] = ask("POST", path, pod("x", hostPID=True, restartPolicy="Sometimes"))
    said["rising"] = rising(ask)
    return said


def rising(ask: Said) -> list[Any]:
    """Levels that rise over pods that are there, and an image that changes."""
    said = [ask("POST", "/api/v1/namespaces", namespace("rising", {}))]
    path = "/api/v1/namespaces/rising"
    for name in "zab":
        said.append(ask("POST", f"{path}/pods", pod(name, hostPID=True)))
    said.append(
        ask("POST", f"{path}/pods", pod("c", containers=[{"name": "c", "image": "i", "securityContext": LEAST}]))
    )
    for level, version in (
        ("baseline", "v1.30"),
        ("restricted", "v1.30"),
        ("baseline", "v1.30"),
        ("baseline", "latest"),
    ):
        labels = {f"{PREFIX}enforce": level, f"{PREFIX}enforce-version": version}
        said.append(ask("PATCH", path, {"metadata": {"labels": labels}}))
    said.append(ask("PATCH", f"{path}/pods/a", {"metadata": {"labels": {"x": "y"}}}))
    said.append(ask("PATCH", f"{path}/pods/a", {"spec": {"containers": [{"name": "c", "image": "j"}]}}))
    return said


def test_pods_are_held_to_the_standards_as_in_kube_apiserver(cluster: Cluster, tmp_path: Path) -> None:
    with Said(cluster) as ask:
        theirs = security(ask)
    assert len({json.dumps(one) for one in theirs.values()}) > 100
    with OwnCluster(tmp_path / "own") as own, Said(own) as ask:
        ours = security(ask)
    assert [(name, ours[name], theirs[name]) for name in ours if ours[name] != theirs[name]] == []


CLASSES: list[Json] = [
    {"handler": "plain"},
    {"handler": "heavy", "overhead": {"podFixed": {"cpu": "100m", "memory": "32Mi"}}},
    {"handler": "empty", "overhead": {}},
    {
        "handler": "placed",
        "scheduling": {
            "nodeSelector": {"runtime": "a", "zone": "z"},
            "tolerations": [
                {"key": "a", "operator": "Exists"},
                {"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute", "tolerationSeconds": 30},
            ],
        },
    },
]
WITH_CLASS: list[Json] = [
    *({"runtimeClassName": one["handler"]} for one in CLASSES),
    {"runtimeClassName": "missing"},
    {"overhead": {"cpu": "1"}},
    {"runtimeClassName": "plain", "overhead": {"cpu": "1"}},
    {"runtimeClassName": "heavy", "overhead": {"cpu": "0.1", "memory": "32Mi"}},
    {"runtimeClassName": "heavy", "overhead": {"cpu": "100m"}},
    {"runtimeClassName": "empty", "overhead": {"cpu": "100m"}},
    {"runtimeClassName": "placed", "nodeSelector": {"runtime": "a", "x": "y"}},
    {"runtimeClassName": "placed", "nodeSelector": {"runtime": "b"}},
    {
        "runtimeClassName": "placed",
        "tolerations": [
            {"key": "a", "operator": "Equal", "value": "x", "effect": "NoSchedule"},
            {"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute"},
            {"key": "b", "operator": "Equal", "value": "c", "effect": "NoExecute", "tolerationSeconds": 10},
        ],
    },
    {"runtimeClassName": "placed", "tolerations": [{"operator": "Exists"}]},
]


def runtime_classes(cluster: Cluster, ask: Said) -> list[Any]:
    for one in CLASSES:
        body = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": one["handler"]}, **one}
        assert ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", body)[0] == http.client.CREATED
    said, path = list[Any](), f"/api/v1/namespaces/{cluster.namespace}/pods"
    for at, fields in enumerate(WITH_CLASS):
        answer = ask("POST", path, pod(f"p-{at}", **fields))
        said.append(answer)
        if answer[0] == http.client.CREATED:
            spec = cluster.api.get(f"{path}/p-{at}")["spec"]
            said.append([spec.get(name) for name in ("overhead", "nodeSelector", "tolerations")])
    for one in CLASSES:
        cluster.api.delete(f"/apis/node.k8s.io/v1/runtimeclasses/{one['handler']}")
    return said


def test_pods_get_what_their_runtime_class_says_as_in_kube_apiserver(cluster: Cluster, tmp_path: Path) -> None:
    with Said(cluster) as ask:
        theirs = runtime_classes(cluster, ask)
    with OwnCluster(tmp_path / "own") as own, Said(own) as ask:
        own.namespace = own.new_namespace("classes")
        ours = runtime_classes(own, ask)
    assert ours == theirs
