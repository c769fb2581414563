"""`make bench-whole`: a Deployment from its creation until all its pods are ready, on live nodes.

    sqlite       `situate server` with scheduler, controllers and hollow nodes in one process; the store is a file
    etcd         the same, on an etcd of its own
    kubernetes   kube-apiserver, etcd, kube-controller-manager, kube-scheduler and kwok
    unlimited    the same, with a rate limit of kube-scheduler's client that does not bind

The peers run one after the other on the same disk, with fsync and their defaults. kube-scheduler's default is 50
requests a second. The limit of kube-controller-manager's client (20 by default) is raised for both: it would be what is
measured. Nodes renew their leases meanwhile; kwok's do not with --no-kwok-leases. Pods are ready when the Deployment's
status says so. CPU is that of all processes of a peer, memory what they have resident at
the end; the client that creates the Deployment and polls it is not counted.

`--resident N` keeps N pods on the nodes and prints memory, and how long a restart after SIGKILL takes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import uvloop
from nodes import registered

from server import CONFIG, Peer, cpu_us, identity_of, namespace, post_all, rss_mib, say, state_of

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from kubernetes.cluster import Cluster, answers  # noqa: E402 -- the tests' cluster is what is measured on
from kubernetes.objects import Json, node, pod  # noqa: E402
from kubernetes.parts import Part, folder, free_ports, missing, wait_until  # noqa: E402

NODES, REPLICAS, ZONES = 5_000, 10_000, 10
PEERS = ("sqlite", "etcd", "kubernetes", "unlimited")
KUBERNETES: dict[str, Json] = {"kubernetes": {}, "unlimited": CONFIG}
"""The peers of Kubernetes' own parts, and kube-scheduler's configuration."""
LIMIT_S = 1_800.0
"""How long a Deployment, or a restart, may take."""
SETTLE_S = 12.0
"""After all nodes are there: what registering them left to do, and a round of renewals."""
POLL_S = 0.1
LEASE_S = 40
"""Of kwok's nodes, with --kwok-leases: a kubelet's default, which our hollow nodes have too."""
NODE_MONITOR = "node-lifecycle-controller"
"""It takes nodes without leases for lost."""
RATE_GOAL, CPU_GOAL, ETCD_GOAL = 25.0, 20.0, 0.6
"""Times Kubernetes' rate, Kubernetes' CPU over ours, and the rate on etcd over that on SQLite."""
MANAGER = "kube-controller-manager"
UNUSED_CONTROLLERS = ("persistentvolume-binder-controller", "serviceaccount-token-controller")
"""They need flags of their own, and have nothing to do here."""
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"


@dataclass(slots=True)
class Result:
    rate: float
    cpu_us: float
    mib: float


# -- the peers -------------------------------------------------------------------------------------------------------


@contextmanager
def situate(place: Path, nodes: int, *flags: str) -> Iterator[Peer]:
    with started(place, nodes, *flags) as process:
        yield Peer("situate", state_of(place, process)["url"], identity_of(place), (process.pid,))


@contextmanager
def started(place: Path, nodes: int, *flags: str) -> Iterator[subprocess.Popen[bytes]]:
    place.mkdir(exist_ok=True)
    words = ["server", "--with", "scheduler", "--with", "controllers", "--nodes", str(nodes), "--zones", str(ZONES)]
    with (place / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "situate", *words, "--port", "0", "--dir", str(place), *flags],
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def situate_on_etcd(place: Path, nodes: int, *flags: str) -> Iterator[Peer]:
    with etcd(place.with_name(place.name + "-etcd")) as url, situate(place, nodes, "--store", url, *flags) as peer:
        yield peer


@contextmanager
def etcd(place: Path) -> Iterator[str]:
    """One etcd with its defaults; where a store on it is."""
    place.mkdir()
    client, peer = (f"127.0.0.1:{port}" for port in free_ports(2))
    flags = (
        f"--data-dir={place}",
        f"--listen-client-urls=http://{client}",
        f"--advertise-client-urls=http://{client}",
        f"--listen-peer-urls=http://{peer}",
        f"--initial-advertise-peer-urls=http://{peer}",
        f"--initial-cluster=default=http://{peer}",
        f"--quota-backend-bytes={8 << 30}",
        "--log-level=warn",
    )
    part = Part("etcd", [folder() / "etcd", *flags], place / "etcd.log")
    part.start(lambda: answers(f"http://{client}/health"))
    try:
        yield f"etcd://{client}/bench"
    finally:
        part.stop()


@contextmanager
def kubernetes(place: Path, config: Json, *, leases: bool) -> Iterator[Peer]:
    with Cluster(place, etcd_flags=("--unsafe-no-fsync=false",)) as cluster:
        cluster.kube_scheduler(config)
        controller_manager(cluster, UNUSED_CONTROLLERS if leases else (*UNUSED_CONTROLLERS, NODE_MONITOR))
        cluster.kwok(LEASE_S if leases else 0)
        tls = ssl.create_default_context(cafile=str(cluster.certificate))
        headers = {"Authorization": f"Bearer {cluster.tokens['admin']}"}
        yield Peer("kubernetes", cluster.url, tls, (cluster.apiserver.pid,), headers)


def controller_manager(cluster: Cluster, without: Sequence[str]) -> None:
    port = free_ports(1)[0]
    flags = (
        f"--kubeconfig={cluster.kubeconfig}",
        f"--authentication-kubeconfig={cluster.kubeconfig}",
        f"--authorization-kubeconfig={cluster.kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={cluster.home / MANAGER}",
        "--leader-elect=false",
        f"--kube-api-qps={CONFIG['clientConnection']['qps']}",
        f"--kube-api-burst={CONFIG['clientConnection']['burst']}",
        f"--controllers=*,{','.join(f'-{name}' for name in without)}",
    )
    part = Part(MANAGER, [folder() / MANAGER, *flags], cluster.home / f"{MANAGER}.log")
    cluster.beside(part, lambda: answers(f"https://127.0.0.1:{port}/healthz"))


async def add_nodes(peer: Peer, session: aiohttp.ClientSession, count: int) -> None:
    if peer.name != "kubernetes":
        await registered(session, count)
        return
    zone = "topology.kubernetes.io/zone"
    made = [node(f"node-{at}", cpu="4", memory="16Gi", labels={zone: f"zone-{at % ZONES}"}) for at in range(count)]
    await post_all(session, "/api/v1/nodes", [json.dumps(one).encode() for one in made])


# -- the measurements ------------------------------------------------------------------------------------------------


def deployment(name: str, replicas: int, cpu: str) -> bytes:
    labels = {"app": name}
    made = pod(name, cpu=cpu, memory="64Mi", labels=labels)
    template = {"metadata": {"labels": labels}, "spec": made["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}).encode()


async def until_ready(session: aiohttp.ClientSession, space: str, name: str, replicas: int) -> None:
    path, deadline, found = f"{DEPLOYMENTS.format(space)}/{name}", time.monotonic() + LIMIT_S, 0
    while found < replicas:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{found} of {replicas} pods are ready after {LIMIT_S:.0f} s")
        await asyncio.sleep(POLL_S)
        async with session.get(path) as answer:
            answer.raise_for_status()
            found = json.loads(await answer.read()).get("status", {}).get("readyReplicas", 0)


async def roll_out(session: aiohttp.ClientSession, space: str, name: str, replicas: int, cpu: str = "100m") -> float:
    """Seconds from the creation of a Deployment until all its pods are ready."""
    begun = time.monotonic()
    await post_all(session, DEPLOYMENTS.format(space), [deployment(name, replicas, cpu)])
    await until_ready(session, space, name, replicas)
    return time.monotonic() - begun


async def measure(peer: Peer, name: str, nodes: int, replicas: int) -> Result:
    async with peer.session() as session:
        begun = time.monotonic()
        await add_nodes(peer, session, nodes)
        say(f"{name}: {nodes:,} nodes after {time.monotonic() - begun:.1f} s")
        await asyncio.sleep(SETTLE_S)
        space = await namespace(session, "bench-whole")
        before = cpu_us()
        took = await roll_out(session, space, "whole", replicas)
        found = Result(replicas / took, (cpu_us() - before) / replicas, resident_mib())
    say(f"{name}: {found.rate:,.0f} pods/s, {found.cpu_us:,.0f} µs of CPU a pod, {found.mib:,.0f} MiB")
    return found


def resident_mib() -> float:
    """What all processes that this one started have in memory."""
    found = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found += rss_mib(int(stat.parent.name))
        except (FileNotFoundError, ProcessLookupError, LookupError):
            continue  # it has gone meanwhile
    return found


def run_peer(name: str, place: Path, sizes: argparse.Namespace, flags: Sequence[str] = ()) -> Result:
    if name in KUBERNETES:
        opened = kubernetes(place, KUBERNETES[name], leases=sizes.kwok_leases)
    else:
        opened = (situate_on_etcd if name == "etcd" else situate)(place, sizes.nodes, *flags)
    with opened as peer, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(peer, name + "".join(f" {flag}" for flag in flags), sizes.nodes, sizes.replicas))


# -- many pods, and a restart ----------------------------------------------------------------------------------------


async def fill(peer: Peer, nodes: int, pods: int) -> float:
    async with peer.session() as session:
        await registered(session, nodes)
        await asyncio.sleep(SETTLE_S)
        space = await namespace(session, "bench-whole")
        return pods / await roll_out(session, space, "resident", pods)


async def one_more(peer: Peer) -> None:
    async with peer.session() as session:
        await roll_out(session, "bench-whole", "after", 1)


def resident(place: Path, sizes: argparse.Namespace) -> None:
    flags, pods = ("--node-pods", "110"), sizes.resident
    with started(place, sizes.nodes, *flags) as process:
        peer = Peer("situate", state_of(place, process)["url"], identity_of(place), (process.pid,))
        rate = asyncio.run(fill(peer, sizes.nodes, pods))
        time.sleep(SETTLE_S)
        before = resident_mib()
        process.kill()
        process.wait()
    (place / "server.json").unlink(missing_ok=True)
    begun = time.monotonic()
    with started(place, sizes.nodes, *flags) as process:
        peer = Peer("situate", state_of(place, process, LIMIT_S)["url"], identity_of(place), (process.pid,))
        wait_until(lambda: answers(f"{peer.url}/readyz"), "the API to be ready", LIMIT_S)
        served_s = time.monotonic() - begun
        asyncio.run(one_more(peer))
        ready_s = time.monotonic() - begun
        after = resident_mib()
    print(f"\n{sizes.nodes:,} nodes, {pods:,} pods, SQLite\n\n| | |\n|---|---:|")
    print(f"| pods/s until all are ready | {rate:,.0f} |")
    print(f"| memory, MiB; after the restart | {before:,.0f}; {after:,.0f} |")
    print(f"| restart after kill -9, s until the API serves | {served_s:.1f} |")
    print(f"| s until a pod of a new Deployment is ready | {ready_s:.1f} |", flush=True)


# -- the table -------------------------------------------------------------------------------------------------------


def table(found: dict[str, Result]) -> str:
    lines = [f"| | {' | '.join(found)} |", f"|---|{'---:|' * len(found)}"]
    rows = (("pods/s", "rate"), ("CPU µs a pod, all processes", "cpu_us"), ("memory, MiB", "mib"))
    for title, name in rows:
        lines.append(f"| {title} | {' | '.join(f'{getattr(one, name):,.0f}' for one in found.values())} |")
    return "\n".join(lines)


def goals(found: dict[str, Result]) -> Iterator[tuple[str, float, float]]:
    """What is compared, what was measured, and the least that it should be."""
    ours, etcd, theirs, unlimited = (found.get(name) for name in PEERS)
    if ours and theirs:
        yield "times Kubernetes' pods/s", ours.rate / theirs.rate, RATE_GOAL
        yield "times less CPU a pod than Kubernetes", theirs.cpu_us / ours.cpu_us, CPU_GOAL
    if ours and unlimited:
        yield "times less CPU a pod than Kubernetes without the limit", unlimited.cpu_us / ours.cpu_us, CPU_GOAL
    if ours and etcd:
        yield "rate on etcd over that on SQLite", etcd.rate / ours.rate, ETCD_GOAL


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--replicas", type=int, default=REPLICAS)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--verbose", action="store_true", help="On SQLite with -v=2 too, and what that costs.")
    parser.add_argument(
        "--kwok-leases", action=argparse.BooleanOptionalAction, default=True, help="Let kwok's nodes renew leases, too."
    )
    parser.add_argument(
        "--resident", type=int, default=0, metavar="PODS", help="Also: memory and restart with so many."
    )
    return parser.parse_args()


def main() -> int:
    sizes = arguments()
    gone = missing((MANAGER,)) if KUBERNETES.keys() & set(sizes.peers) else missing() if "etcd" in sizes.peers else None
    if gone:
        raise SystemExit(gone)
    with tempfile.TemporaryDirectory(prefix="situate-bench-") as home:
        found = {name: run_peer(name, Path(home) / name, sizes) for name in sizes.peers}
        verbose = run_peer("sqlite", Path(home) / "verbose", sizes, ("-v", "2")) if sizes.verbose else None
        machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
        print(f"{machine}; {sizes.nodes:,} nodes, a Deployment of {sizes.replicas:,}\n\n{table(found)}\n", flush=True)
        if verbose and "sqlite" in found:
            print(f"-v=2: {verbose.cpu_us / found['sqlite'].cpu_us - 1:+.0%} CPU a pod ({verbose.cpu_us:,.0f} µs)\n")
        held = True
        for what, measured, least in goals(found):
            held &= measured >= least
            print(f"{what}: {measured:.2f}, at least {least:g}: {'yes' if measured >= least else 'NO'}")
        if {"sqlite", "unlimited"} <= found.keys():
            times = found["sqlite"].rate / found["unlimited"].rate
            print(f"times Kubernetes' pods/s without the limit: {times:.2f}")
        if sizes.resident:
            resident(Path(home) / "resident", sizes)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
