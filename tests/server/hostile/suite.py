"""Honest clients alone, and beside one hostile client of each kind in turn: `make hostile-clients` prints a table."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from server.faults.process import Plane
from server.faults.wire import Wire
from server.hostile.clients import EFFORT, KINDS, Effort, read_effort
from server.hostile.honest import LATE_S, Honest, Seen, certificate, quantile
from situate.server.identity.pki.authority import open_authority

TESTS = Path(__file__).resolve().parents[2]
RATE = 100.0
NODES = 100
LEASES = 20
MAPS, MAP_BYTES = 2_000, 10_000
"""What huge lists list: 20 MB."""
SETTLE_S = 3.0
POLL_S = 0.1
BEGINS_S = 20.0
"""How long a hostile client may take to begin."""
MIB = 1 << 20
USERS = {"honest": (), "mallory": (), "reader": ()}


@dataclass(frozen=True, slots=True)
class Row:
    kind: str
    alone: Seen
    beside: Seen
    effort: Effort
    seconds: float
    before_bytes: int
    """The memory of the server before the hostile client came."""
    peak_bytes: int
    cpu: tuple[float, float]
    """What the server used of a core, alone and beside."""

    @property
    def ratio(self) -> float:
        return quantile(self.beside.bound_s, 0.99) / quantile(self.alone.bound_s, 0.99)

    def json(self) -> dict[str, Any]:
        seen = self.beside
        return {
            "kind": self.kind,
            "bound": len(seen.bound_s),
            "renewed": len(seen.renewed_s),
            "lost": seen.lost,
            "sent": self.effort.sent,
            "errors": seen.errors,
            "before_bytes": self.before_bytes,
            "peak_bytes": self.peak_bytes,
        }

    def cells(self) -> list[str]:
        def times(seen: Seen, part: float) -> str:
            return f"{1000 * quantile(seen.bound_s, part):.0f}"

        alone, beside, effort = self.alone, self.beside, self.effort
        return [
            self.kind,
            f"{effort.held}, {effort.opened / self.seconds:.0f}/s",
            f"{effort.sent / self.seconds:.0f}/s",
            f"{len(beside.bound_s)}",
            f"{times(alone, 0.5)} / {times(alone, 0.99)}",
            f"{times(beside, 0.5)} / {times(beside, 0.99)}",
            f"{self.ratio:.1f}",
            f"{1000 * quantile(beside.renewed_s, 0.99):.0f}",
            f"{beside.lost}",
            f"{len(beside.errors)}",
            f"{self.before_bytes // MIB} / {self.peak_bytes // MIB}",
            f"{self.cpu[0]:.0%} / {self.cpu[1]:.0%} / {effort.cpu_s / self.seconds:.0%}",
        ]


HEADER = [
    "hostile client",
    "its connections, opened",
    "sent",
    "pods bound",
    "alone p50 / p99 (ms)",
    "beside p50 / p99 (ms)",
    "p99 ratio",
    "lease renewal p99 (ms)",
    "leases lost",
    "errors",
    "memory before / peak (MiB)",
    "CPU of the server alone / beside / of the hostile client",
]


def table(rows: Sequence[Row]) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


@contextmanager
def cluster(folder: Path, *more: str) -> Iterator[Plane]:
    flags = (*more, "--with", "scheduler", "--with", "controllers", "--nodes", str(NODES), "--node-pods", "2000")
    with Plane(folder / "plane", *flags) as plane:
        authority, now = open_authority(plane.directory / "pki", datetime.now(UTC)), datetime.now(UTC)
        nodes = {f"ext-{number}": (f"system:node:ext-{number}", ("system:nodes",)) for number in range(LEASES)}
        for file, (user, groups) in {**{name: (name, groups) for name, groups in USERS.items()}, **nodes}.items():
            made = authority.client(user, groups, now)
            (folder / f"{file}.pem").write_bytes(made.certificate + made.key)
        with Wire(plane.port, plane.admin(), within_s=30.0) as wire:
            _prepare(wire)
        yield plane


def _prepare(wire: Wire) -> None:
    wire.send("POST", "/api/v1/namespaces", {"metadata": {"name": "honest"}})
    wire.send("POST", "/api/v1/namespaces", {"metadata": {"name": "maps"}})
    for user, role in (("honest", "edit"), ("reader", "view")):
        binding = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        }
        answer = wire.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        assert answer.code == 201, answer.body
    for number in range(LEASES):
        name = f"ext-{number}"
        assert wire.send("POST", "/api/v1/nodes", {"metadata": {"name": name}}).code == 201
    for number in range(MAPS):
        made = {"metadata": {"name": f"m-{number}"}, "data": {"k": "x" * MAP_BYTES}}
        assert wire.send("POST", "/api/v1/namespaces/maps/configmaps", made).code == 201


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(plane: Plane, kinds: Sequence[str], seconds: float, rate: float, late_s: float) -> list[Row]:
    nodes = [certificate(plane.directory, f"ext-{number}") for number in range(LEASES)]
    honest = Honest(plane.port, certificate(plane.directory, "honest"), nodes, rate, late_s)
    running = asyncio.create_task(honest.run())
    await asyncio.sleep(SETTLE_S)
    rows: list[Row] = []
    for kind in kinds:
        honest.take()
        used = [cpu_s(plane.pid)]
        await asyncio.sleep(seconds)
        alone, before = honest.take(), rss_bytes(plane.pid)
        used.append(cpu_s(plane.pid))
        beside, peak = await _beside(plane, honest, kind, seconds)
        used.append(cpu_s(plane.pid))
        cpu = (used[1] - used[0]) / seconds, (used[2] - used[1]) / seconds
        effort = read_effort(plane.directory.parent)
        rows.append(Row(kind, alone, beside, effort, seconds, before, peak, cpu))
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        for error in (alone.errors + beside.errors)[:5]:
            print(f"  {error}", flush=True)
        await _clean_up(plane)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return rows


async def _clean_up(plane: Plane) -> None:
    """Delete the pods, so that the server's memory is not theirs."""
    with Wire(plane.port, plane.admin(), within_s=120.0) as wire:
        await asyncio.to_thread(wire.ask, "DELETE", "/api/v1/namespaces/honest/pods?gracePeriodSeconds=0")
    await asyncio.sleep(SETTLE_S)


