"""An independent witness: every version that any pod, node or Lease ever had, read from etcd itself.

It does not go through the API server, so it misses nothing while that one is down, and it shares no code with what it
watches: objects are read from the bytes that are stored. `problems()` says what must never have been true at any time:
a pod on two nodes, a node with more on it than it has room for.
"""

import base64
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from kubernetes.cluster import Cluster
from kubernetes.parts import wait_until

# One watch over all that lies between these has pods, nodes and Leases in the one order in which they were written.
PODS, NODES, LEASES = b"/registry/pods/", b"/registry/minions/", b"/registry/leases/"
FROM, TO = LEASES, b"/registry/pods0"
STORED = b"k8s\0"

# Field numbers of the stored messages: k8s.io/api's generated.proto.
RAW = 2
METADATA, SPEC, STATUS = 1, 2, 3
UID = 5
POD_CONTAINERS, POD_NODE, POD_SCHEDULER, POD_PHASE = 2, 10, 19, 1
CONTAINER_RESOURCES, REQUESTS, ALLOCATABLE = 8, 2, 2
HOLDER = 1

UNITS = {"m": 1, "": 1000, "k": 10**6, "M": 10**9, "G": 10**12, "Ki": 1000 << 10, "Mi": 1000 << 20, "Gi": 1000 << 30}
OVER = ("Succeeded", "Failed")

Amounts = Counter[str]


@dataclass(frozen=True, slots=True)
class PodVersion:
    """A pod as one revision left it. `at`: when we heard of it (time.monotonic)."""

    revision: int
    at: float
    name: str
    uid: str
    node: str
    scheduler: str
    phase: str
    wants: Amounts

    @property
    def takes_room(self) -> bool:
        return bool(self.node) and self.phase not in OVER


@dataclass(frozen=True, slots=True)
class PodGone:
    revision: int
    at: float
    name: str


@dataclass(frozen=True, slots=True)
class NodeVersion:
    """What it has room for; nothing when it is gone."""

    revision: int
    name: str
    room: Amounts


@dataclass(frozen=True, slots=True)
class Held:
    """Who held a Lease from this revision on; "" is nobody."""

    revision: int
    at: float
    lease: str
    holder: str


@dataclass(frozen=True, slots=True)
class Bound:
    revision: int
    at: float
    name: str
    node: str


Entry = PodVersion | PodGone | NodeVersion | Held


class History:
    """A context manager. Names of pods are "namespace/name", as are those of Leases."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._entries: list[Entry] = []
        self._newest: dict[bytes, int] = {}
        self._trouble = ""
        self._connection = http.client.HTTPConnection(urlsplit(cluster._etcd_url).netloc)
        self._thread = threading.Thread(target=self._listen, name="history", daemon=True)

    def __enter__(self) -> "History":
        there = self._there(NODES, values=True)
        self._note_all({"kv": item} for item in there.get("kvs", ()))
        asked = {"key": text(FROM), "range_end": text(TO), "start_revision": int(there["header"]["revision"]) + 1}
        self._connection.request("POST", "/v3/watch", json.dumps({"create_request": asked}))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self._thread.join(10)
        self._connection.close()

    # ── what happened ───────────────────────────────────────────────────────────────────────────────────────────────

    def entries(self) -> list[Entry]:
        if self._trouble:
            raise AssertionError(f"the witness saw not all: {self._trouble}")
        return self._entries[:]

    def catch_up(self, within_s: float = 60.0) -> None:
        """Wait until nothing has happened to pods that was not heard of."""

        def heard_all() -> bool:
            there = {base64.b64decode(item["key"]): int(item["mod_revision"]) for item in self._there(PODS)["kvs"]}
            return there == {key: revision for key, revision in self._newest.items() if key.startswith(PODS)}

        wait_until(heard_all, "the witness to have heard of everything", within_s)
        self.entries()

    def binds(self) -> list[Bound]:
        """In the order in which they were carried out."""
        found, nodes = [], dict[str, str]()
        for entry in self.entries():
            if isinstance(entry, PodVersion):
                if entry.node and not nodes.get(entry.uid):
                    found.append(Bound(entry.revision, entry.at, entry.name, entry.node))
                nodes[entry.uid] = entry.node
        return found

    def held(self, lease: str = "kube-system/kube-scheduler") -> list[Held]:
        """Changes of a Lease's holder."""
        found: list[Held] = []
        for entry in self.entries():
            last = found[-1].holder if found else ""
            if isinstance(entry, Held) and entry.lease == lease and entry.holder != last:
                found.append(entry)
        return found

    def gone(self) -> set[str]:
        return {entry.name for entry in self.entries() if isinstance(entry, PodGone)}

    def pods(self) -> dict[str, PodVersion]:
        """The last version of each that there is."""
        now: dict[str, PodVersion] = {}
        for entry in self.entries():
            if isinstance(entry, PodVersion):
                now[entry.name] = entry
            elif isinstance(entry, PodGone):
                now.pop(entry.name, None)
        return now

    def waiting(self) -> set[str]:
        return {name for name, pod in self.pods().items() if not pod.node}

    # ── what must not have happened ─────────────────────────────────────────────────────────────────────────────────

    def problems(self) -> list[str]:
        """Of every pod and every node at every revision; none is right."""
        self.catch_up()
        return [*self._moved(), *self._overfull()]

    def waiting_though_they_fit(self) -> list[str]:
        """Pods without a node, though some node has room for them: by what they ask for, and nothing else."""
        room = {entry.name: entry.room for entry in self.entries() if isinstance(entry, NodeVersion)}
        used: dict[str, Amounts] = {}
        for pod in self.pods().values():
            if pod.takes_room:
                used.setdefault(pod.node, Counter()).update(pod.wants)
        return sorted(
            pod.name
            for pod in self.pods().values()
            if not pod.node and any(fits(pod.wants + used.get(name, Counter()), has) for name, has in room.items())
        )

    def _moved(self) -> Iterator[str]:
        nodes: dict[str, str] = {}
        for entry in self.entries():
            if isinstance(entry, PodVersion):
                before = nodes.get(entry.uid, "")
                if before and entry.node != before:
                    yield f"{entry.name} went from {before} to {entry.node or 'nowhere'} at revision {entry.revision}"
                nodes[entry.uid] = entry.node

    def _overfull(self) -> Iterator[str]:
        room: dict[str, Amounts] = {}
        used: dict[str, Amounts] = {}
        pods: dict[str, PodVersion] = {}
        for entry in self.entries():
            if isinstance(entry, NodeVersion):
                room[entry.name] = entry.room
            elif isinstance(entry, PodVersion | PodGone):
                before = pods.pop(entry.name, None)
                if before is not None and before.takes_room:
                    used[before.node].subtract(before.wants)
                if isinstance(entry, PodVersion):
                    pods[entry.name] = entry
                    new = entry.takes_room and not (before and before.takes_room)
                    if entry.takes_room:
                        used.setdefault(entry.node, Counter()).update(entry.wants)
                    if new and not fits(used[entry.node], room.get(entry.node, Counter())):
                        yield f"{entry.node} was overfull with {entry.name} at revision {entry.revision}"

    # ── listening ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _listen(self) -> None:
        try:
            response = self._connection.getresponse()
            while line := response.readline():
                result = json.loads(line).get("result", {})
                if result.get("canceled"):
                    self._trouble = f"the watch was cancelled: {result}"
                    return
                self._note_all(result.get("events", ()))
        except (OSError, http.client.HTTPException, ValueError):
            return  # we were told to stop; whoever was not will miss something when it catches up

    def _note_all(self, events: Any) -> None:
        for event in events:
            item, at = event["kv"], time.monotonic()
            key, revision = base64.b64decode(item["key"]), int(item["mod_revision"])
            value = base64.b64decode(item.get("value", ""))
            entry = read(key, revision, at, value)
            if entry is not None:
                self._entries.append(entry)
            if value:
                self._newest[key] = revision
            else:
                self._newest.pop(key, None)

    def _there(self, prefix: bytes, *, values: bool = False) -> Any:
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        asked = {"key": text(prefix), "range_end": text(end), "keys_only": not values}
        return {"kvs": [], **self._cluster._etcd_call("/v3/kv/range", asked)}


