"""`make bench-kubernetes`: kube-scheduler and situate in turn on the same API server, side by side.

    drain     10,000 pods wait when the scheduler starts; until the last is bound
    create    5,000 pods are made as fast as the server takes them while the scheduler runs; until the last is bound
    steady    100 pods a second; from the create being sent to the bind being seen
    memory    5,000 nodes and 50,000 pods, in a scheduler that has just heard of them all

Both get the same configuration, with a rate limit (qps) that does not bind. A scheduler's CPU is that of its process,
from its start. Binds are seen by a watch on bound pods that reads names only, the same for both. Server, schedulers and
the maker of pods share one machine, so rates are of the whole; read the ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from kubernetes.cluster import Cluster, Scheduler  # noqa: E402 -- the tests' cluster is what is measured on
from kubernetes.objects import node, pod  # noqa: E402
from kubernetes.parts import missing  # noqa: E402

NODES = 5_000
ZONES = 10
WAITING = 10_000
CREATED = 5_000
RATE = 100
STEADY_S = 20
RESIDENT = 50_000
CONNECTIONS = 64
LIMIT_S = 300.0
"""How long anything may take before it counts as never."""
TICK = os.sysconf("SC_CLK_TCK")
MIB = 1 << 20

CONFIG = {"clientConnection": {"qps": 5_000, "burst": 10_000}}
PEERS = ("kube-scheduler", "situate")


# -- what is measured ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Figures:
    """Of one scheduler."""

    drain_rate: float = 0.0
    drain_cpu_ms: float = 0.0
    create_rates: dict[str, float] = field(default_factory=dict)
    latencies_ms: list[float] = field(default_factory=list)
    rss_mib: float = 0.0

    def latency(self, share: float) -> float:
        """The latency that this share of the pods did not exceed."""
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / MIB
    raise LookupError(f"process {pid} has no VmRSS")


def basic(name: str) -> dict[str, Any]:
    return pod(name, labels={"app": "basic"})


def spread(name: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "spread"}},
    }
    return pod(name, labels={"app": "spread"}, topologySpreadConstraints=[constraint])


KINDS = {"basic": basic, "spread": spread}


# -- the cluster -----------------------------------------------------------------------------------------------------


class Bench:
    """Makes pods, and sees them bound."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._headers = {"Authorization": f"Bearer {cluster.tokens['admin']}", "Content-Type": "application/json"}
        self._round = 0

    @asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        tls = ssl.create_default_context(cafile=str(self._cluster.certificate))
        connector = aiohttp.TCPConnector(limit=CONNECTIONS + 1, ssl=tls)
        timeout = aiohttp.ClientTimeout(total=LIMIT_S)
        async with aiohttp.ClientSession(
            self._cluster.url, connector=connector, headers=self._headers, timeout=timeout
        ) as made:
            yield made

    def fresh_namespace(self) -> str:
        self._round += 1
        return self._cluster.new_namespace(f"bench-{self._round}")

    async def create(
        self, session: aiohttp.ClientSession, namespace: str, kind: str, count: int, rate: float = 0, **spec: Any
    ) -> dict[str, float]:
        """Make pods, as fast as the server takes them or at a rate; when each was sent, by name."""
        sent: dict[str, float] = {}
        names = iter(range(count))
        begun = time.monotonic()

        async def work() -> None:
            for number in names:
                name = f"{kind}-{number}"
                made = KINDS[kind](name)
                made["spec"].update(spec_of(spec, number))
                body = json.dumps(made).encode()
                if rate:
                    await asyncio.sleep(max(0.0, begun + number / rate - time.monotonic()))
                sent[name] = time.monotonic()
                async with session.post(f"/api/v1/namespaces/{namespace}/pods", data=body) as answer:
                    if answer.status != 201:
                        raise RuntimeError(f"creating {name}: {answer.status} {await answer.text()}")

        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS // 2):
                group.create_task(work())
        return sent

    @asynccontextmanager
    async def binds(self, session: aiohttp.ClientSession, namespace: str) -> AsyncIterator[dict[str, float]]:
        """When each pod of a namespace was seen to be bound, by name; filled by a watch that reads names only."""
        seen: dict[str, float] = {}
        accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
        params = {"watch": "true", "fieldSelector": "spec.nodeName!="}
        path = f"/api/v1/namespaces/{namespace}/pods"

        async def watch() -> None:
            while True:  # a server that is busy closes watches that do not keep up; they go on where they were
                async with session.get(path, params=params, headers=accept) as answer:
                    answer.raise_for_status()
                    rest = b""
                    async for chunk in answer.content.iter_any():
                        *lines, rest = (rest + chunk).split(b"\n")
                        now = time.monotonic()
                        for line in lines:
                            if line.startswith(b'{"type":"ADDED"'):
                                seen.setdefault(_quoted(line, b'"name":"'), now)
                        if lines:
                            params["resourceVersion"] = _quoted(lines[-1], b'"resourceVersion":"')

        task = asyncio.create_task(watch())
        await asyncio.sleep(0.2)
        try:
            yield seen
        finally:
            if task.done():
                await task  # it ended by itself, which it should not: say why
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def all_bound(self, seen: dict[str, float], count: int) -> None:
        deadline = time.monotonic() + LIMIT_S
        while len(seen) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(seen)} of {count} pods were bound in {LIMIT_S:g} s")
            await asyncio.sleep(0.02)

    async def clear(self, session: aiohttp.ClientSession, namespace: str) -> None:
        body = json.dumps({"gracePeriodSeconds": 0}).encode()
        async with session.delete(f"/api/v1/namespaces/{namespace}/pods", data=body) as answer:
            answer.raise_for_status()
            await answer.read()

    def start(self, peer: str) -> Scheduler:
        return self._cluster.kube_scheduler(CONFIG) if peer == "kube-scheduler" else self._cluster.situate(CONFIG)


