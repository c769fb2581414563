"""Schedulers that know nothing of each other, on one queue that is full before they begin, with twice what fits.

    python tests/kubernetes/racing.py --server situate --nodes 5000     (or kube, or etcd: two servers on one etcd)

A witness reads the history of what was stored, every version of every pod in the order of their revisions, and shares
no code with what wrote it: was a pod ever on two nodes, did a node ever have more on it than it has room for. It looks
at all that there ever was, not at what is left in the end.
"""

import argparse
import base64
import http.client
import json
import re
import signal
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from kubernetes.api import Json, RefusedError
from kubernetes.cluster import Cluster
from kubernetes.history import History
from kubernetes.objects import node, pod
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import Part
from store.etcd_server import Etcd

PODS = "/objects/core/pods/"
NODES = "/objects/core/nodes/"
PREFIX = "/racing/"
FAST = {"clientConnection": {"qps": 5_000, "burst": 5_000}}
CALM_S = 3.0
RACERS = 3
OVER = ("Succeeded", "Failed")
UNLED = "--leader-elect=false"
LOOK_S = 0.25
PATIENCE = 4
LONG = 2_000
"""How many binds take longer than to start a scheduler."""


@dataclass(frozen=True, slots=True)
class Sizes:
    nodes: int
    slots: int = 5
    """How many of the pods fit on a node."""
    times: float = 2.0
    """How many times as many pods there are as fit."""
    within_s: float = 60.0

    @property
    def capacity(self) -> int:
        return self.nodes * self.slots

    @property
    def pods(self) -> int:
        return int(self.capacity * self.times)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a race."""

    server: str
    sizes: Sizes
    seconds: float = 0.0
    """From the first bind to the last, by the history."""
    bound: int = 0
    told: int = 0
    """Pods without a node that say that they are unschedulable, and why."""
    refused: int = 0
    """Binds that were asked for over HTTP and answered with 409."""
    calm: bool = False
    """Whether binds and refusals came to an end."""
    moved: list[str] = field(default_factory=list)
    overfull: list[str] = field(default_factory=list)
    """One line for each bind to a node that had no room for it at that revision."""

    def text(self) -> str:
        sizes = self.sizes
        over = 100.0 * (self.bound / sizes.capacity - 1)
        return (
            f"{self.server}: {sizes.nodes} nodes, room for {sizes.capacity}, {sizes.pods} pods: {self.bound} bound"
            f" ({over:+.1f} %) in {self.seconds:.1f} s, {self.told} told why not;"
            f" moved {len(self.moved)}, binds to a full node {len(self.overfull)};"
            f" binds refused with 409: {self.refused}{'' if self.calm else ', and no end of it'}"
        )


# ── the witness ─────────────────────────────────────────────────────────────────────────────────────────────────────

Version = tuple[int, str, Json | None]
"""Revision (or what orders like it), key, and the object; None: it is gone."""


def from_sqlite(path: Path) -> Iterator[Version]:
    """Every version that was ever written to a store, in order."""
    connection = sqlite3.connect(path)
    try:
        for number, key, value in connection.execute("SELECT id, key, value FROM log ORDER BY id"):
            yield number, key, None if value is None else json.loads(value)
    finally:
        connection.close()


def from_etcd(url: str, prefix: str) -> Iterator[Version]:
    """The same of an etcd: a watch from its first revision on, to what is its newest now."""

    def encoded(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    first, last = encoded(prefix), encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))
    ask = urllib.request.Request(f"{url}/v3/kv/range", json.dumps({"key": first, "range_end": last}).encode())
    with urllib.request.urlopen(ask, timeout=60) as answer:
        newest = max(int(one["mod_revision"]) for one in json.load(answer)["kvs"])
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        wanted = {"key": first, "range_end": last, "start_revision": 1, "fragment": True}
        connection.request("POST", "/v3/watch", json.dumps({"create_request": wanted}))
        response, seen = connection.getresponse(), 0
        while seen < newest:
            result = json.loads(response.readline())["result"]
            if result.get("canceled"):
                raise AssertionError(f"the witness saw not all: {result}")
            for event in result.get("events", ()):
                item = event["kv"]
                seen, key = int(item["mod_revision"]), base64.b64decode(item["key"]).decode().removeprefix(PREFIX)
                gone = event.get("type") == "DELETE"
                yield seen, key, None if gone else json.loads(base64.b64decode(item["value"]))
    finally:
        connection.close()


def judge(outcome: Outcome, versions: Iterable[Version]) -> Outcome:
    """With the pods that went from one node to another, and the binds to nodes without room. A pod asks for one CPU."""
    moved: list[str] = []
    overfull: list[str] = []
    room: dict[str, int] = {}
    where: dict[str, str] = {}
    seen: set[str] = set()
    used: Counter[str] = Counter()
    times: list[float] = []
    for revision, key, item in versions:
        if key.startswith(NODES) and item is not None:
            room[item["metadata"]["name"]] = int(item["status"]["allocatable"]["cpu"])
        elif key.startswith(PODS):
            before, now = where.get(key, ""), ""
            if item is not None and item.get("status", {}).get("phase") not in OVER:
                now = item["spec"].get("nodeName", "")
            if key not in seen and now:
                raise AssertionError(f"the witness did not see {key} before it was bound")
            seen.add(key)
            if before == now:
                continue
            if before and item is not None and now:
                moved.append(f"{key} went from {before} to {now} at {revision}")
            used[before] -= bool(before)
            used[now] += bool(now)
            where[key] = now
            if now and item is not None:
                times.append(bound_at(item))
            if now and used[now] > room.get(now, 0):
                overfull.append(f"{now} was overfull with {key} at {revision}")
    if (saw := sum(map(bool, where.values()))) != outcome.bound:
        raise AssertionError(f"the witness saw {saw} pods bound, and there are {outcome.bound}")
    return replace(outcome, moved=moved, overfull=overfull, seconds=max(times, default=0.0) - min(times, default=0.0))


def bound_at(item: Json) -> float:
    """When it was bound, by what the server noted, to the second."""
    noted = [each for each in item["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
    return datetime.fromisoformat(noted[0]["lastTransitionTime"]).timestamp() if noted else 0.0


# ── what is raced on ────────────────────────────────────────────────────────────────────────────────────────────────


def fill(cluster: Cluster, sizes: Sizes, names: Sequence[str] = ("",)) -> None:
    """Nodes, and a queue for schedulers of these names: nobody schedules yet."""
    cluster.create(*(node(f"node-{number}", cpu=str(sizes.slots)) for number in range(sizes.nodes)))
    small = {"cpu": "1", "memory": "1Mi"}
    cluster.create(
        *(pod(f"pod-{number}", scheduler=names[number % len(names)], **small) for number in range(sizes.pods))
    )


def watch_race(
    server: str, cluster: Cluster, sizes: Sizes, start: Callable[[], object], refused: Callable[[], int]
) -> Outcome:
    """Begin, and wait until nothing more happens: as many are bound as fit at least, and everybody else was told."""
    before = refused()
    start()
    bound = told = 0
    deadline = time.monotonic() + sizes.within_s

    def look() -> bool:
        nonlocal bound, told
        was = bound, told
        try:
            items = cluster.pods()
        except RefusedError as refusal:
            if refusal.status != http.client.GATEWAY_TIMEOUT:
                raise
            return True  # it has too much to do to say: that is no calm
        bound = sum("nodeName" in item["spec"] for item in items)
        told = sum("nodeName" not in item["spec"] and is_told(item) for item in items)
        return (bound, told) != was

    while (bound < sizes.capacity or bound + told < sizes.pods) and time.monotonic() < deadline:
        asked = time.monotonic()
        look()
        time.sleep(max(LOOK_S, PATIENCE * (time.monotonic() - asked)))  # looking takes from those who race
    # Whoever is behind learns of the others' binds by and by; nobody may go on asking for ever.
    lately = -1
    while lately and time.monotonic() < deadline:
        by_then = refused()
        time.sleep(CALM_S)
        lately = refused() - by_then + look()
    return Outcome(server, sizes, 0.0, bound, told, refused() - before, calm=not lately)


def is_told(item: Json) -> bool:
    return any(
        (each["type"], each["status"], each.get("reason")) == ("PodScheduled", "False", "Unschedulable")
        and "Insufficient cpu" in each.get("message", "")
        for each in item["status"].get("conditions", ())
    )


def conflicts(server: Cluster) -> int:
    """How many requests for binds were refused, by what the server counts itself."""
    text = server.api.get("/metrics")["text"]
    lines = re.findall(r'^apiserver_request_total\{[^}]*code="409"[^}]*\} \S+$', text, re.MULTILINE)
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in lines if 'subresource="binding"' in line))


def at_once(*starts: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(starts)) as pool:
        return [one.result() for one in [pool.submit(start) for start in starts]]


def line_up(fill_up: Callable[[], None], starts: Sequence[Callable[[], Part]], sizes: Sizes) -> Callable[[], object]:
    """What begins the race. In a small one, whoever is ready first would have won before the others are there: there
    they are started on an empty cluster, and are asleep while it is filled."""
    if sizes.capacity >= LONG:
        fill_up()
        return partial(at_once, *starts)
    parts: list[Part] = at_once(*starts)
    for part in parts:
        part.signal(signal.SIGSTOP)
    fill_up()

    def wake() -> None:
        for part in parts:
            part.signal(signal.SIGCONT)

    return wake


def own_names(racers: int) -> list[str]:
    return [f"racer-{number}" for number in range(racers)]


def named(name: str) -> Json:
    return {**FAST, "profiles": [{"schedulerName": name}]}


def on_situate(folder: Path, sizes: Sizes, racers: int = RACERS, *, apart: bool = False) -> Outcome:
    """`situate server`, and so many `situate scheduler` over HTTP. `apart`: each has a queue of its own."""
    with OwnCluster(folder) as own:
        names = own_names(racers) if apart else [""] * racers
        starts = [partial(own.situate, named(name)) if name else partial(own.own_scheduler, UNLED) for name in names]
        begin = line_up(partial(fill, own, sizes, names), starts, sizes)
        outcome = watch_race("situate", own, sizes, begin, partial(conflicts, own))
    return judge(outcome, from_sqlite(folder / "store.db"))


def on_etcd(folder: Path, sizes: Sizes, racers: int = 2) -> Outcome:
    """Three servers on one etcd: two with a scheduler inside, of which one leads, and one for schedulers over HTTP."""
    with Etcd(folder / "etcd") as etcd, ExitStack() as stack:
        store = ("--store", f"etcd://{etcd.endpoints[0]}{PREFIX[:-1]}")
        plain = stack.enter_context(OwnCluster(folder / "plain", *store))
        owns = [OwnCluster(folder / name, *store, "--with", "scheduler", trusts=plain) for name in ("one", "other")]

        def start_inside(own: OwnCluster) -> Part:
            return stack.enter_context(own).apiserver

        over_http = [partial(plain.own_scheduler, UNLED) for _ in range(racers)]
        inside = [partial(start_inside, own) for own in owns]
        begin = line_up(partial(fill, plain, sizes), [*over_http, *inside], sizes)
        outcome = watch_race("situate on etcd", plain, sizes, begin, partial(conflicts, plain))
        stack.close()
        return judge(outcome, from_etcd(f"http://{etcd.endpoints[0]}", PREFIX))


def on_kube(cluster: Cluster, sizes: Sizes, racers: int = RACERS, *, apart: bool = False) -> Outcome:
    """kube-apiserver, and so many kube-schedulers."""
    with History(cluster) as history:
        names = own_names(racers) if apart else [""] * racers
        starts = [partial(cluster.kube_scheduler, named(name) if name else FAST) for name in names]
        begin = line_up(partial(fill, cluster, sizes, names), starts, sizes)
        outcome = watch_race("kube-apiserver", cluster, sizes, begin, partial(conflicts, cluster))
        found, binds = history.problems(), history.binds()
        bound = sum(bool(one.node) for one in history.pods().values())
    seconds = binds[-1].at - binds[0].at
    moved = [one for one in found if " went from " in one]
    overfull = [one for one in found if " was overfull " in one]
    return replace(outcome, bound=bound, moved=moved, overfull=overfull, seconds=seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", choices=["situate", "etcd", "kube"], default="situate")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--times", type=float, default=2.0, help="how many times as many pods as fit")
    parser.add_argument("--schedulers", type=int, default=RACERS)
    parser.add_argument("--apart", action="store_true", help="each scheduler has a queue of its own")
    parser.add_argument("--within", type=float, default=280.0, help="seconds; after five minutes history is compacted")
    parser.add_argument("--keep", type=Path, help="leave store and logs in this new folder")
    asked = parser.parse_args()
    sizes = Sizes(asked.nodes, asked.slots, asked.times, asked.within)
    with tempfile.TemporaryDirectory() as name:
        folder = asked.keep or Path(name)
        if asked.server == "kube":
            with Cluster(folder) as cluster:
                outcome = on_kube(cluster, sizes, asked.schedulers, apart=asked.apart)
        elif asked.server == "situate":
            outcome = on_situate(folder, sizes, asked.schedulers, apart=asked.apart)
        else:
            outcome = on_etcd(folder, sizes, asked.schedulers - 1)
    print(outcome.text())
    for line in [*outcome.moved, *outcome.overfull][:5]:
        print(f"  {line}")


if __name__ == "__main__":
    main()
