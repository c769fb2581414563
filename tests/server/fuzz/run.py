"""`make fuzz-server`: objects of every kind with odd values, against a whole control plane in a process of its own.

The same seed makes the same objects and the same requests. What is reported: objects, requests, how often the server
ended, answers of 5xx or none, and how long the control took at most. The exit code is 0 if there is nothing to report.
"""

import argparse
import asyncio
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from server.faults.process import NotStartedError, Plane
from server.fuzz.acts import MERGE, Acts
from server.fuzz.bases import kinds
from server.fuzz.client import Client, Request
from server.fuzz.control import WITHIN_S, Control
from server.fuzz.objects import Generator, Subject, encode
from server.fuzz.repro import culprit, ends_a_server, smallest
from situate.server.resources import Resource

FLAGS = ("--with", "scheduler", "--with", "controllers", "--nodes", "30", "--zones", "3")
WORKERS = 12
PER_SECOND = 40
"""Objects begun in a second, at most: the control is to show what an object does to the server, not what load does."""
PER_NAMESPACE = 60
"""Objects of one namespace, before it is deleted and the next one begins."""
LIVING = 4
"""Namespaces that are left alone for a while before they are deleted."""
STARTS_AGAIN = 3
"""How often a server may end upon what is stored, before the fuzz goes on with an empty store."""
EMPTY_S = 60.0
PROGRESS_S = 30.0
TAIL = 3_000


@dataclass(slots=True)
class Report:
    objects: int = 0
    seconds: float = 0.0
    restarts: int = 0
    slowest_s: float = 0.0
    """The longest time that the control took."""
    late: list[str] = field(default_factory=list)
    """When the control took longer than WITHIN_S."""
    deaths: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.deaths and not self.problems and not self.late


