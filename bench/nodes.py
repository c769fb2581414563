"""`make bench-nodes`: how soon nodes know what was committed for them, and what many idle nodes cost.

    lag     1,000 hollow nodes in a process of their own, over HTTPS. 100 pods a second are made, bound, run, and
            deleted ten seconds later. Timed from when a node's snapshot is seen to be committed until its lease is
            seen to acknowledge it, by one watch of each; what the server measures itself is printed beside it.
    idle    5,000 hollow nodes in a process of their own, and nothing to do: the CPU of the server, which is API,
            scheduler, controllers and store; and that of the nodes' process.

Server, nodes, and whoever makes the pods and watches share one machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
import uvloop

from server import Peer, namespace, say, situate
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED
from situate.server.placing.lag_tracker import LagTracker

NODES, BINDS, LAG_S = 1_000, 100, 30.0
IDLE_NODES, IDLE_S = 5_000, 30.0
LIVES_S = 10.0
"""How long a pod is there."""
SETTLE_S = 15.0
"""After all nodes are there: what registering them left to do, and a first round of renewals."""
REGISTER_S = 300.0
PARTS = ("scheduler", "controllers")
P99_S, MOST_S, CORES = 1.0, 5.0, 0.5
"""What must hold."""
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SNAPSHOTS = "/apis/situate.dev/v1alpha1/nodesnapshots"


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] = {}


class Shown(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()


class Frame(msgspec.Struct):
    type: str
    object: Shown


decode_frame = msgspec.json.Decoder(Frame).decode


@dataclass(slots=True)
class Seen:
    """What the watches told."""

    lags: LagTracker = field(default_factory=LagTracker)
    taken_s: list[float] = field(default_factory=list)
    acknowledged: int = 0
    cores: list[float] = field(default_factory=list)
    """Of the server and of the nodes' process, meanwhile."""

    def leased(self, meta: Meta) -> None:
        said = meta.annotations.get(ACKNOWLEDGED)
        if said:
            self.acknowledged += 1
            self.taken_s += self.lags.acknowledged(meta.name, int(said), time.monotonic())

    def snapped(self, meta: Meta) -> None:
        self.lags.committed(meta.name, int(meta.resource_version), time.monotonic())


@contextmanager
def hollow(folder: Path, count: int, *flags: str) -> Iterator[int]:
    """Nodes in a process of their own; its number."""
    words = ["node", "--hollow", str(count), "--kubeconfig", str(folder / "kubeconfig"), "--zones", "10", *flags]
    with (folder / "nodes.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-m", "situate", *words], stdout=log, stderr=log)
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


async def registered(session: aiohttp.ClientSession, count: int) -> None:
    deadline = time.monotonic() + REGISTER_S
    while time.monotonic() < deadline:
        async with session.get(SNAPSHOTS, params={"limit": "1"}) as answer:
            found = json.loads(await answer.read())
        if found["items"] and 1 + found["metadata"].get("remainingItemCount", 0) >= count:
            return
        await asyncio.sleep(0.5)
    raise TimeoutError(f"{count} nodes have not come within {REGISTER_S:.0f} s")


