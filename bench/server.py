"""`make bench-server`: situate's control plane, and kube-apiserver with etcd and kube-scheduler, one after the other.

    basic     5,000 pods are made over HTTPS as fast as the server takes them; until the last is bound
    spread    the same, with pods that keep to a spread over zones
    distinct  the same as basic, with a label of its own on each pod; only with --distinct
    list      50,000 pods, as one answer in JSON
    watches   1,000 watches of all pods; the memory of the server's process, and the time until all heard of one pod

Each has 5,000 nodes, keeps everything on the same disk with fsync, and decides with its defaults but for the rate limit
of kube-scheduler's client, which does not bind. Pods are seen bound by one watch that reads names only. Server and
maker of pods share one machine, so rates are of the whole; read the ratios. The CPU of a pod is that of all processes
of a peer, from the first create till the last bind, over the pods; it depends less on what else runs than a rate does.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import platform
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import uvloop
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from kubernetes.cluster import Cluster  # noqa: E402 -- the tests' cluster is what is measured on
from kubernetes.objects import node, pod  # noqa: E402
from kubernetes.parts import missing  # noqa: E402

NODES = 5_000
ZONES = 10
CREATED = 5_000
LISTED = 50_000
LISTS = 3
WATCHES = 1_000
CONNECTIONS = 32
PARTS = ("scheduler",)
"""What situate's server has inside, beside the API."""
LIMIT_S = 300.0
"""How long anything may take before it counts as never."""
READY_S = 60.0
MIB = 1 << 20
CONFIG = {"clientConnection": {"qps": 5_000, "burst": 10_000}}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "topology.kubernetes.io/zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "spread"}},
}


def basic(name: str) -> dict[str, Any]:
    return pod(name, labels={"app": "basic"})


def spread(name: str) -> dict[str, Any]:
    return pod(name, labels={"app": "spread"}, topologySpreadConstraints=[SPREAD])


def distinct(name: str) -> dict[str, Any]:
    """A label of its own on each pod."""
    return pod(name, labels={"app": "distinct", "own": f"of-{name}"})


KINDS: dict[str, Callable[[str], dict[str, Any]]] = {"basic": basic, "spread": spread, "distinct": distinct}
GOALS = ("1,500", "1,200", "60 % of basic")


@dataclass(slots=True)
class Peer:
    """A control plane that runs."""

    name: str
    url: str
    tls: ssl.SSLContext
    server_pids: tuple[int, ...]
    headers: dict[str, str] = field(default_factory=dict)

    def rss_mib(self) -> float:
        return sum(rss_mib(pid) for pid in self.server_pids)

    @asynccontextmanager
    async def session(self, connections: int = CONNECTIONS + 1) -> AsyncIterator[aiohttp.ClientSession]:
        connector = aiohttp.TCPConnector(limit=connections, ssl=self.tls)
        timeout = aiohttp.ClientTimeout(total=LIMIT_S)
        headers = {**self.headers, "Content-Type": "application/json"}
        async with aiohttp.ClientSession(self.url, connector=connector, headers=headers, timeout=timeout) as made:
            yield made


@dataclass(slots=True)
class Figures:
    rates: dict[str, float] = field(default_factory=dict)
    cpu_us: dict[str, float] = field(default_factory=dict)
    """Of all processes of the peer, for one pod."""
    list_s: float = 0.0
    list_bytes: int = 0
    watch_mib: float = 0.0
    heard_s: float = 0.0


# -- the peers -------------------------------------------------------------------------------------------------------


@contextmanager
def kubernetes(folder: Path) -> Iterator[Peer]:
    with Cluster(folder, etcd_flags=("--unsafe-no-fsync=false",)) as cluster:
        cluster.kube_scheduler(CONFIG)
        tls = ssl.create_default_context(cafile=str(cluster.certificate))
        headers = {"Authorization": f"Bearer {cluster.tokens['admin']}"}
        yield Peer("kube-apiserver", cluster.url, tls, (cluster.apiserver.pid,), headers)