class Fuzz:
    def __init__(self, directory: Path, seed: int, count: int, restarts: int, first: int = 0) -> None:
        self.directory = directory
        self.plane = Plane(directory / "plane", *FLAGS)
        self.generator = Generator(seed)
        self.report = Report()
        self._first = first
        self._count = count
        self._restarts = restarts
        self._next = first
        self._client: Client | None = None
        self._recent: list[Subject] = []
        self._suspects: list[Subject] = []
        """The last objects before the server ended for the first time."""
        self._planes = 1
        self._begun = 0.0

    @property
    def client(self) -> Client:
        if self._client is None:
            raise RuntimeError("not running")
        return self._client

    async def run(self) -> Report:
        began = time.monotonic()
        self.plane.start()
        try:
            async with Client(lambda: self.plane.url, self.plane.admin()) as self._client:
                control = Control(self.client)
                await control.prepare()
                watching = asyncio.create_task(self._watch_over(control))
                showing = asyncio.create_task(self._show_progress(control))
                controlling = asyncio.create_task(control.run())
                await self._work()
                control.stopping = True
                await controlling
                watching.cancel()
                showing.cancel()
                await self._look_at_what_is_left()
                await self._tell(control, time.monotonic() - began)
        finally:
            self.plane.kill()
        return self.report

    async def _show_progress(self, control: Control) -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            told = f"{self.report.objects} of {self._count} objects; {len(self.report.deaths)} deaths"
            failures, late = len(self.client.tally.failures), len(control.late)
            print(f"{told}, {failures} answers of 5xx or none, {late} times late", file=sys.stderr, flush=True)

    # ── the load ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _work(self) -> None:
        self._begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._worker())
            group.create_task(self._clean())
            if self._restarts:
                group.create_task(self._restart_now_and_then())

    @property
    def _end(self) -> int:
        return self._first + self._count

    def _space(self, number: int) -> str:
        return f"fuzz-{number // PER_NAMESPACE}"

    async def _worker(self) -> None:
        while (number := self._next) < self._end:
            self._next += 1
            await asyncio.sleep(max(0.0, self._begun + (number - self._first) / PER_SECOND - time.monotonic()))
            namespace = self._space(number)
            if number % PER_NAMESPACE == 0 or number == self._first:
                await self.client.ask(
                    Request("POST", "/api/v1/namespaces", encode({"metadata": {"name": namespace}})), number
                )
            subject = self.generator.subject(number, namespace)
            self._recent = [*self._recent[-3 * WORKERS :], subject]
            await Acts(self.client, self.generator, subject).turn()
            self.report.objects += 1

    async def _clean(self) -> None:
        """Delete namespaces some time after they were filled."""
        number = self._first // PER_NAMESPACE
        last = (self._end - 1) // PER_NAMESPACE
        while number <= last:
            if self._next >= self._end or self._next // PER_NAMESPACE > number + LIVING:
                code, _ = await self.client.ask(Request("DELETE", f"/api/v1/namespaces/fuzz-{number}"))
                number += code != 0
            else:
                await asyncio.sleep(0.05)

    # ── the server ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _restart_now_and_then(self) -> None:
        every = self._count // (self._restarts + 1)
        for turn in range(1, self._restarts + 1):
            while self._next < self._first + turn * every:
                await asyncio.sleep(0.05)
            await self.client.up.wait()
            self.client.up.clear()
            if turn % 2:
                self.plane.kill()
            else:
                await asyncio.to_thread(self.plane.stop)
            self.report.restarts += 1
            await self._start()

    async def _watch_over(self, control: Control) -> None:
        """Start the server again if it ends by itself, and note that it did."""
        while True:
            await asyncio.sleep(0.05)
            if not self.client.up.is_set() or self.plane.running:
                continue
            self.client.up.clear()
            self._died("while it was asked")
            await self._start()
            await control.prepare()

    async def _start(self) -> None:
        for _ in range(STARTS_AGAIN):
            try:
                await asyncio.to_thread(self.plane.start)
                await asyncio.sleep(1.0)
                if self.plane.running:
                    break
            except NotStartedError:
                pass
            self._died("upon what was stored")
        else:
            self._planes += 1
            self.plane = Plane(self.directory / f"plane-{self._planes}", *FLAGS)
            self.plane.start()
            self.client.tls.load_verify_locations(str(self.plane.directory / "pki" / "ca.crt"))
        self.client.starts += 1
        self.client.up.set()

    def _died(self, when: str) -> None:
        self._suspects = self._suspects or self._recent
        recent = "\n".join(
            f"  {one.resource.api_version} {one.resource.kind} {one.name}: {'; '.join(map(str, one.changes))}"
            for one in self._recent
        )
        self.report.deaths.append(
            f"the server ended {when}; it said\n{self.plane.said()[-TAIL:]}\nlast objects:\n{recent}"
        )

    def said(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.directory.glob("*.log")))

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _look_at_what_is_left(self) -> None:
        """Every namespace goes, once nobody's finalizer holds it: the next one within `EMPTY_S`."""
        left: list[str] = []
        deadline = time.monotonic() + EMPTY_S
        while time.monotonic() < deadline:
            _, found = await self.client.ask(Request("GET", "/api/v1/namespaces"))
            items = found.get("items", []) if isinstance(found, dict) else []
            before, left = len(left), [name for one in items if (name := one["metadata"]["name"]).startswith("fuzz-")]
            if not left:
                return
            if len(left) < before:
                deadline = time.monotonic() + EMPTY_S
            await self._release()
            await asyncio.sleep(0.1)
        self.report.problems.append(f"{len(left)} namespaces are still there after {EMPTY_S:.0f} s: {left[:5]}")

    async def _release(self) -> None:
        for resource in {one.stored_as: one for one in self._kinds()}.values():
            root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
            _, found = await self.client.ask(Request("GET", f"{root}/{resource.plural}"))
            for one in found.get("items", []) if isinstance(found, dict) else ():
                metadata = one["metadata"]
                if "deletionTimestamp" not in metadata or not metadata["namespace"].startswith("fuzz-"):
                    continue
                path = f"{root}/namespaces/{metadata['namespace']}/{resource.plural}/{quote(metadata['name'])}"
                if metadata.get("finalizers"):
                    body = encode({"metadata": {"finalizers": None}})
                    await self.client.ask(Request("PATCH", path, body, MERGE))
                if resource.kind == "Pod":
                    await self.client.ask(Request("DELETE", f"{path}?gracePeriodSeconds=0"))

    @staticmethod
    def _kinds() -> list[Resource]:
        return [one for one in kinds() if one.namespaced and "get" in one.verbs]

    async def _tell(self, control: Control, seconds: float) -> None:
        report, tally = self.report, self.client.tally
        deaths = len(report.deaths)
        report.seconds = seconds
        if self._suspects:
            alone = await asyncio.to_thread(culprit, self._suspects, ends_a_server(self.directory, FLAGS))
            report.deaths.append(
                f"this alone ends a server:\n{alone}" if alone else "none of the last objects does it alone"
            )
        failures = tally.failures[:]
        for failure in failures[:20]:
            small = await smallest(self.client, self.generator, failure, self._space(failure.subject))
            report.problems.append(f"{failure.code or 'no answer'}: {failure.said[:300]}\n{small}")
        if len(failures) > 20:
            report.problems.append(f"and {len(failures) - 20} more answers of 5xx or none")
        report.late = control.late
        report.problems += errors_in(self.said())
        report.slowest_s = slowest = max(control.times, default=0.0)
        accepted, codes = sum(tally.accepted.values()), sorted(tally.codes.items())
        also = f"(besides {tally.as_kubernetes} that kube-apiserver gives as well)"
        often = f"{len(control.late)} times longer than {WITHIN_S:.0f} s"
        of_all = f"{report.objects} objects of {len(self.generator.kinds)} kinds in {seconds:.0f} s"
        report.lines = [
            f"{of_all}: {accepted} accepted, {tally.requests} requests",
            "answers: " + ", ".join(f"{code or 'none'} {many}" for code, many in codes),
            f"{report.restarts} restarts, {deaths} deaths, {len(failures)} answers of 5xx or none {also}",
            f"the control was scaled {len(control.times)} times: {slowest:.2f} s at most, {often}",
            f"the server's memory: {self.plane.peak_bytes() >> 20} MiB at most",
        ]


