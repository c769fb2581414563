"""An API that kube-apiserver serves, aggregated by our API server: its users, rights, discovery and objects arrive."""

import base64
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubernetes.api import RefusedError
from kubernetes.cluster import Cluster
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import missing, wait_until
from situate.agent.host import own_address
from situate.server.aggregation.connector import CLIENT_NAME

ABSENT = missing()
pytestmark = pytest.mark.skipif(ABSENT is not None, reason=f"aggregated APIs: {ABSENT}")
GROUP = "wardle.example.com"
API = f"/apis/{GROUP}/v1"
SERVICE = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"
FLUNDERS = f"{API}/namespaces/default/flunders"
WITHIN_S = 30.0
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"flunders.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Flunder", "plural": "flunders", "singular": "flunder", "shortNames": ["fl"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "description": "How large it is."}},
                            }
                        },
                    }
                },
                "subresources": {"status": {}},
            }
        ],
    },
}


@dataclass
class Two:
    own: OwnCluster
    other: Cluster


def registered(port: int, **spec: Any) -> list[dict[str, Any]]:
    """A Service with the other server as its endpoint, and the APIService."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "other", "namespace": "default"},
            "spec": {"ports": [{"name": "https", "port": 443}], "clusterIP": "None"},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": "other",
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": "other"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [own_address()], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "port": port}],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"v1.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": "v1",
                "groupPriorityMinimum": 1_000,
                "versionPriority": 10,
                "service": {"namespace": "default", "name": "other"},
                "insecureSkipTLSVerify": True,
                **spec,
            },
        },
    ]


def available(own: OwnCluster) -> tuple[str, str]:
    for one in own.api.get(SERVICE).get("status", {}).get("conditions", ()):
        if one["type"] == "Available":
            return one["status"], one["reason"]
    return "", ""


def is_described(other: Cluster) -> bool:
    """kube-apiserver publishes it some time after it serves the kind."""
    return API.removeprefix("/") in other.api.get("/openapi/v3")["paths"]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("aggregation")
    with OwnCluster(folder / "own", "--store", "memory") as own:
        flags = [
            "--bind-address=0.0.0.0",
            f"--requestheader-client-ca-file={own.certificate}",
            f"--requestheader-allowed-names={CLIENT_NAME}",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]
        with Cluster(folder / "other", apiserver_flags=flags) as other:
            other.api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
            port = urlsplit(other.url).port
            assert port is not None
            own.api.create(registered(port), "default")
            wait_until(lambda: available(own) == ("True", "Passed"), "the API to be available", WITHIN_S)
            wait_until(lambda: is_described(other), "the other server to publish its OpenAPI", WITHIN_S)
            yield Two(own, other)


def kubectl(two: Two, *words: str, given: Any = None) -> str:
    return two.own.kubectl(*words, stdin=None if given is None else json.dumps(given))


def flunder(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Flunder",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def test_kubectl_works_with_an_aggregated_api(two: Two) -> None:
    assert "flunders" in kubectl(two, "api-resources", f"--api-group={GROUP}")
    assert "How large it is." in kubectl(two, "explain", "flunder.spec.size")
    kubectl(two, "create", "-f", "-", given=flunder("a", size=1))
    kubectl(two, "apply", "--server-side", "-f", "-", given=flunder("b", size=2))
    kubectl(two, "patch", "fl", "b", "--type=merge", '-p={"spec":{"size":3}}')
    assert kubectl(two, "get", "fl", "-o=name").split() == [f"flunder.{GROUP}/a", f"flunder.{GROUP}/b"]
    assert two.other.api.get(f"{FLUNDERS}/b")["spec"] == {"size": 3}
    kubectl(two, "delete", "fl", "a", "b")
    assert two.other.api.items(FLUNDERS) == []


def test_a_watch_is_passed_on(two: Two) -> None:
    since = two.own.api.get(FLUNDERS)["metadata"]["resourceVersion"]
    two.other.api.request("POST", FLUNDERS, flunder("seen"))
    two.other.api.request("DELETE", f"{FLUNDERS}/seen")
    events = two.own.api.watch(FLUNDERS, since)
    assert [(one["type"], one["object"]["metadata"]["name"]) for one in events] == [
        ("ADDED", "seen"),
        ("DELETED", "seen"),
    ]


def test_the_other_server_sees_the_user_and_decides_for_itself(two: Two) -> None:
    with pytest.raises(subprocess.CalledProcessError) as ours:
        kubectl(two, "get", "fl", "--as=alice")
    rules = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "f"},
        "rules": rules,
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "f"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "f"},
        "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    two.own.api.create((role, binding), "default")
    with pytest.raises(subprocess.CalledProcessError) as theirs:
        kubectl(two, "get", "fl", "--as=alice")
    refused = 'flunders.wardle.example.com is forbidden: User "alice" cannot list resource "flunders"'
    assert refused in ours.value.stderr
    assert refused in theirs.value.stderr
    assert two.other.api.get(f"{API}/flunders")["items"] == []
    two.other.api.create((role, binding), "default")
    assert kubectl(two, "get", "fl", "--as=alice") == ""


def test_nobody_else_gets_a_certificate_that_the_other_server_believes(two: Two, tmp_path: Path) -> None:
    key, request = tmp_path / "key", tmp_path / "csr"
    subprocess.run(
        [
            "openssl",
            "req",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            key,
            "-subj",
            f"/CN={CLIENT_NAME}",
            "-out",
            request,
        ],
        check=True,
        capture_output=True,
    )
    spec = {
        "request": base64.b64encode(request.read_bytes()).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    two.own.api.request(
        "POST",
        path,
        {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": "x"},
            "spec": spec,
        },
    )
    kubectl(two, "certificate", "approve", "x")
    failed = wait_until_failed(two, f"{path}/x")
    assert CLIENT_NAME in failed


def wait_until_failed(two: Two, path: str) -> str:
    def messages() -> list[str]:
        conditions = two.own.api.get(path)["status"].get("conditions", ())
        return [one["message"] for one in conditions if one["type"] == "Failed"]

    wait_until(messages, "the request to fail", WITHIN_S)
    return messages()[0]


def test_one_that_is_gone_is_unavailable_and_everything_else_goes_on(two: Two) -> None:
    """The last one: the other server does not come back."""
    two.other.apiserver.kill()
    wait_until(lambda: available(two.own) == ("False", "FailedDiscoveryCheck"), "the API to be missed", WITHIN_S)
    with pytest.raises(RefusedError) as refused:
        two.own.api.get(FLUNDERS)
    assert refused.value.status == 503
    assert two.own.api.items("/api/v1/namespaces")
    groups = {one["name"] for one in two.own.api.get("/apis")["groups"]}
    assert GROUP in groups
    two.own.api.request("DELETE", SERVICE)
    assert GROUP not in {one["name"] for one in two.own.api.get("/apis")["groups"]}
