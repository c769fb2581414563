"""A latency table on a real cluster: what is in the file now holds, without a restart."""

from kubernetes.cluster import Cluster
from kubernetes.drills import WITHIN_S
from kubernetes.objects import Json, node, pod
from kubernetes.parts import wait_until

ZONE = "topology.kubernetes.io/zone"
WEB = {"situate.dev/latency-to": "eu", "situate.dev/latency-limit-ms": "20"}


def config(table: str) -> Json:
    return {
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "Latency", "weight": 10}]}},
                "pluginConfig": [{"name": "Latency", "args": {"tableFile": table}}],
            }
        ]
    }


def message(cluster: Cluster, name: str) -> str:
    found = cluster.pod(name) or {"status": {}}
    conditions = found["status"].get("conditions", ())
    return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")


def test_a_pod_that_was_too_far_is_bound_when_the_table_says_so(cluster: Cluster) -> None:
    table = cluster.home / "latencies.yaml"
    table.write_text("places: {eu: {zones: {a: 50, b: 60}}}\n")
    cluster.create(node("near", labels={ZONE: "a"}), node("far", labels={ZONE: "b"}))
    cluster.situate(config(table.name))
    cluster.create(pod("web", annotations=WEB))
    expected = "0/2 nodes are available: 2 node(s) exceeded the pod's latency limit."
    wait_until(lambda: message(cluster, "web").startswith(expected), "it to be refused", WITHIN_S)
    table.write_text("places: {eu: {zones: {a: 5, b: 60}}}\n")
    assert cluster.wait_for_bound("web", within_s=WITHIN_S) == {"web": "near"}