_HEAD = re.compile(r"^E\d{4} [0-9:.]+ +\d+ ")
_PARTICULAR = re.compile(r"fz-?\d+[-a-z0-9]*|fuzz-\d+|wait_m?s=[0-9.]+|\d{4,}")
EXPECTED = ("Error updating lease lock", "Failed to release lease")
"""Errors that a busy machine or a restart explains."""
MOST_ERRORS = 40


def errors_in(log: str) -> list[str]:
    """What the server logged as an error, each kind once with how often, and tracebacks."""
    found: dict[str, tuple[str, int]] = {}
    for line in log.splitlines():
        if _HEAD.match(line) and not any(text in line for text in EXPECTED):
            kind = _PARTICULAR.sub("#", _HEAD.sub("", line))
            first, many = found.get(kind, (line, 0))
            found[kind] = (first, many + 1)
    told = [f"the log has an error, {many} times: {line[:600]}" for line, many in found.values()][:MOST_ERRORS]
    if "Traceback" in log:
        told.append(f"the log has a traceback: {log[log.index('Traceback') :][:TAIL]}")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--restarts", type=int, default=4)
    parser.add_argument("--first", type=int, default=0, help="the number of the first object")
    parser.add_argument("--dir", default="", help="where the server keeps its store; by default a new directory")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the server is stopped, too
    directory = Path(given.dir or tempfile.mkdtemp(prefix="fuzz-server-"))
    directory.mkdir(parents=True, exist_ok=True)
    report = asyncio.run(Fuzz(directory, given.seed, given.count, given.restarts, given.first).run())
    print("\n".join(report.lines))
    for problem in (*report.deaths, *report.problems, *(f"the control: {line}" for line in report.late)):
        print(f"\n{problem}")
    if report.good and not given.dir:
        shutil.rmtree(directory, ignore_errors=True)
    elif not report.good:
        print(f"\nseed {given.seed}; the server's log and store are in {directory}")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