def _quoted(line: bytes, before: bytes) -> str:
    """What stands between this and the next quote."""
    return line.partition(before)[2].partition(b'"')[0].decode()


def spec_of(spec: dict[str, Any], number: int) -> dict[str, Any]:
    return {key: value(number) if callable(value) else value for key, value in spec.items()}


# -- the measurements ------------------------------------------------------------------------------------------------


async def drain(bench: Bench, peer: str, count: int) -> tuple[float, float]:
    """Pods a second, and milliseconds of CPU a pod."""
    namespace = bench.fresh_namespace()
    async with bench.session() as session:
        await bench.create(session, namespace, "basic", count)
        async with bench.binds(session, namespace) as seen:
            scheduler = await asyncio.to_thread(bench.start, peer)
            await bench.all_bound(seen, count)
            used = cpu_s(scheduler.pid)
        moments = sorted(seen.values())
        scheduler.stop()
        await bench.clear(session, namespace)
    return (count - 1) / (moments[-1] - moments[0]), 1e3 * used / count


async def create_and_bind(bench: Bench, peer: str, kinds: Sequence[str], count: int, steady_s: int) -> Figures:
    """Rates by kind; and latencies at a steady rate."""
    found = Figures()
    scheduler = await asyncio.to_thread(bench.start, peer)
    async with bench.session() as session:
        for kind in kinds:
            namespace = bench.fresh_namespace()
            async with bench.binds(session, namespace) as seen:
                begun = time.monotonic()
                await bench.create(session, namespace, kind, count)
                await bench.all_bound(seen, count)
                found.create_rates[kind] = count / (max(seen.values()) - begun)
            await bench.clear(session, namespace)
        namespace = bench.fresh_namespace()
        async with bench.binds(session, namespace) as seen:
            sent = await bench.create(session, namespace, "basic", RATE * steady_s, RATE)
            await bench.all_bound(seen, len(sent))
            found.latencies_ms = [1e3 * (seen[name] - moment) for name, moment in sent.items()]
        await bench.clear(session, namespace)
    scheduler.stop()
    return found


async def memory(bench: Bench, peer: str) -> float:
    scheduler = await asyncio.to_thread(bench.start, peer)
    await asyncio.sleep(5)
    found = rss_mib(scheduler.pid)
    scheduler.stop()
    return found


