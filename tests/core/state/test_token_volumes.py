"""Volumes that nobody reads do not make pods different."""

from __future__ import annotations

import msgspec

from situate.core.model.pod import Pod
from situate.core.state.cluster import Cluster


def _pod(name: str, *volumes: dict[str, object]) -> Pod:
    fields = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "c"}], "volumes": list(volumes)},
    }
    return msgspec.convert(fields, Pod)


def test_pods_that_differ_in_the_random_name_of_their_token_volume_are_one_class() -> None:
    cluster = Cluster()
    first = cluster.class_of(_pod("a", {"name": "kube-api-access-x7k2p", "projected": {"sources": []}}))
    second = cluster.class_of(_pod("b", {"name": "kube-api-access-9qwlm", "projected": {"sources": []}}))
    assert first is second
    assert first.spec.volumes == ()


def test_pods_that_use_different_claims_are_not() -> None:
    cluster = Cluster()
    first = cluster.class_of(_pod("a", {"name": "v", "persistentVolumeClaim": {"claimName": "one"}}))
    second = cluster.class_of(_pod("b", {"name": "v", "persistentVolumeClaim": {"claimName": "two"}}))
    assert first is not second
