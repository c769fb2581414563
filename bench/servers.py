"""`make bench-servers`: one server and one scheduler on an etcd, beside two servers and three schedulers: of these, one
leads and two stand by, or all three share the work as a fleet.

Each is a process of its own, as on several machines; two more run the hollow nodes. A Deployment is timed from its
creation until all its pods are ready. CPU is that of each process for one pod; the client that creates the Deployment
and polls it is not counted. Afterwards a witness reads every revision from etcd's history: no pod moved, and no node
was overfull. The layouts take turns, and the best run of each counts.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvloop
from nodes import cpu_s, hollow, registered
from whole import SETTLE_S, roll_out

from server import Peer, namespace, say

ROOT = Path(__file__).resolve().parent.parent
sys.path.remove(str(ROOT / "bench"))  # its store.py would hide the folder of the tests

from kubernetes import racing  # noqa: E402 -- the tests' witness judges here, too
from kubernetes.own_cluster import OwnCluster  # noqa: E402
from kubernetes.parts import missing  # noqa: E402
from kubernetes.racing import Outcome, Sizes  # noqa: E402
from store.etcd_server import Etcd  # noqa: E402

NODES, SLOTS, PODS, ROUNDS = 1_000, 5, 4_500, 2
NODE_PROCESSES = 2

RATE_GOAL = 1.0
"""The rate of two servers and three schedulers over that of one and one, at least."""


@dataclass(frozen=True, slots=True)
class Layout:
    title: str
    servers: int
    schedulers: int
    fleet: bool = False

    def flags(self, number: int) -> tuple[str, ...]:
        """Of a scheduler."""
        if self.fleet:
            return (f"--fleet=bench/member-{number}",)
        return () if self.schedulers > 1 else (racing.UNLED,)


ONE = Layout("one server, one scheduler", 1, 1)
LED = Layout("two servers, three schedulers, one leads", 2, 3)
FLEET = Layout("two servers, a fleet of three", 2, 3, fleet=True)
LAYOUTS = (ONE, LED, FLEET)


@dataclass(slots=True)
class Result:
    rate: float
    cpu_us: dict[str, float]
    """Of each process, for one pod."""
    problems: list[str]

    @property
    def total_us(self) -> float:
        return sum(self.cpu_us.values())


@contextmanager
def started(place: Path, layout: Layout, nodes: int) -> Iterator[tuple[OwnCluster, Etcd, dict[str, int]]]:
    """The first server, the etcd, and the number of each process."""
    with ExitStack() as stack:
        store = stack.enter_context(Etcd(place / "etcd", quick=False))
        flags = ("--store", f"etcd://{store.endpoints[0]}{racing.PREFIX[:-1]}", "--with", "controllers")
        first = stack.enter_context(OwnCluster(place / "server-1", *flags))
        serving = [first] + [
            stack.enter_context(OwnCluster(place / f"server-{number}", *flags, trusts=first))
            for number in range(2, layout.servers + 1)
        ]
        pids = {"etcd": store.members[0].pid}
        pids |= {f"server {number}": one.apiserver.pid for number, one in enumerate(serving, 1)}
        for number in range(NODE_PROCESSES):
            near, words = serving[number % layout.servers], ("--prefix", f"nodes-{number}", "--node-cpu", str(SLOTS))
            pids[f"nodes {number + 1}"] = stack.enter_context(hollow(near.home, nodes // NODE_PROCESSES, *words))
        starts = [
            partial(serving[number % layout.servers].own_scheduler, *layout.flags(number))
            for number in range(layout.schedulers)
        ]
        pids |= {f"scheduler {number}": one.pid for number, one in enumerate(racing.at_once(*starts), 1)}
        yield first, store, pids


def run_layout(place: Path, layout: Layout, sizes: Sizes, pods: int) -> Result:
    with started(place, layout, sizes.nodes) as (first, store, pids):
        refused = racing.conflicts(first)
        tls = ssl.create_default_context(cafile=str(first.certificate))
        peer = Peer("situate", first.url, tls, (), {"Authorization": f"Bearer {first.tokens['admin']}"})
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            took, cpu = runner.run(measure(peer, pids, sizes.nodes, pods))
        outcome = Outcome("situate on etcd", sizes, 0.0, pods, refused=racing.conflicts(first) - refused)
        outcome = racing.judge(outcome, racing.from_etcd(f"http://{store.endpoints[0]}", racing.PREFIX))
    result = Result(pods / took, cpu, [*outcome.moved, *outcome.overfull])
    say(f"{layout.title}: {result.rate:,.0f} pods/s, {result.total_us:,.0f} µs of CPU a pod")
    return result


async def measure(peer: Peer, pids: dict[str, int], nodes: int, pods: int) -> tuple[float, dict[str, float]]:
    async with peer.session() as session:
        await registered(session, nodes)
        await asyncio.sleep(SETTLE_S)
        space = await namespace(session, "bench-servers")
        before = {name: cpu_s(pid) for name, pid in pids.items()}
        took = await roll_out(session, space, "whole", pods, "1")
        return took, {name: (cpu_s(pid) - before[name]) * 1e6 / pods for name, pid in pids.items()}


def table(found: dict[Layout, Result]) -> str:
    parts = list(dict.fromkeys(name for one in found.values() for name in one.cpu_us))
    lines = [
        f"| servers, schedulers | pods/s | CPU a pod, µs | {' | '.join(parts)} |",
        f"|---|{'---:|' * (len(parts) + 2)}",
    ]
    for layout, one in found.items():
        cpu = " | ".join(f"{one.cpu_us[name]:,.0f}" if name in one.cpu_us else "" for name in parts)
        lines.append(f"| {layout.title} | {one.rate:,.0f} | {one.total_us:,.0f} | {cpu} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--pods", type=int, default=PODS, help=f"at most {SLOTS} fit on a node")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    if gone := missing():
        raise SystemExit(gone)
    found: dict[Layout, Result] = {}
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="situate-bench-") as home:
        for turn in range(asked.rounds):
            for one in LAYOUTS:
                place = Path(home) / f"{turn}-{LAYOUTS.index(one)}"
                place.mkdir()
                result = run_layout(place, one, Sizes(asked.nodes, SLOTS), asked.pods)
                problems += result.problems
                if one not in found or result.rate > found[one].rate:
                    found[one] = result
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}; {asked.nodes:,} nodes, {asked.pods:,} pods\n")
    print(f"{table(found)}\n\npods that moved, binds to a full node: {len(problems)}")
    for line in problems[:5]:
        print(f"  {line}")
    held = not problems
    for one in LAYOUTS[1:]:
        ratio = found[one].rate / found[ONE].rate
        held &= ratio >= RATE_GOAL
        print(
            f"{one.title}: {ratio:.2f} times the rate of one, at least {RATE_GOAL:g}: {'yes' if ratio >= 1 else 'NO'}"
        )
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
