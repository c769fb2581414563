"""What has no table is refused to clients that accept nothing else, by kube-apiserver and by situate."""

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from kubernetes import parts
from kubernetes.cluster import Cluster
from kubernetes.own_cluster import OwnCluster

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}},
}


@pytest.mark.skipif(parts.missing() is not None, reason="needs the real parts")
@pytest.mark.parametrize("kind", [Cluster, OwnCluster])
def test_reviews_and_discovery_have_no_table(kind: type[Cluster], tmp_path: Path) -> None:
    with kind(tmp_path) as cluster:
        for path in ("/api", "/apis", "/apis/apps", "/apis/apps/v1", REVIEWS):
            assert answer(cluster, path, TABLE) == 406, path
            assert answer(cluster, path, f"{TABLE},application/json") in (200, 201), path
        assert answer(cluster, "/version", TABLE) == 200


def answer(cluster: Cluster, path: str, accept: str) -> int:
    tls = ssl.create_default_context(cafile=str(cluster.certificate))
    body = json.dumps(REVIEW).encode() if path == REVIEWS else None
    headers = {"Authorization": f"Bearer {cluster.tokens['admin']}", "Accept": accept}
    request = urllib.request.Request(cluster.url + path, body, headers | {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10, context=tls) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