async def _beside(plane: Plane, honest: Honest, kind: str, seconds: float) -> tuple[Seen, int]:
    command = [sys.executable, "-m", "server.hostile.clients", kind, str(plane.port), str(plane.directory)]
    (plane.directory.parent / EFFORT).unlink(missing_ok=True)
    hostile = subprocess.Popen([*command, str(BEGINS_S + seconds)], cwd=TESTS, stderr=subprocess.DEVNULL)
    peak = 0
    try:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(BEGINS_S):
            while not (plane.directory.parent / EFFORT).exists():
                await asyncio.sleep(POLL_S)
        honest.take()
        end = loop.time() + seconds
        while loop.time() < end:
            peak = max(peak, rss_bytes(plane.pid))
            await asyncio.sleep(POLL_S)
        return honest.take(), peak
    finally:
        hostile.kill()
        hostile.wait()


def run(kinds: Sequence[str], seconds: float, rate: float = RATE, store: str = "", late_s: float = LATE_S) -> list[Row]:
    flags = ("--store", store) if store else ()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder, cluster(Path(folder), *flags) as plane:
        rows = uvloop.run(measure(plane, kinds, seconds, rate, late_s))
        assert plane.running
        return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each phase: alone, and beside")
    parser.add_argument("--rate", type=float, default=RATE, help="pods a second")
    parser.add_argument("--store", default="", help="memory: without the disk's part; default: a file")
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--late", type=float, default=LATE_S, help="seconds after which a pod counts as not bound")
    parser.add_argument("--json", action="store_true", help="print the rows, and judge nothing")
    given = parser.parse_args()
    rows = run(given.kind or list(KINDS), given.seconds, given.rate, given.store, given.late)
    if given.json:
        print(json.dumps([row.json() for row in rows]))
        return 0
    print(table(rows))
    bad = [row.kind for row in rows if row.ratio > 2.0 or row.beside.lost or row.beside.errors]
    print(f"worse than promised: {', '.join(bad)}" if bad else "as promised")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