# ── reading what is stored ──────────────────────────────────────────────────────────────────────────────────────────


def read(key: bytes, revision: int, at: float, value: bytes) -> Entry | None:
    if key.startswith(PODS):
        name = key.removeprefix(PODS).decode()
        return read_pod(name, revision, at, message(value)) if value else PodGone(revision, at, name)
    if key.startswith(NODES):
        room = amounts(part(message(value), STATUS), ALLOCATABLE) if value else Counter()
        return NodeVersion(revision, key.removeprefix(NODES).decode(), room)
    if key.startswith(LEASES):
        holder = word(part(message(value), SPEC), HOLDER) if value else ""
        return Held(revision, at, key.removeprefix(LEASES).decode(), holder)
    return None


def read_pod(name: str, revision: int, at: float, pod: bytes) -> PodVersion:
    spec = part(pod, SPEC)
    wants: Amounts = Counter(pods=1000)
    for container in parts(spec, POD_CONTAINERS):
        wants.update(amounts(part(container, CONTAINER_RESOURCES), REQUESTS))
    return PodVersion(
        revision,
        at,
        name,
        word(part(pod, METADATA), UID),
        word(spec, POD_NODE),
        word(spec, POD_SCHEDULER),
        word(part(pod, STATUS), POD_PHASE),
        wants,
    )


def fits(wanted: Amounts, room: Amounts) -> bool:
    return all(amount <= room[name] for name, amount in wanted.items())


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def message(value: bytes) -> bytes:
    """The object itself, out of the envelope that it is stored in."""
    if not value.startswith(STORED):
        raise ValueError("not stored as protobuf")
    return part(value[len(STORED) :], RAW)


def fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that have a length; numbers are passed over."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 2:
            size, at = varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        elif tag & 7 == 0:
            _, at = varint(data, at)
        else:
            at += 8 if tag & 7 == 1 else 4


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def parts(data: bytes, number: int) -> list[bytes]:
    return [value for found, value in fields(data) if found == number]


def part(data: bytes, number: int) -> bytes:
    found = parts(data, number)
    return found[-1] if found else b""


def word(data: bytes, number: int) -> str:
    return part(data, number).decode()


def amounts(data: bytes, number: int) -> Amounts:
    """A map of resources to quantities, in thousandths."""
    found = {word(entry, 1): word(part(entry, 2), 1) for entry in parts(data, number)}
    return Counter({name: thousandths(quantity) for name, quantity in found.items()})


def thousandths(quantity: str) -> int:
    digits = quantity.rstrip("mkMGKi")
    return int(digits) * UNITS[quantity.removeprefix(digits)]
