"""`make bench-custom`: what a custom kind costs beside a built-in kind of the same fields, and what many of them cost.

    flat     ConfigMaps, and custom objects with the same `data`
    nested   Ingresses, and custom objects with the same `spec`, whose schema has types, formats and enums
    many     100 definitions with 100,000 objects, beside 100 namespaces with 100,000 ConfigMaps

Objects are created over HTTPS while one watcher listens; the rate lasts until the watcher has seen the last. Both kinds
of a pair take turns on one server, and the best turn of each counts. CPU is the server's, for one object. The server
and whoever asks share one machine, so read the ratios, and of those the CPU's: other work disturbs them least.

The many are on a server of their own, which is killed and started again: the time until it serves a list of the last
definition, and how long anything had to wait in the seconds after that. Discovery and OpenAPI are read again and again
after the creation of one more definition, until they have it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import uvloop

from server import Peer, identity_of, namespace, post_all, post_fast, rss_mib, say, state_of

Json = dict[str, Any]
GROUP = "bench.example.com"
GROUPS = 10
"""The many definitions are dealt out to so many groups."""
FIELDS = 200
"""Described fields in the schema of each of the many definitions: 30 KB, as an operator's."""
OBJECTS = 2_000
"""Of a kind, in each turn."""
TURNS = 3
PAGE = 1_000
LISTS = 10
"""Lists in each turn, of which the best counts."""
WATCHES = 3
DEFINITIONS, EACH = 100, 1_000
GOAL = 1.5
LIMIT_S = 600.0
AFTER_S = 10.0
"""How long the server's answers are timed after it has started again."""
POLL_S = 0.02
ROWS: Final = {
    "create, µs": "create until a watcher has seen it, objects/s",
    "create, CPU": "the same, µs of CPU an object",
    "page, ms": f"list of {PAGE:,}, ms",
    "page, CPU": "the same, µs of CPU an object",
    "all, ms": "list of all, ms",
    "all, CPU": "the same, µs of CPU an object",
    "initial, µs": "watch that begins with all, events/s",
    "initial, CPU": "the same, µs of CPU an event",
    "missed, µs": "watch from before the last creates, events/s",
    "missed, CPU": "the same, µs of CPU an event",
}
"""What is measured, as the lower the better, and how the table shows it."""


# -- the kinds ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind to measure."""

    name: str
    api_version: str
    plural: str
    fields: Callable[[int], Json]

    @property
    def root(self) -> str:
        return f"/{'apis' if '/' in self.api_version else 'api'}/{self.api_version}"

    def path(self, space: str) -> str:
        return f"{self.root}/namespaces/{space}/{self.plural}"

    def body(self, number: int, name: str) -> bytes:
        metadata = {"name": name, "labels": {"app": "bench", "turn": str(number % 7)}}
        made = {"apiVersion": self.api_version, "kind": self.name, "metadata": metadata, **self.fields(number)}
        return json.dumps(made).encode()


def flat(number: int) -> Json:
    return {"data": {f"key-{at}": f"value {number} of {at}, " + "x" * 200 for at in range(4)}}


def nested(number: int) -> Json:
    def path(at: int) -> Json:
        backend = {"service": {"name": f"service-{at}", "port": {"number": 8080 + at}}}
        return {"path": f"/path-{at}/{number}", "pathType": "Prefix", "backend": backend}

    rules = [{"host": f"h{at}.example.com", "http": {"paths": [path(0), path(1)]}} for at in range(4)]
    return {"spec": {"ingressClassName": "bench", "rules": rules}}


TEXT: Final[Json] = {"type": "string"}
FLAT_SCHEMA: Final[Json] = {"data": {"type": "object", "additionalProperties": TEXT}}


def _object(required: Sequence[str] = (), **properties: Json) -> Json:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _nested_schema() -> Json:
    number = {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}
    service = _object(["name"], name={**TEXT, "maxLength": 63}, port=_object(name=TEXT, number=number))
    types = {**TEXT, "enum": ["Exact", "Prefix", "ImplementationSpecific"]}
    path = _object(["pathType", "backend"], path=TEXT, pathType=types, backend=_object(service=service))
    http = _object(["paths"], paths={"type": "array", "items": path, "x-kubernetes-list-type": "atomic"})
    rule = _object(host={**TEXT, "pattern": r"^[a-z0-9.-]*$"}, http=http)
    return {"spec": _object(ingressClassName=TEXT, rules={"type": "array", "items": rule}), "status": _object()}


