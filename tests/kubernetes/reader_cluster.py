"""The reader's own cluster, by the kubeconfig that it is given: nothing but kubectl, a namespace, and what is there.

The journeys' pods have priorities below zero and a node's free room, so they never take the place of anybody else's.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kubernetes.api import Json, RefusedError, path_of
from kubernetes.cluster import Cluster
from kubernetes.parts import folder

CALL_S = 60.0
ACCOUNT_S = 20.0
"""How long a new namespace may be without its ServiceAccount."""
ENDED = ("Succeeded", "Failed")
PUBLISHED = "/api/v1/namespaces/kube-system/configmaps/situate-schedulers"
OWN_SCHEDULER = "kube-system.situate-scheduler.json"
DEPLOYED = "situate"
"""The schedulerName of `make deploy-scheduler`."""
GROUPS = "scheduling.k8s.io"
GROUP_VERSIONS = ("v1beta1", "v1alpha2")


class UnsuitableError(Exception):
    """The cluster cannot have this journey, and why."""


class KubectlApi:
    """The requests of Api that journeys make, by kubectl: it knows every way to log in."""

    def __init__(self, kubeconfig: str) -> None:
        self.kubeconfig = kubeconfig
        found = shutil.which("kubectl") or str(folder() / "kubectl")
        if not os.access(found, os.X_OK):
            raise UnsuitableError("there is no kubectl on the path: install one, or have `make kubernetes` build it")
        self.program = found

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            [self.program, *arguments],
            input=stdin,
            env=os.environ | {"KUBECONFIG": self.kubeconfig},
            capture_output=True,
            text=True,
            check=False,
            timeout=CALL_S,
        )
        if done.returncode:
            said = done.stderr.strip()
            reason = next((one for one in ("NotFound", "AlreadyExists", "Forbidden") if f"({one})" in said), "")
            raise RefusedError(404 if reason == "NotFound" else 0, reason, said)
        return done.stdout

    def get(self, path: str) -> Json:
        found: Json = json.loads(self.run("get", "--raw", path))
        return found

    def items(self, path: str) -> list[Json]:
        return list(self.get(path)["items"])

    def post(self, path: str, body: Json) -> Json:
        made: Json = json.loads(self.run("create", "--raw", path, "-f", "-", stdin=json.dumps(body)))
        return made

    def delete(self, path: str) -> None:
        self.run("delete", "--raw", path)

    def create(self, items: Iterable[Json], namespace: str) -> list[Json]:
        return [self.post(path_of(item, namespace), item) for item in items]

    def close(self) -> None: ...


class ReaderCluster(Cluster):
    """`with ReaderCluster(home, kubeconfig, namespace) as cluster`: the namespace is there meanwhile."""

    def __init__(self, home: Path, kubeconfig: str, namespace: str, scheduler: str = "") -> None:
        super().__init__(home)
        self.kubeconfig = Path(kubeconfig)
        self.namespace = namespace
        self.scheduler_name = scheduler
        self._reader = KubectlApi(kubeconfig)
        self._classes: list[str] = []

    @property
    def api(self) -> Any:
        return self._reader

    def __enter__(self) -> "ReaderCluster":
        view = self._reader.run("config", "view", "--minify", "--output", "jsonpath={.clusters[0].cluster.server}")
        self.url = view.strip()
        self.scheduler_name = self.scheduler_name or self._known_scheduler()
        self.new_namespace(self.namespace)
        return self

    def __exit__(self, *_: object) -> None:
        for path in (f"/api/v1/namespaces/{self.namespace}/pods", *self._group_paths()):
            for item in self._items_or_none(path):
                self._forget(f"{path}/{item['metadata']['name']}")
        self._forget(f"/api/v1/namespaces/{self.namespace}")
        for name in self._classes:
            self._forget(f"/apis/{GROUPS}/v1/priorityclasses/{name}")
        self.stop_beside()

    def _forget(self, path: str) -> None:
        try:
            self._reader.delete(path)
        except RefusedError as refused:
            if refused.reason != "NotFound":
                print(f"          left behind: {path}: {refused}")

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._reader.run("--namespace", self.namespace, *arguments, stdin=stdin)

    def create(self, *items: Json) -> list[Json]:
        """With a new namespace's patience: its ServiceAccount may not be there yet."""
        self._classes += [item["metadata"]["name"] for item in items if item["kind"] == "PriorityClass"]
        until = time.monotonic() + ACCOUNT_S
        made: list[Json] = []
        for item in items:
            while True:
                try:
                    made += self._reader.create([item], self.namespace)
                    break
                except RefusedError as refused:
                    if "serviceaccount" not in str(refused) or time.monotonic() > until:
                        raise
                    time.sleep(0.2)
        return made

    # -- what is there ----------------------------------------------------------------------------------------------

    def _known_scheduler(self) -> str:
        """The scheduler of situate that serves this cluster."""
        try:
            published = self._reader.get(PUBLISHED).get("data") or {}
        except RefusedError:
            published = {}
        names = {key: [one["schedulerName"] for one in json.loads(text)["profiles"]] for key, text in published.items()}
        served = [name for found in names.values() for name in found]
        if DEPLOYED in served:
            return DEPLOYED
        if OWN_SCHEDULER in names:
            return str(names[OWN_SCHEDULER][0])
        if served:
            return str(served[0])
        raise UnsuitableError(
            f"no scheduler of situate is known at {self.url}: `make deploy-scheduler` installs one, "
            "`situate scheduler` runs one here, or SCHEDULER=name names one that publishes nothing"
        )

    def preempts(self) -> bool:
        """Whether the scheduler's profile evicts pods; True if that is not known."""
        try:
            published = self._reader.get(PUBLISHED).get("data") or {}
        except RefusedError:
            return True
        profiles = [one for text in published.values() for one in json.loads(text)["profiles"]]
        own = [one["plugins"] for one in profiles if one["schedulerName"] == self.scheduler_name]
        return not own or "DefaultPreemption" in json.dumps([points.get("multiPoint") for points in own])

    def groups_api(self) -> str:
        """The version of PodGroup that the server serves."""
        for version in GROUP_VERSIONS:
            try:
                found = self._reader.get(f"/apis/{GROUPS}/{version}")
            except RefusedError:
                continue
            if any(one["name"] == "podgroups" for one in found["resources"]):
                return f"{GROUPS}/{version}"
        raise UnsuitableError(f"{self.url} serves no PodGroups (feature gate GenericWorkload), so it has no gangs")

    def _group_paths(self) -> list[str]:
        try:
            return [f"/apis/{self.groups_api()}/namespaces/{self.namespace}/podgroups"]
        except UnsuitableError:
            return []

    def roomiest_node(self) -> tuple[str, int]:
        """The ready node with most CPU free, and how much that is, in thousandths."""
        free = {node["metadata"]["name"]: cpu_of(node) for node in self._reader.items("/api/v1/nodes") if usable(node)}
        for pod in self._reader.items("/api/v1/pods"):
            node = pod["spec"].get("nodeName")
            if node in free and pod["status"].get("phase") not in ENDED:
                free[node] -= requested(pod)
        if not free:
            raise UnsuitableError(f"{self.url} has no node that is ready and takes every pod")
        name = max(free, key=lambda one: (free[one], one))
        return name, free[name]


def usable(node: Json) -> bool:
    ready = any((one["type"], one["status"]) == ("Ready", "True") for one in node["status"].get("conditions", ()))
    tainted = any(one["effect"] != "PreferNoSchedule" for one in node["spec"].get("taints", ()))
    return ready and not tainted and not node["spec"].get("unschedulable")


def cpu_of(node: Json) -> int:
    return milli(node["status"].get("allocatable", {}).get("cpu", "0"))


def requested(pod: Json) -> int:
    """Of the containers together, or of the largest init container; overhead included."""

    def of(containers: Sequence[Json]) -> list[int]:
        return [milli(one.get("resources", {}).get("requests", {}).get("cpu", "0")) for one in containers]

    spec = pod["spec"]
    largest = max(of(spec.get("initContainers", [])), default=0)
    return max(sum(of(spec["containers"])), largest) + milli(spec.get("overhead", {}).get("cpu", "0"))


def milli(amount: str) -> int:
    """Thousandths of a CPU."""
    return int(amount[:-1]) if amount.endswith("m") else int(float(amount) * 1_000)