async def watch(session: aiohttp.ClientSession, path: str, tell: Callable[[Meta], None]) -> None:
    params = {"watch": "true", "timeoutSeconds": "3600"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with session.get(path, params=params, timeout=timeout) as answer:
        answer.raise_for_status()
        rest = b""
        async for chunk in answer.content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                frame = decode_frame(line)
                if frame.type != "DELETED":
                    tell(frame.object.metadata)


async def live(session: aiohttp.ClientSession, path: str, number: int) -> None:
    """One pod: made, and deleted when it was there for a while."""
    name = f"lag-{number}"
    spec = {"containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "10m"}}}]}
    body = json.dumps({"metadata": {"name": name}, "spec": spec}).encode()
    async with session.post(path, data=body) as answer:
        if answer.status != 201:
            raise RuntimeError(f"{answer.status}: {await answer.text()}")
        await answer.read()
    await asyncio.sleep(LIVES_S)
    async with session.delete(f"{path}/{name}") as answer:
        await answer.read()


async def lag(peer: Peer, nodes: int, sizes: argparse.Namespace) -> tuple[Seen, str]:
    seen, pids, binds = Seen(), (peer.server_pids[0], nodes), sizes.binds
    async with peer.session() as session:
        await registered(session, sizes.nodes)
        await asyncio.sleep(SETTLE_S)
        path = f"/api/v1/namespaces/{await namespace(session, 'bench-lag')}/pods"
        watches = [
            asyncio.create_task(watch(session, LEASES, seen.leased)),
            asyncio.create_task(watch(session, SNAPSHOTS, seen.snapped)),
        ]
        await asyncio.sleep(1)
        seen.taken_s.clear()
        begun, before = time.monotonic(), [cpu_s(pid) for pid in pids]
        async with asyncio.TaskGroup() as group:
            for number in range(int(binds * sizes.seconds)):
                await asyncio.sleep(max(0.0, begun + number / binds - time.monotonic()))
                group.create_task(live(session, path, number))
            took = time.monotonic() - begun
            seen.cores = [(cpu_s(pid) - was) / took for pid, was in zip(pids, before, strict=True)]
        await asyncio.sleep(MOST_S)
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        async with session.get("/metrics") as answer:
            metrics = await answer.text()
    return seen, metrics


async def idle(peer: Peer, count: int) -> None:
    async with peer.session() as session:
        await registered(session, count)
    await asyncio.sleep(SETTLE_S)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def by_the_server(metrics: str) -> str:
    """Of its histogram: how many there were, and how many within the limits."""
    name = "situate_snapshot_lag_seconds"
    buckets = {
        float(bound): float(count) for bound, count in re.findall(rf'{name}_bucket{{le="([^"]+)"}} (\S+)', metrics)
    }
    total = buckets.get(float("inf"), 0.0)
    return f"{total:,.0f}, {total - buckets.get(P99_S, 0.0):,.0f} of them over {P99_S:.0f} s"


def measured_lag(folder: Path, sizes: argparse.Namespace) -> bool:
    with situate(folder, PARTS) as peer, hollow(folder, sizes.nodes) as nodes:
        say(f"{sizes.nodes:,} nodes, {sizes.binds:g} binds a second for {sizes.seconds:g} s")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            seen, metrics = runner.run(lag(peer, nodes, sizes))
    taken = sorted(seen.taken_s)
    left = list(seen.lags.behind(time.monotonic(), 0.0))
    if not taken:
        raise SystemExit("no snapshot was acknowledged")
    p50, p99 = statistics.median(taken), taken[int(len(taken) * 0.99)]
    print(f"| snapshots committed and acknowledged | {len(taken):,} ({len(left)} nodes behind at the end) |")
    print(f"| lag p50, s | {p50:.2f} |\n| lag p99, s (at most {P99_S:g}) | {p99:.2f} |")
    print(f"| lag max, s (at most {MOST_S:g}) | {taken[-1]:.2f} |")
    print(f"| cores of the server, of the nodes' process | {seen.cores[0]:.2f}, {seen.cores[1]:.2f} |")
    print(f"| by the server's own measure | {by_the_server(metrics)} |")
    return p99 <= P99_S and taken[-1] <= MOST_S and not left


def measured_idle(folder: Path, sizes: argparse.Namespace) -> bool:
    with situate(folder, PARTS) as peer, hollow(folder, sizes.idle_nodes) as nodes:
        say(f"{sizes.idle_nodes:,} idle nodes")
        asyncio.run(idle(peer, sizes.idle_nodes))
        pids = (peer.server_pids[0], nodes)
        before, begun = [cpu_s(pid) for pid in pids], time.monotonic()
        time.sleep(sizes.idle_seconds)
        took = time.monotonic() - begun
        server, own = ((cpu_s(pid) - was) / took for pid, was in zip(pids, before, strict=True))
    print(f"| server, {sizes.idle_nodes:,} idle nodes, cores (less than {CORES:g}) | {server:.2f} |")
    print(f"| the nodes' own process, cores | {own:.2f} |")
    return server < CORES


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--binds", type=float, default=BINDS)
    parser.add_argument("--seconds", type=float, default=LAG_S)
    parser.add_argument("--idle-nodes", type=int, default=IDLE_NODES, help="0: leave that out.")
    parser.add_argument("--idle-seconds", type=float, default=IDLE_S)
    return parser.parse_args()


def main() -> int:
    sizes = arguments()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}\n\n| | |\n|---|---:|")
    with tempfile.TemporaryDirectory(prefix="situate-bench-") as folder:
        held = [measured_lag(Path(folder) / "lag", sizes)] if sizes.nodes else []
        if sizes.idle_nodes:
            held.append(measured_idle(Path(folder) / "idle", sizes))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