PAIRS: Final = {
    "flat": (Kind("ConfigMap", "v1", "configmaps", flat), Kind("Flat", f"{GROUP}/v1", "flats", flat)),
    "nested": (
        Kind("Ingress", "networking.k8s.io/v1", "ingresses", nested),
        Kind("Nested", f"{GROUP}/v1", "nesteds", nested),
    ),
}


def definition(group: str, kind: str, properties: Json) -> Json:
    plural = f"{kind.lower()}s"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}} if "status" in properties else {},
    }
    names = {"plural": plural, "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _described() -> Json:
    """The fields of a schema as large as an operator's."""
    text = "What this field decides, and what happens if it is not set, in a sentence or two as operators have them."
    return {f"field{at}": {**TEXT, "description": text} for at in range(FIELDS)}


# -- the server --------------------------------------------------------------------------------------------------------


@contextmanager
def started(folder: Path) -> Iterator[Peer]:
    """A server on this directory, new or as the last one left it; killed at the end."""
    folder.mkdir(exist_ok=True)
    (folder / "server.json").unlink(missing_ok=True)
    with (folder / "server.log").open("ab") as log:
        command = [sys.executable, "-m", "situate", "server", "--port", "0", "--dir", str(folder)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        state = state_of(folder, process, LIMIT_S)
        yield Peer("situate", state["url"], identity_of(folder), (process.pid,))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)


def cpu_s(pid: int) -> float:
    """What its threads have used, to the nanosecond: a list takes less than a tick."""
    return sum(int(one.read_text().split()[0]) for one in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


async def define(session: aiohttp.ClientSession, crds: Sequence[Json]) -> None:
    """Create definitions, and wait until all are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await post_all(session, path, [json.dumps(one).encode() for one in crds])
    for crd in crds:
        spec = crd["spec"]
        await until(session, f"/apis/{spec['group']}/v1/{spec['names']['plural']}?limit=1", b"")


async def until(session: aiohttp.ClientSession, path: str, text: bytes) -> float:
    """Ask until the answer has this text; the seconds that took."""
    begun = time.monotonic()
    while True:
        async with session.get(path) as answer:
            if answer.status == 200 and text in await answer.read():
                return time.monotonic() - begun
        if time.monotonic() - begun > LIMIT_S:
            raise TimeoutError(path)
        await asyncio.sleep(POLL_S)


# -- create, list, watch -----------------------------------------------------------------------------------------------

Took = dict[str, float]


class Clock:
    """Times a piece of work by the clock, and by the CPU of the server."""

    def __init__(self, peer: Peer) -> None:
        self._pid = peer.server_pids[0]
        self.seconds = self.cpu = 0.0

    async def time(self, work: Awaitable[Any]) -> Any:
        cpu, begun = cpu_s(self._pid), time.monotonic()
        done = await work
        self.seconds, self.cpu = time.monotonic() - begun, cpu_s(self._pid) - cpu
        return done


async def read(session: aiohttp.ClientSession, path: str, **params: str) -> bytes:
    async with session.get(path, params=params, headers={"Accept-Encoding": "identity"}) as answer:
        answer.raise_for_status()
        return await answer.read()


async def see(session: aiohttp.ClientSession, path: str, count: int, opened: asyncio.Event, **params: str) -> None:
    """Watch until so many events have come."""
    lines = 0
    async with session.get(path, params={"watch": "true", **params}) as answer:
        answer.raise_for_status()
        opened.set()
        async for chunk in answer.content.iter_any():
            lines += chunk.count(b"\n")
            if lines >= count:
                return
    raise RuntimeError(f"the watch of {path} ended after {lines} of {count} events")


async def turn(peer: Peer, session: aiohttp.ClientSession, kind: Kind, number: int, count: int) -> Took:
    space, clock, took = "bench", Clock(peer), Took()
    path = kind.path(space)
    bodies = [kind.body(at, f"o-{number}-{at}") for at in range(count)]
    before = json.loads(await read(session, path, limit="1"))["metadata"]["resourceVersion"]
    opened = asyncio.Event()
    watching = asyncio.create_task(see(session, path, count, opened, resourceVersion=before))
    await opened.wait()

    async def create() -> None:
        await post_fast(peer, path, bodies)
        await watching

    await clock.time(create())
    took["create, µs"], took["create, CPU"] = (1e6 * one / count for one in (clock.seconds, clock.cpu))

    async def repeat(name: str, each: int, work: Callable[[], Awaitable[Any]], times: int) -> None:
        """The best by the clock, and the CPU of all together, in which its ticks matter less."""
        best = float("inf")
        cpu = 0.0
        for _ in range(times):
            await clock.time(work())
            best, cpu = min(best, clock.seconds), cpu + clock.cpu
        took[f"{name}, ms"], took[f"{name}, µs"] = 1e3 * best, 1e6 * best / each
        took[f"{name}, CPU"] = 1e6 * cpu / times / each

    there = count * (number + 1)
    page = min(PAGE, there)
    await repeat("page", page, lambda: read(session, path, limit=str(page)), LISTS)
    await repeat("all", there, lambda: read(session, path), LISTS)
    initial = {"resourceVersion": "0"}
    await repeat("initial", there, lambda: see(session, path, there, asyncio.Event(), **initial), WATCHES)
    missed = {"resourceVersion": before}
    await repeat("missed", count, lambda: see(session, path, count, asyncio.Event(), **missed), WATCHES)
    return took


async def in_turns(peer: Peer, name: str, sizes: argparse.Namespace) -> tuple[Took, Took]:
    """A built-in kind and a custom one; the best of each figure."""
    best: list[Took] = [{}, {}]
    async with peer.session() as session:
        for number in range(sizes.turns):
            for at, kind in enumerate(PAIRS[name]):
                took = await turn(peer, session, kind, number, sizes.objects)
                best[at] = {row: min(took[row], best[at].get(row, took[row])) for row in took}
                say(f"{name}, turn {number + 1}, {kind.name}: {1e6 / took['create, µs']:,.0f} creates/s")
    return best[0], best[1]


async def pairs(peer: Peer, sizes: argparse.Namespace) -> dict[str, tuple[Took, Took]]:
    async with peer.session() as session:
        await namespace(session, "bench")
        schemas = {"Flat": FLAT_SCHEMA, "Nested": _nested_schema()}
        await define(session, [definition(GROUP, kind, schema) for kind, schema in schemas.items()])
    return {name: await in_turns(peer, name, sizes) for name in PAIRS}


# -- many --------------------------------------------------------------------------------------------------------------


def _many(count: int) -> list[Json]:
    fields = FLAT_SCHEMA | {"spec": _object(**_described()), "status": _object()}
    return [definition(f"g{at % GROUPS}.{GROUP}", f"Kind{at}", fields) for at in range(count)]


async def fill_custom(peer: Peer, session: aiohttp.ClientSession, sizes: argparse.Namespace) -> Took:
    """Many definitions with their objects; also how soon one more is seen."""
    crds = _many(sizes.definitions)
    await namespace(session, "many")
    begun = time.monotonic()
    await define(session, crds)
    took: Took = {"definitions, s": time.monotonic() - begun}
    for at, crd in enumerate(crds):
        spec = crd["spec"]
        kind = Kind(spec["names"]["kind"], f"{spec['group']}/v1", spec["names"]["plural"], flat)
        await post_fast(peer, kind.path("many"), [kind.body(one, f"o-{one}") for one in range(sizes.each)])
        if at % 10 == 9:
            say(f"many: {(at + 1) * sizes.each:,} objects of {at + 1} kinds")
    for name, path in (("discovery", "/apis/{}/v1"), ("v3", "/openapi/v3/apis/{}/v1"), ("v2", "/openapi/v2")):
        group, late = f"late-{name}.{GROUP}", f"Late{name}"
        body = json.dumps(definition(group, late, FLAT_SCHEMA)).encode()
        await post_all(session, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", [body])
        took[f"{name}, s"] = await until(session, path.format(group), f'"{late}"'.encode())
    return took


async def fill_built_in(peer: Peer, session: aiohttp.ClientSession, sizes: argparse.Namespace) -> Took:
    kind = PAIRS["flat"][0]
    for at in range(sizes.definitions):
        space = await namespace(session, f"many-{at}")
        await post_fast(peer, kind.path(space), [kind.body(one, f"o-{one}") for one in range(sizes.each)])
        if at % 10 == 9:
            say(f"many: {(at + 1) * sizes.each:,} ConfigMaps")
    return {}


Fill = Callable[[Peer, aiohttp.ClientSession, argparse.Namespace], Awaitable[Took]]


async def _filled(peer: Peer, fill: Fill, sizes: argparse.Namespace) -> Took:
    async with peer.session() as session:
        took = await fill(peer, session, sizes)
    return {**took, "memory, MiB": rss_mib(peer.server_pids[0])}


async def _after(peer: Peer, path: str, begun: float) -> Took:
    """Of a server that was started again: until it serves this, and the longest wait of small requests after that."""
    pid, longest = peer.server_pids[0], 0.0
    async with peer.session() as session:
        await until(session, path, b'"o-0"')
        took: Took = {"restart, s": time.monotonic() - begun, "restart, CPU": cpu_s(pid)}
        end = time.monotonic() + AFTER_S
        while time.monotonic() < end:
            asked = time.monotonic()
            await read(session, "/api/v1/namespaces/default")
            longest = max(longest, time.monotonic() - asked)
            await asyncio.sleep(POLL_S)
    took |= {"longest, s": longest, "settled, CPU": cpu_s(pid) - took["restart, CPU"]}
    return {**took, "memory again, MiB": rss_mib(pid)}


def many(folder: Path, fill: Fill, path: str, sizes: argparse.Namespace) -> Took:
    with started(folder) as peer, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        took = runner.run(_filled(peer, fill, sizes))
    begun = time.monotonic()
    with started(folder) as peer, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return took | runner.run(_after(peer, path, begun))


# -- the tables --------------------------------------------------------------------------------------------------------


def pair_table(found: dict[str, tuple[Took, Took]]) -> str:
    lines = ["| | built-in | custom | times | goal |\n|---|---:|---:|---:|---:|"]
    for name, (ours, theirs) in found.items():
        for row, text in ROWS.items():
            per_s = text.endswith("/s")
            shown = [f"{1e6 / one[row] if per_s else one[row]:,.{0 if per_s else 1}f}" for one in (ours, theirs)]
            times = theirs[row] / ours[row] if ours[row] else float("nan")
            lines.append(f"| {name}: {text} | {' | '.join(shown)} | {times:.2f} | {GOAL} |")
    return "\n".join(lines)


MANY_ROWS: Final = {
    "memory, MiB": ("memory, MiB", ""),
    "memory again, MiB": ("memory after the restart, MiB", ""),
    "restart, s": ("restart until it serves a list of the last kind, s", ""),
    "restart, CPU": ("the same, s of CPU", ""),
    "longest, s": (f"longest wait of a small request in the {AFTER_S:.0f} s after that, s", ""),
    "settled, CPU": (f"CPU in these {AFTER_S:.0f} s, s", ""),
    "definitions, s": ("all definitions created and served, s", ""),
    "discovery, s": ("one more definition, until discovery has it, s", "1"),
    "v3, s": ("one more definition, until OpenAPI v3 has it, s", "1"),
    "v2, s": ("one more definition, until OpenAPI v2 has it, s", "1"),
}


def many_table(built_in: Took, custom: Took, sizes: argparse.Namespace) -> str:
    count = sizes.definitions * sizes.each
    lines = [f"| {count:,} objects | of a built-in kind | of {sizes.definitions} definitions | times | goal |"]
    lines.append("|---|---:|---:|---:|---:|")
    for row, (text, goal) in MANY_ROWS.items():
        shown = [f"{one[row]:,.2f}" if row in one else "–" for one in (built_in, custom)]
        times = f"{custom[row] / built_in[row]:.2f}" if built_in.get(row) else ""
        lines.append(f"| {text} | {' | '.join(shown)} | {times} | {goal} |")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=OBJECTS, help="Of each kind, in each turn.")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--definitions", type=int, default=DEFINITIONS, help="0: leave out the many.")
    parser.add_argument("--each", type=int, default=EACH, help="Objects of each of the many definitions.")
    return parser.parse_args()


def main() -> None:
    sizes = arguments()
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}\n")
    with tempfile.TemporaryDirectory(prefix="situate-bench-") as home:
        folder = Path(home)
        if sizes.turns:
            with started(folder / "pairs") as peer, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                print(pair_table(runner.run(pairs(peer, sizes))), flush=True)
        if sizes.definitions:
            last = sizes.definitions - 1
            built_in = many(folder / "built-in", fill_built_in, f"/api/v1/namespaces/many-{last}/configmaps", sizes)
            path = f"/apis/g{last % GROUPS}.{GROUP}/v1/kind{last}s"
            custom = many(folder / "custom", fill_custom, path, sizes)
            print(f"\n{many_table(built_in, custom, sizes)}")


if __name__ == "__main__":
    main()