@contextmanager
def situate(folder: Path, parts: Sequence[str] = PARTS) -> Iterator[Peer]:
    folder.mkdir()
    with_parts = [word for part in parts for word in ("--with", part)]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "situate", "server", *with_parts, "--port", "0", "--dir", str(folder)],
            stdout=log,
            stderr=log,
        )
    try:
        state = state_of(folder, process)
        yield Peer("situate", state["url"], identity_of(folder), (process.pid,))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def state_of(folder: Path, process: subprocess.Popen[bytes], limit_s: float = READY_S) -> dict[str, Any]:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and process.poll() is None:
        if (folder / "server.json").exists():
            found: dict[str, Any] = json.loads((folder / "server.json").read_text())
            return found
        time.sleep(0.05)
    raise RuntimeError(f"situate did not start: {(folder / 'server.log').read_text()[-2_000:]}")


def identity_of(folder: Path) -> ssl.SSLContext:
    config = yaml.safe_load((folder / "kubeconfig").read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    pair = folder / "client.pem"
    pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    tls.load_cert_chain(pair)
    return tls


PEERS = ("kube-apiserver", "situate")


# -- the measurements ------------------------------------------------------------------------------------------------


async def post_all(session: aiohttp.ClientSession, path: str, bodies: Sequence[bytes]) -> None:
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:
            async with session.post(path, data=body) as answer:
                if answer.status != 201:
                    raise RuntimeError(f"{path}: {answer.status} {await answer.text()}")

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(work())


class Posting(asyncio.Protocol):
    """One connection that posts, one body after another. Bare of all comfort: whoever makes the pods shares the machine
    with whoever is measured, and an HTTP client of Python's takes as much of it as the server does."""

    def __init__(self, head: bytes, waiting: Iterator[bytes], done: asyncio.Future[None]) -> None:
        self._head = head
        self._waiting = waiting
        self._done = done
        self._transport: asyncio.Transport | None = None
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        self._got += data
        head, found, rest = self._got.partition(b"\r\n\r\n")
        if not found or len(rest) < int(_after(head.lower(), b"content-length: ")):
            return
        if not head.startswith(b"HTTP/1.1 201"):
            self._end(RuntimeError(self._got.decode(errors="replace")[:500]))
            return
        self._got = b""
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or RuntimeError("the server closed the connection"))

    def _next(self) -> None:
        body = next(self._waiting, None)
        if body is None:
            self._end(None)
        elif self._transport is not None:
            self._transport.write(self._head + b"%d\r\n\r\n" % len(body) + body)

    def _end(self, error: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(error) if error else self._done.set_result(None)
        if self._transport is not None:
            self._transport.close()


def _after(head: bytes, name: bytes) -> bytes:
    """What a header says; a chunked answer has no length, and is not asked for here."""
    return head.partition(name)[2].partition(b"\r")[0] or b"0"


async def post_fast(peer: Peer, path: str, bodies: Sequence[bytes]) -> None:
    """The same as `post_all`, at a third of its cost."""
    url, loop, waiting = urlsplit(peer.url), asyncio.get_running_loop(), iter(bodies)
    headers = {"Host": url.netloc, "Content-Type": "application/json", "Accept-Encoding": "identity", **peer.headers}
    named = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\n{named}Content-Length: ".encode()
    ends = [loop.create_future() for _ in range(CONNECTIONS)]
    for done in ends:
        make = partial(Posting, head, waiting, done)
        await loop.create_connection(make, url.hostname, url.port, ssl=peer.tls, server_hostname=url.hostname)
    await asyncio.gather(*ends)


async def namespace(session: aiohttp.ClientSession, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await post_all(session, "/api/v1/namespaces", [json.dumps(body).encode()])
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    path = f"/api/v1/namespaces/{name}/serviceaccounts"
    async with session.post(path, data=json.dumps(account).encode()) as answer:
        await answer.read()  # it may be there already
    return name


async def create_and_bind(peer: Peer, session: aiohttp.ClientSession, kind: str, count: int) -> float:
    """Pods a second, from the first create till the last bind is seen."""
    space = await namespace(session, f"bench-{kind}")
    path = f"/api/v1/namespaces/{space}/pods"
    bodies = [json.dumps(KINDS[kind](f"{kind}-{number}")).encode() for number in range(count)]
    seen: dict[bytes, float] = {}
    watching = asyncio.create_task(_see_binds(session, path, seen))
    await asyncio.sleep(0.3)
    begun = time.monotonic()
    await post_fast(peer, path, bodies)
    deadline = begun + LIMIT_S
    while len(seen) < count:
        if time.monotonic() > deadline or watching.done():
            raise TimeoutError(f"{len(seen)} of {count} {kind} pods were bound")
        await asyncio.sleep(0.01)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    return count / (max(seen.values()) - begun)


async def _see_binds(session: aiohttp.ClientSession, path: str, seen: dict[bytes, float]) -> None:
    """When each pod was seen to be bound; a watch that ends goes on where it was."""
    accept = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    params = {"watch": "true", "fieldSelector": "spec.nodeName!="}
    while True:
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
                    params["resourceVersion"] = _quoted(lines[-1], b'"resourceVersion":"').decode()


def _quoted(line: bytes, before: bytes) -> bytes:
    return line.partition(before)[2].partition(b'"')[0]


async def list_all(session: aiohttp.ClientSession, nodes: int, count: int, figures: Figures) -> None:
    """Pods that are bound already, so that nobody has to decide anything; the best of a few lists."""
    space = await namespace(session, "bench-list")
    bodies = []
    for number in range(count):
        made = basic(f"listed-{number}")
        made["spec"]["nodeName"] = f"node-{number % nodes}"
        bodies.append(json.dumps(made).encode())
    await post_all(session, f"/api/v1/namespaces/{space}/pods", bodies)
    taken = []
    for _ in range(LISTS):
        begun = time.monotonic()
        async with session.get(f"/api/v1/namespaces/{space}/pods", headers={"Accept-Encoding": "identity"}) as answer:
            answer.raise_for_status()
            figures.list_bytes = len(await answer.read())
        taken.append(time.monotonic() - begun)
    figures.list_s = min(taken)


async def watch_all(peer: Peer, count: int, figures: Figures) -> None:
    """The memory with so many watches open, and how long until all have heard of one new pod."""
    heard = 0
    opened = asyncio.Semaphore(0)
    all_heard = asyncio.Event()

    async def one(session: aiohttp.ClientSession) -> None:
        nonlocal heard
        params = {"watch": "true", "resourceVersion": "", "fieldSelector": "metadata.name=told"}
        async with session.get("/api/v1/pods", params=params) as answer:
            answer.raise_for_status()
            opened.release()
            async for line in answer.content:
                if b'"told"' in line:
                    heard += 1
                    if heard == count:
                        all_heard.set()
                    return

    async with peer.session(count + 2) as session:
        space = await namespace(session, "bench-watch")
        tasks = [asyncio.create_task(one(session)) for _ in range(count)]
        for _ in range(count):
            await opened.acquire()
        await asyncio.sleep(1)
        figures.watch_mib = peer.rss_mib()
        begun = time.monotonic()
        told = basic("told")
        told["spec"]["schedulerName"] = "nobody"
        await post_all(session, f"/api/v1/namespaces/{space}/pods", [json.dumps(told).encode()])
        await asyncio.wait_for(all_heard.wait(), 60)
        figures.heard_s = time.monotonic() - begun
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def measure(peer: Peer, sizes: argparse.Namespace) -> Figures:
    figures = Figures()
    async with peer.session() as session:
        say(f"{peer.name}: {sizes.nodes:,} nodes")
        zone = "topology.kubernetes.io/zone"
        nodes = [
            node(f"node-{at}", cpu="64", memory="256Gi", labels={zone: f"zone-{at % ZONES}"})
            for at in range(sizes.nodes)
        ]
        await post_all(session, "/api/v1/nodes", [json.dumps(one).encode() for one in nodes])
        for kind in sizes.kinds:
            before = cpu_us()
            figures.rates[kind] = await create_and_bind(peer, session, kind, sizes.created)
            figures.cpu_us[kind] = (cpu_us() - before) / sizes.created
            rate, cost = figures.rates[kind], figures.cpu_us[kind]
            say(f"{peer.name}: {kind}, {rate:,.0f} pods/s created and bound, {cost:,.0f} µs of CPU a pod")
    if sizes.watches:
        await watch_all(peer, sizes.watches, figures)
        say(f"{peer.name}: {sizes.watches:,} watches, {figures.watch_mib:.0f} MiB, all told in {figures.heard_s:.2f} s")
    if sizes.listed:
        async with peer.session() as session:
            await list_all(session, sizes.nodes, sizes.listed, figures)
        say(f"{peer.name}: list of {sizes.listed:,}, {figures.list_s:.2f} s")
    return figures


# -- the table -------------------------------------------------------------------------------------------------------


def table(found: dict[str, Figures], sizes: argparse.Namespace) -> str:
    rows: list[tuple[str, str, list[float], str, bool]] = [
        (f"{kind}, pods/s created and bound", goal, [one.rates[kind] for one in found.values()], "{:,.0f}", True)
        for kind, goal in zip(sizes.kinds, GOALS, strict=False)
    ]
    rows += [
        (f"{kind}, µs of the servers' CPU a pod", "", [one.cpu_us[kind] for one in found.values()], "{:,.0f}", False)
        for kind in sizes.kinds
    ]
    if sizes.listed:
        rows.append(
            (f"list of {sizes.listed:,} pods, s", "2×", [one.list_s for one in found.values()], "{:.2f}", False)
        )
    if sizes.watches:
        watches = f"{sizes.watches:,} watches, MiB of the server"
        rows.append((watches, "300", [one.watch_mib for one in found.values()], "{:,.0f}", False))
        rows.append(("one pod told to all of them, s", "", [one.heard_s for one in found.values()], "{:.2f}", False))
    lines = [f"| | goal | {' | '.join(found)} | ratio |", f"|---|---:|{'---:|' * (len(found) + 1)}"]
    for name, goal, values, form, more in rows:
        ratio = ""
        if len(values) == 2 and all(values):
            ratio = f"{values[1] / values[0] if more else values[0] / values[1]:.2f}×"
        lines.append(f"| {name} | {goal} | {' | '.join(form.format(value) for value in values)} | {ratio} |")
    return "\n".join(lines)


def rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / MIB
    raise LookupError(f"process {pid} has no VmRSS")


def cpu_us() -> float:
    """What all processes that this one started have used."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has gone meanwhile
        if int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return ticks * 1e6 / os.sysconf("SC_CLK_TCK")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--created", type=int, default=CREATED)
    parser.add_argument("--listed", type=int, default=LISTED)
    parser.add_argument("--watches", type=int, default=WATCHES)
    parser.add_argument("--with", dest="parts", nargs="*", default=list(PARTS), choices=("scheduler", "controllers"))
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--distinct", action="store_true", help="Also create pods that each have a label of their own.")
    given = parser.parse_args()
    given.kinds = [kind for kind in KINDS if given.distinct or kind != "distinct"]
    return given


def main() -> None:
    sizes = arguments()
    if "kube-apiserver" in sizes.peers and (gone := missing()):
        raise SystemExit(gone)
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory(prefix="situate-bench-") as folder:
        for name in sizes.peers:
            opened = situate(Path(folder) / name, sizes.parts) if name == "situate" else kubernetes(Path(folder) / name)
            with opened as peer, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                found[name] = runner.run(measure(peer, sizes))
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{machine}; {sizes.nodes:,} nodes, {sizes.created:,} pods of each kind\n\n{table(found, sizes)}")


if __name__ == "__main__":
    main()
