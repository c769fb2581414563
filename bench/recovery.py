"""`make bench-recovery`: 500 hollow nodes on one control plane, and 50 of them vanish at once. `--nodes 5000 --lost 500
--zones 50 --pods 10000` is the same with 5,000 of them.

They are dealt out to zones evenly, so that no zone is lost for the most part. With --fast-recovery, a zone's first node
is given up after 18 s and the next ones every 10 s at the fastest; its pods leave 5 s later. Half of them are of
Deployments, which make others; most others are of StatefulSets, which make them again under their names; the rest have
no controller, and are rebound. Measured is the time from the kill until all run on the nodes that are left, and how
long the API took to answer meanwhile: a node, a hundred pods, and a ConfigMap that is made and deleted. Server, nodes
and whoever asks share one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

from server import identity_of, state_of  # noqa: E402 -- how a server is begun is the same in every bench
from situate.agent.node_objects import hollow_names  # noqa: E402
from situate.core.reconcile.nodes.eviction import REBIND  # noqa: E402
from situate.core.reconcile.nodes.fencing import FAST  # noqa: E402

WORKLOADS = 5
"""How many Deployments there are, and how many StatefulSets."""
BARE = 0.05
"""The share of pods without a controller."""
SLACK_S = 30.0
"""To create, place and start the last pods."""
AT_ONCE = 16
ASK_EVERY_S = 0.05
LIMIT_S = 240.0
P99_S = 1.0
SECOND_MS = 1_000
PODS = "/api/v1/namespaces/default/pods"
GOES = "goes-"


@dataclass(frozen=True, slots=True)
class Scale:
    nodes: int
    lost: int
    zones: int
    pods: int

    @property
    def bare(self) -> int:
        return int(self.pods * BARE)

    @property
    def stateful(self) -> int:
        return (self.pods // 2 - self.bare) // WORKLOADS * WORKLOADS

    @property
    def rate_limit_s(self) -> float:
        """The grace; one node of a zone after the other, and a second for each, as taints have whole seconds; and what
        pods tolerate."""
        given_up = (-(-self.lost // self.zones) - 1) * (1 / FAST.rate + 1)
        return (FAST.grace_ms + FAST.renew_ms) / SECOND_MS + given_up + FAST.toleration_s

    @property
    def bound_s(self) -> float:
        """By when all must run again."""
        return self.rate_limit_s + SLACK_S


@dataclass(slots=True)
class Seen:
    """All pods, as a watch tells of them."""

    running: dict[str, str] = field(default_factory=dict)
    """By name: the node on which it runs and is not to leave."""
    version: str = "0"

    def take(self, event: dict[str, Any]) -> None:
        pod = event["object"]
        meta = pod["metadata"]
        self.version = meta["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        runs = pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in meta
        if runs and event["type"] != "DELETED":
            self.running[meta["name"]] = pod["spec"]["nodeName"]
        else:
            self.running.pop(meta["name"], None)

    def elsewhere(self) -> int:
        return sum(not node.startswith(GOES) for node in self.running.values())


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, ssl.SSLContext]]:
    parts = ("--with", "scheduler", "--with", "controllers", "--fast-recovery")
    with (folder / "server.log").open("wb") as log:
        command = [sys.executable, "-m", "situate", "server", *parts, "--port", "0", "--dir", str(folder)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield state_of(folder, process)["url"], identity_of(folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


@contextmanager
def fleet(folder: Path, prefix: str, count: int, zones: int) -> Iterator[subprocess.Popen[bytes]]:
    nodes = ("--hollow", str(count), "--prefix", prefix, "--zones", str(zones))
    with (folder / f"{prefix}.log").open("wb") as log:
        command = [sys.executable, "-m", "situate", "node", *nodes, "--kubeconfig", str(folder / "kubeconfig")]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


async def follow(session: aiohttp.ClientSession, seen: Seen) -> None:
    """Until cancelled."""
    while True:
        query = {"watch": "1", "resourceVersion": seen.version, "allowWatchBookmarks": "true"}
        async with session.get(PODS, params=query, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            buffer = b""
            async for chunk in answer.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    if line:
                        seen.take(json.loads(line))


async def make(session: aiohttp.ClientSession, scale: Scale) -> None:
    pod = {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]}
    rest = scale.pods - scale.bare - scale.stateful
    for number in range(WORKLOADS):
        replicas = rest // WORKLOADS + (number < rest % WORKLOADS)
        await post(
            session, "/apis/apps/v1/namespaces/default/deployments", workload("Deployment", number, replicas, pod)
        )
        replicas = scale.stateful // WORKLOADS
        body = workload("StatefulSet", number, replicas, pod)
        body["spec"] |= {"serviceName": "db", "podManagementPolicy": "Parallel"}
        await post(session, "/apis/apps/v1/namespaces/default/statefulsets", body)
    for start in range(0, scale.bare, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, scale.bare))
        await asyncio.gather(*(post(session, PODS, bare(number, pod)) for number in numbers))


def workload(kind: str, number: int, replicas: int, pod: dict[str, Any]) -> dict[str, Any]:
    name = f"{kind.lower()}-{number}"
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def bare(number: int, pod: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": f"bare-{number}", "annotations": {REBIND: "true"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod}


async def post(session: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> None:
    async with session.post(path, json=body) as answer:
        if answer.status != 201:
            raise RuntimeError(await answer.text())


async def ask(session: aiohttp.ClientSession, took: list[float], node: str) -> None:
    """Until cancelled: one question after the other, and how long each took."""
    maps = "/api/v1/namespaces/default/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "asked"}, "data": {"a": "b"}}
    questions: tuple[tuple[str, str, Any], ...] = (
        ("GET", f"/api/v1/nodes/{node}", None),
        ("GET", f"{PODS}?limit=100", None),
        ("POST", maps, body),
        ("DELETE", f"{maps}/asked", None),
    )
    while True:
        for method, path, data in questions:
            began = time.perf_counter()
            async with session.request(method, path, json=data) as answer:
                await answer.read()
            took.append(time.perf_counter() - began)
            await asyncio.sleep(ASK_EVERY_S)


async def until(holds: Any, limit_s: float, what: str) -> float:
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > limit_s:
            raise RuntimeError(f"not within {limit_s:.0f} s: {what}")
        await asyncio.sleep(0.05)
    return time.monotonic() - began


async def nodes_ready(session: aiohttp.ClientSession) -> int:
    async with session.get("/api/v1/nodes") as answer:
        items = (await answer.json())["items"]
    conditions = [one for node in items for one in node.get("status", {}).get("conditions", ())]
    return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def closest_s(session: aiohttp.ClientSession) -> float:
    """The shortest time between two nodes of one zone that were given up."""
    async with session.get("/api/v1/nodes") as answer:
        items = (await answer.json())["items"]
    by_zone: dict[str, list[float]] = {}
    for node in items:
        for taint in node["spec"].get("taints", ()):
            if taint["effect"] == "NoExecute" and "timeAdded" in taint:
                zone = node["metadata"]["labels"]["topology.kubernetes.io/zone"]
                by_zone.setdefault(zone, []).append(datetime.fromisoformat(taint["timeAdded"]).timestamp())
    times = [sorted(each) for each in by_zone.values()]
    return min((b - a for each in times for a, b in pairwise(each)), default=float("inf"))


async def measure(url: str, tls: ssl.SSLContext, goes: subprocess.Popen[bytes], scale: Scale) -> bool:
    connector = aiohttp.TCPConnector(limit=8, ssl=tls)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        while await nodes_ready(session) < scale.nodes:
            await asyncio.sleep(1)
        seen, wanted, took = Seen(), scale.pods, list[float]()
        tasks = [asyncio.create_task(follow(session, seen))]
        await make(session, scale)
        began_s = await until(lambda: len(seen.running) == wanted, LIMIT_S, "all pods run")
        print(f"{wanted} pods run on {scale.nodes} nodes after {began_s:.1f} s", flush=True)
        await asyncio.sleep(FAST.grace_ms / SECOND_MS)  # a server that has just begun gives nobody up
        lost = wanted - seen.elsewhere()
        tasks.append(asyncio.create_task(ask(session, took, hollow_names(scale.nodes - scale.lost, "stays")[0])))
        goes.kill()
        limit_s = scale.bound_s + LIMIT_S
        back_s = await until(lambda: seen.elsewhere() == wanted, limit_s, "all pods run elsewhere")
        apart_s = await closest_s(session)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    took.sort()
    p99_s = took[int(len(took) * 0.99)]
    print(
        f"{scale.lost} nodes with {lost} pods vanished; all run elsewhere after {back_s:.1f} s "
        f"(rate limit: {scale.rate_limit_s:.0f} s, bound: {scale.bound_s:.0f} s)"
    )
    print(f"nodes of one zone were given up at least {apart_s:.0f} s apart (rate: {FAST.rate} a second)")
    print(
        f"API meanwhile: {len(took)} requests, median {took[len(took) // 2] * 1_000:.0f} ms, "
        f"p99 {p99_s * 1_000:.0f} ms, longest {took[-1] * 1_000:.0f} ms"
    )
    return back_s <= scale.bound_s and p99_s < P99_S and apart_s >= 1 / FAST.rate


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("nodes", 500), ("lost", 50), ("zones", 10), ("pods", 2_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    scale = Scale(**vars(parser.parse_args()))
    with tempfile.TemporaryDirectory(prefix="recovery-") as made, ExitStack() as stack:
        folder = Path(made)
        url, tls = stack.enter_context(server(folder))
        stack.enter_context(fleet(folder, "stays", scale.nodes - scale.lost, scale.zones))
        goes = stack.enter_context(fleet(folder, "goes", scale.lost, scale.zones))
        print(f"{os.cpu_count()} cores", flush=True)
        good = asyncio.run(measure(url, tls, goes, scale))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