async def measure(bench: Bench, sizes: argparse.Namespace) -> dict[str, Figures]:
    say(f"{sizes.nodes:,} nodes")
    nodes = [
        node(f"node-{at}", cpu="64", memory="256Gi", labels={"topology.kubernetes.io/zone": f"zone-{at % ZONES}"})
        for at in range(sizes.nodes)
    ]
    await asyncio.to_thread(bench._cluster.create, *nodes)
    found: dict[str, Figures] = {}
    for peer in sizes.peers:
        say(f"{peer}: creating while it runs")
        found[peer] = await create_and_bind(bench, peer, ("basic", "spread"), sizes.created, sizes.steady)
        say(f"{peer}: {found[peer].create_rates}")
    for peer in sizes.peers:
        say(f"{peer}: draining {sizes.waiting:,} pods")
        found[peer].drain_rate, found[peer].drain_cpu_ms = await drain(bench, peer, sizes.waiting)
        say(f"{peer}: {found[peer].drain_rate:.0f} pods/s, {found[peer].drain_cpu_ms:.2f} ms CPU a pod")
    if sizes.resident:
        say(f"{sizes.resident:,} bound pods, for the memory")
        namespace = bench.fresh_namespace()
        async with bench.session() as session:
            where = {"nodeName": lambda number: f"node-{number % sizes.nodes}"}
            await bench.create(session, namespace, "basic", sizes.resident, **where)
        for peer in sizes.peers:
            found[peer].rss_mib = await memory(bench, peer)
    return found


# -- the table -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    goal: str
    values: tuple[float, ...]
    form: str
    more_is_better: bool = True

    def cells(self) -> list[str]:
        shown = [format(value, self.form) for value in self.values]
        if len(self.values) < 2:
            return [self.name, *shown, "", self.goal]
        peer, ours = self.values
        ratio = ours / peer if self.more_is_better else peer / ours
        return [self.name, *shown, f"{ratio:.2f}×", self.goal]


def rows(found: dict[str, Figures], sizes: argparse.Namespace) -> list[Row]:
    every = list(found.values())

    def row(name: str, goal: str, form: str, values: Sequence[float], *, more: bool = True) -> Row:
        return Row(name, goal, tuple(values), form, more)

    made = [
        row(f"{sizes.waiting:,} waiting pods drained, pods/s", "1.5×", ".0f", [one.drain_rate for one in every]),
        row("the same, CPU ms a pod", "3×", ".2f", [one.drain_cpu_ms for one in every], more=False),
    ]
    for kind, goal in (("basic", "1.3×"), ("spread", "4×")):
        name = f"{sizes.created:,} {kind} pods created and bound, pods/s"
        made.append(row(name, goal, ".0f", [one.create_rates[kind] for one in every]))
    for share in (0.5, 0.99):
        name = f"create to bound at {RATE} pods/s, p{share * 100:.0f}, ms"
        made.append(row(name, "", ".1f", [one.latency(share) for one in every], more=False))
    if sizes.resident:
        name = f"memory, {sizes.nodes:,} nodes and {sizes.resident:,} pods, MiB"
        made.append(row(name, "2×", ".0f", [one.rss_mib for one in every], more=False))
    return made


def table(found: dict[str, Figures], sizes: argparse.Namespace) -> str:
    lines = [["", *found, "better by", "goal"], *(row.cells() for row in rows(found, sizes))]
    body = ["| " + " | ".join(cells) + " |" for cells in lines]
    body.insert(1, "|---|" + "---:|" * (len(lines[0]) - 1))
    return "\n".join(body)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--waiting", type=int, default=WAITING)
    parser.add_argument("--created", type=int, default=CREATED)
    parser.add_argument("--steady", type=int, default=STEADY_S, help="seconds at the steady rate")
    parser.add_argument("--resident", type=int, default=RESIDENT, help="bound pods for the memory; 0: not measured")
    parser.add_argument("--peers", nargs="+", default=PEERS, choices=PEERS)
    return parser.parse_args()


def main() -> None:
    if problem := missing():
        sys.exit(problem)
    sizes = arguments()
    with tempfile.TemporaryDirectory(prefix="situate-bench-") as folder, Cluster(Path(folder)) as cluster:
        found = asyncio.run(measure(Bench(cluster), sizes))
    print(f"{os.cpu_count()} CPUs ({platform.processor() or platform.machine()}), Python {platform.python_version()}\n")
    print(table(found, sizes))


if __name__ == "__main__":
    main()
