"""What kube-apiserver answers to bad requests is what tests/server/faults says it does.

situate is compared with that in tests/server/faults/test_bad_requests.py, where every difference has its reason.
"""

import os
import ssl

from kubernetes.cluster import Cluster
from server.faults.corpus.everything import FACTS, everything, facts, written
from server.faults.corpus.objects import NAMESPACE, PRESENT
from server.faults.wire import NoAnswerError, Wire

# Each of these keeps kube-apiserver busy for seconds, some for ever; and what comes after has to wait.
HANG = frozenset(name for name, code in facts().items() if code == 0)
RECORD = os.environ.get("BAD_REQUESTS") == "record"
EVERY = 1 if RECORD else 7
"""Of the rest, how many are asked about each time: all of them take minutes."""


def test_kube_apiserver_answers_bad_requests_as_recorded(cluster: Cluster) -> None:
    cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}") if NAMESPACE in _namespaces(cluster) else None
    port = int(cluster.url.rpartition(":")[2])
    trusted = ssl.create_default_context(cafile=str(cluster.certificate))
    found: dict[str, int] = {}
    with Wire(port, trusted, [f"Authorization: Bearer {cluster.tokens['admin']}"]) as wire:
        for path, obj in PRESENT:
            assert wire.send("POST", path, obj).code == 201
        for case in everything()[::EVERY]:
            if case.name not in HANG or RECORD:
                try:
                    found[case.name] = wire.ask(case.method, case.path, case.body, case.lines()).code
                except NoAnswerError:
                    found[case.name] = 0
    if RECORD:
        FACTS.write_text(written(found))
    assert {name: code for name, code in found.items() if facts().get(name) != code} == {}


def _namespaces(cluster: Cluster) -> set[str]:
    return {one["metadata"]["name"] for one in cluster.api.items("/api/v1/namespaces")}
