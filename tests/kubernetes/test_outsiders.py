"""What a scheduler waits for: controllers that bind and make volumes, and extenders; slow ones, ones that never come.

The volume controllers are played here, by the API, since the cluster has none.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes.cluster import Cluster
from kubernetes.drills import FAST, quiet_logs
from kubernetes.history import History
from kubernetes.objects import Json, pod
from kubernetes.parts import wait_until

SELECTED = "volume.kubernetes.io/selected-node"
BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
COMPLETED = "pv.kubernetes.io/bind-completed"
VOLUMES = "/api/v1/persistentvolumes"
TIMEOUT_S = 3
HANG_S = 5


# ── volumes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def storage_class(name: str, provisioner: str) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def volume(name: str, node: str, storage: str = "local", **spec: object) -> Json:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            **spec,
        },
    }


def claim(name: str, storage: str = "local") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def pod_with(name: str, claim_name: str) -> Json:
    return pod(name, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}])


def claim_path(cluster: Cluster, name: str) -> str:
    return f"/api/v1/namespaces/{cluster.namespace}/persistentvolumeclaims/{name}"


def named_by(cluster: Cluster, name: str) -> str:
    """The claim that a volume names; empty for none."""
    held = cluster.api.get(f"{VOLUMES}/{name}")["spec"].get("claimRef", {})
    return str(held.get("name", "")) if held.get("uid") else ""


def local_disk(cluster: Cluster, node: str) -> None:
    """A volume `disk` on a node, which the volume controller says can be had, and a claim `data` for it."""
    cluster.create(storage_class("local", "kubernetes.io/no-provisioner"), volume("disk", node), claim("data"))
    cluster.api.patch(f"{VOLUMES}/disk/status", {"status": {"phase": "Available"}})


def finish(cluster: Cluster, claim_name: str, volume_name: str) -> None:
    """What the volume controller does with a volume that names a claim."""
    cluster.api.patch(
        claim_path(cluster, claim_name),
        {
            "metadata": {"annotations": {COMPLETED: "yes", BY_CONTROLLER: "yes"}},
            "spec": {"volumeName": volume_name},
        },
    )
    cluster.api.patch(f"{claim_path(cluster, claim_name)}/status", {"status": {"phase": "Bound"}})
    cluster.api.patch(f"{VOLUMES}/{volume_name}/status", {"status": {"phase": "Bound"}})


def notes(cluster: Cluster, reason: str) -> str:
    found = cluster.api.items(f"/apis/events.k8s.io/v1/namespaces/{cluster.namespace}/events")
    return "\n".join(event["note"] for event in found if event["reason"] == reason)


def impatient() -> Json:
    """A configuration that waits for volumes for a short time only."""
    arguments = {
        "kind": "VolumeBindingArgs",
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "bindTimeoutSeconds": TIMEOUT_S,
    }
    named = [{"name": "VolumeBinding", "args": arguments}]
    return {**FAST, "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": named}]}


def test_a_volume_that_is_there_is_given_to_the_claim_of_a_pod_that_goes_where_it_is(cluster: Cluster) -> None:
    cluster.hollow_nodes(3)
    local_disk(cluster, "node-1")
    scheduler = cluster.situate(FAST)
    cluster.create(pod_with("db", "data"), pod("web"))
    wait_until(lambda: named_by(cluster, "disk") == "data", "the volume to name the claim")
    held = cluster.api.get(f"{VOLUMES}/disk")
    assert held["metadata"]["annotations"] == {BY_CONTROLLER: "yes"}
    cluster.wait_for_bound("web")  # nobody else waits for the volume
    assert "db" not in cluster.bound()
    finish(cluster, "data", "disk")
    assert cluster.wait_for_bound("db")["db"] == "node-1"
    quiet_logs(scheduler)


def test_a_volume_is_made_for_the_node_that_was_chosen(cluster: Cluster) -> None:
    cluster.hollow_nodes(3)
    cluster.create(storage_class("made", "example.com/csi"), claim("data", "made"))
    scheduler = cluster.situate(FAST)
    cluster.create(pod_with("db", "data"))

    def selected() -> str:
        return str(cluster.api.get(claim_path(cluster, "data"))["metadata"].get("annotations", {}).get(SELECTED, ""))

    wait_until(selected, "a node to be selected")
    node = selected()
    assert node.startswith("node-")
    assert cluster.bound() == {}
    uid = cluster.api.get(claim_path(cluster, "data"))["metadata"]["uid"]
    held = {"kind": "PersistentVolumeClaim", "namespace": cluster.namespace, "name": "data", "uid": uid}
    cluster.create(volume("fresh", node, "made", claimRef=held))
    finish(cluster, "data", "fresh")
    assert cluster.wait_for_bound("db")["db"] == node
    quiet_logs(scheduler)


def test_a_volume_that_is_never_bound_is_let_go_and_the_pod_is_tried_again(cluster: Cluster) -> None:
    cluster.hollow_nodes(2)
    local_disk(cluster, "node-1")
    scheduler = cluster.situate(impatient())
    cluster.create(pod_with("db", "data"))
    wait_until(lambda: named_by(cluster, "disk") == "data", "the volume to name the claim")
    wait_until(lambda: not named_by(cluster, "disk"), "the volume to be let go")
    wait_until(
        lambda: "binding volumes: context deadline exceeded" in notes(cluster, "FailedScheduling"),
        "the event that says so",
    )
    assert cluster.bound() == {}
    cluster.create(pod("web"))
    cluster.wait_for_bound("web")

    wait_until(lambda: named_by(cluster, "disk") == "data", "the next attempt", 60)
    finish(cluster, "data", "disk")
    assert cluster.wait_for_bound("db", within_s=60)["db"] == "node-1"
    quiet_logs(scheduler)


def test_a_provisioner_that_gives_up_on_a_node_has_the_pod_decided_anew(cluster: Cluster) -> None:
    """It takes the annotation away; then another node is tried, here the only one that is left."""
    cluster.hollow_nodes(2)
    cluster.create(storage_class("made", "example.com/csi"), claim("data", "made"))
    scheduler = cluster.situate(FAST)
    cluster.create(pod_with("db", "data"))
    path = claim_path(cluster, "data")

    def selected() -> str:
        return str(cluster.api.get(path)["metadata"].get("annotations", {}).get(SELECTED, ""))

    wait_until(selected, "a node to be selected")
    refused = selected()
    cluster.create(pod("web"))
    cluster.wait_for_bound("web")  # by now it has most likely heard of its own annotation; else it looks 10 s later
    cluster.api.patch(f"/api/v1/nodes/{refused}", {"spec": {"unschedulable": True}})
    cluster.api.patch(path, {"metadata": {"annotations": {SELECTED: None}}})
    wait_until(lambda: selected() not in ("", refused), "another node to be selected", 60)
    assert list(cluster.bound()) == ["web"]
    quiet_logs(scheduler)


# ── extenders ───────────────────────────────────────────────────────────────────────────────────────────────────────

Say = Callable[[str, Json], Any]


@contextmanager
def extender(say: Say) -> Iterator[str]:
    """An HTTP service that answers with what `say` makes of the verb and the request; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(say(self.path.rpartition("/")[2], asked)).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # whoever asked has gone

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="extender", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def with_extender(url: str, **fields: object) -> Json:
    known = {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True, "weight": 1, **fields}
    return {**FAST, "extenders": [known]}


