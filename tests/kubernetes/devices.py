"""Devices, claims and pods that claim them, as JSON; and a witness of who had which device at which time."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from kubernetes.cluster import Cluster
from kubernetes.objects import Json, pod
from kubernetes.parts import wait_until

API = "resource.k8s.io/v1"
CLAIMS = f"/apis/{API}/resourceclaims"
DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"
FINALIZER = "resource.kubernetes.io/delete-protection"


def gpu_class() -> Json:
    """Also behind the extended resource."""
    mine = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [mine], "extendedResourceName": RESOURCE}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def slice_of(node: str, devices: int, **device: Any) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{at}", **device} for at in range(devices)]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


def requests(count: int = 1) -> Json:
    return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}}


def claim(name: str) -> Json:
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": {"name": name}, "spec": requests()}


def template(name: str = "one-gpu", count: int = 1) -> Json:
    spec = {"spec": requests(count)}
    return {"apiVersion": API, "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def claiming(name: str, *, by_template: str = "", of_claim: str = "", **fields: Any) -> Json:
    """A pod with a claim; with neither, one that asks for the extended resource."""
    made = pod(name, cpu="10m", **fields)
    [container] = made["spec"]["containers"]
    if not by_template and not of_claim:
        container["resources"]["limits"] = {RESOURCE: "1"}
        container["resources"]["requests"][RESOURCE] = "1"
        return made
    source = {"resourceClaimTemplateName": by_template} if by_template else {"resourceClaimName": of_claim}
    made["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    container["resources"]["claims"] = [{"name": "gpu"}]
    return made


def deployment(name: str, replicas: int, of: Json) -> Json:
    labels = {"app": name}
    body = {"metadata": {"labels": labels}, "spec": of["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": body}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def devices_of(one: Json) -> list[str]:
    """`pool/device` of all that a claim has."""
    results = one.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    return [f"{result['pool']}/{result['device']}" for result in results]


def users_of(one: Json) -> list[str]:
    return [user["name"] for user in one.get("status", {}).get("reservedFor", [])]


def all_claims(cluster: Cluster) -> list[Json]:
    return cluster.api.items(CLAIMS)


def taken(cluster: Cluster) -> list[str]:
    return sorted(device for one in all_claims(cluster) for device in devices_of(one))


class Witness:
    """Of every version of every claim while it is entered.

    It watches all the time: kube-apiserver forgets what is older than 75 seconds.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        listed = cluster.api.get(CLAIMS)
        self._since: str = listed["metadata"]["resourceVersion"]
        self._now: dict[str, Json] = {one["metadata"]["uid"]: one for one in listed["items"]}
        self.versions = self.allocations = 0
        self._problems: list[str] = []
        self._leave = threading.Event()
        self._watching = ThreadPoolExecutor(1)
        self._watched: Future[None] | None = None

    def __enter__(self) -> Self:
        self._watched = self._watching.submit(self._watch_on)
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._watching.shutdown()

    def problems(self) -> list[str]:
        """Each device that two claims had at the same time, until now."""
        self._leave.set()
        if self._watched is not None:
            self._watched.result()
        self._watch()
        return self._problems

    def _watch_on(self) -> None:
        while not self._leave.is_set():
            self._watch()

    def _watch(self) -> None:
        for event in self._cluster.api.watch(CLAIMS, self._since):
            one = event["object"]
            if event["type"] in ("BOOKMARK", "ERROR"):
                assert event["type"] == "BOOKMARK", one
                continue
            self._since, uid = one["metadata"]["resourceVersion"], one["metadata"]["uid"]
            self.versions += 1
            had = devices_of(self._now.get(uid, {}))
            self._now[uid] = one
            if event["type"] == "DELETED":
                del self._now[uid]
            elif devices_of(one) and not had:
                self.allocations += 1
            held = [device for claim in self._now.values() for device in devices_of(claim)]
            self._problems += [
                f"{device} twice at {self._since}" for device in sorted(set(held)) if held.count(device) > 1
            ]


def wait_for_running(cluster: Cluster, number: int, within_s: float) -> None:
    def all_run() -> bool:
        phases = [one["status"].get("phase") for one in cluster.pods()]
        return phases.count("Running") == number

    try:
        wait_until(all_run, f"{number} pods to run", within_s)
    except TimeoutError:
        waiting = [one for one in cluster.pods() if one["status"].get("phase") != "Running"]
        said = [
            f"{one['metadata']['name']}: {condition.get('message', '')}"
            for one in waiting
            for condition in one["status"].get("conditions", ())
        ]
        raise AssertionError(f"{len(waiting)} pods wait: {said[:5]}") from None


def each_pod_has_its_devices(cluster: Cluster, pods: Iterable[Json]) -> None:
    """Every bound pod has its claims, allocated on its node and reserved for it."""
    claims = {one["metadata"]["name"]: one for one in all_claims(cluster)}
    for one in pods:
        name, status = one["metadata"]["name"], one["status"]
        made = [entry["resourceClaimName"] for entry in status.get("resourceClaimStatuses", ())]
        named = [
            entry["resourceClaimName"]
            for entry in one["spec"].get("resourceClaims", ())
            if "resourceClaimName" in entry
        ]
        extended = status.get("extendedResourceClaimStatus", {}).get("resourceClaimName")
        mine = [*made, *named, *([extended] if extended else [])]
        assert mine, f"{name} has no claim"
        for each in mine:
            assert name in users_of(claims[each]), f"{each} is not reserved for {name}"
            assert FINALIZER in claims[each]["metadata"].get("finalizers", ())
            nodes = {device.partition("/")[0] for device in devices_of(claims[each])}
            assert nodes == {one["spec"]["nodeName"]}, f"{name} is on another node than its devices"