def test_an_extender_filters_and_scores(cluster: Cluster) -> None:
    cluster.hollow_nodes(5)
    asked: list[str] = []

    def say(verb: str, told: Json) -> Any:
        asked.append(verb)
        names = told["NodeNames"]
        if verb == "filter":
            return {"NodeNames": [name for name in names if name != "node-3"], "FailedNodes": {"node-3": "not today"}}
        return [{"Host": name, "Score": 10 if name == "node-2" else 0} for name in names]

    with extender(say) as url:
        scheduler = cluster.situate(with_extender(url, prioritizeVerb="prioritize", weight=100))
        cluster.create(*(pod(f"web-{number}") for number in range(5)))
        bound = cluster.wait_for_bound(*(f"web-{number}" for number in range(5)))
    assert set(bound.values()) == {"node-2"}
    assert {"filter", "prioritize"} <= set(asked)
    quiet_logs(scheduler)


def test_an_extender_that_hangs_holds_up_only_whom_it_is_asked_about(cluster: Cluster) -> None:
    cluster.hollow_nodes(5, extended={"example.com/slow": "10"})
    over, begun = threading.Event(), threading.Event()

    def say(verb: str, told: Json) -> Any:
        begun.set()
        over.wait(60)
        return {"NodeNames": told["NodeNames"]}

    with History(cluster) as history, extender(say) as url:
        managed = [{"name": "example.com/slow", "ignoredByScheduler": False}]
        scheduler = cluster.situate(with_extender(url, managedResources=managed, httpTimeout=f"{HANG_S}s"))
        slow = pod("slow")
        for kind in ("requests", "limits"):
            slow["spec"]["containers"][0]["resources"].setdefault(kind, {})["example.com/slow"] = "1"
        cluster.create(slow)
        assert begun.wait(30)
        since = time.monotonic()
        cluster.create(*(pod(f"web-{number}") for number in range(100)))
        cluster.wait_for_bound(*(f"web-{number}" for number in range(100)))
        last = max(one.at for one in history.binds())
        assert last - since < HANG_S, "they were held up"
        assert "slow" not in cluster.bound()
        wait_until(lambda: notes(cluster, "FailedScheduling"), "it to be given up for now", 60)
        over.set()
        cluster.wait_for_bound("slow", within_s=60)
        assert history.problems() == []
    quiet_logs(scheduler)
