"""`situate events --follow` under kill -9, of itself and of the server: what all its lives told, put together, is what
the store's log has: no gap, and nothing twice.

The witness reads the log's file itself, and shares no code with what wrote it or told of it.
"""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from server.faults.process import Plane

KILLS = int(os.environ.get("KILLS", "4"))
WITHIN_S = 30.0
PODS = "/api/v1/namespaces/default/pods"
DECISIONS = "/objects/situate.dev/placementdecisions/"
REVISION_SHIFT = 16
Told = tuple[int, str, str]
"""Revision, pod, and the phase that began; or `gone`."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Churn(threading.Thread):
    """Pods come and go, whether or not the server is there."""

    def __init__(self, plane: Plane, port: int) -> None:
        super().__init__(daemon=True)
        self._tls = plane.admin()
        self._port = port
        self.over = threading.Event()
        self.made = 0

    def run(self) -> None:
        dice = random.Random(7)
        there: list[str] = []
        while not self.over.is_set():
            connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=self._tls, timeout=10)
            with contextlib.suppress(OSError, http.client.HTTPException):
                while not self.over.is_set():
                    if len(there) > 10 and dice.random() < 0.5:
                        name = there.pop(dice.randrange(len(there)))
                        self._ask(connection, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")
                    else:
                        name = f"p{self.made}"
                        self._ask(connection, "POST", PODS, pod(name, too_big=dice.random() < 0.1))
                        self.made += 1
                        there.append(name)
            connection.close()
            self.over.wait(0.05)

    def _ask(self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any = None) -> None:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Content-Type": "application/json"})
        connection.getresponse().read()


def pod(name: str, *, too_big: bool) -> dict[str, Any]:
    asked = {"requests": {"cpu": "1000" if too_big else "1m"}}
    annotations = {"hollow.situate.dev/run-for": "100ms"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": asked}], "restartPolicy": "Never"},
    }


class Follower:
    """`situate events --follow`, killed and begun again from where it was."""

    def __init__(self, plane: Plane, folder: Path) -> None:
        self._plane = plane
        self._folder = folder
        self._lives = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.lines: list[dict[str, Any]] = []

    def start(self) -> None:
        since = str(self.lines[-1]["revision"]) if self.lines else "oldest"
        kubeconfig = str(self._plane.directory / "kubeconfig")
        command = [sys.executable, "-m", "situate", "events", "--follow", "-o", "json", "--since", since]
        self._lives += 1
        with self.output.open("wb") as output, (self._folder / "events.log").open("ab") as said:
            self._process = subprocess.Popen([*command, "--kubeconfig", kubeconfig], stdout=output, stderr=said)

    @property
    def output(self) -> Path:
        return self._folder / f"life-{self._lives}.json"

    def whole(self) -> list[dict[str, Any]]:
        """What this life has told, without a line that was cut off."""
        *lines, _ = self.output.read_text().split("\n")
        return [json.loads(line) for line in lines]

    def end(self, number: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self.lines += self.whole()

    def wait_for(self, lines: int) -> None:
        deadline = time.monotonic() + WITHIN_S
        while len(self.whole()) < lines:
            assert self._process is not None
            assert self._process.poll() is None, (self._folder / "events.log").read_text()
            assert time.monotonic() < deadline, f"only {len(self.whole())} lines after {WITHIN_S} s"
            time.sleep(0.02)


def log_of(store: Path) -> Iterator[Told]:
    """What the store's log says has happened to placements."""
    connection = sqlite3.connect(store)
    known: dict[str, tuple[str, ...]] = {}
    try:
        rows = connection.execute("SELECT id, key, value FROM log WHERE key LIKE ? ORDER BY id", (f"{DECISIONS}%",))
        for number, key, value in rows:
            revision, name = number >> REVISION_SHIFT, key.rpartition("/")[2]
            if value is None:
                del known[key]
                yield revision, name, "gone"
                continue
            found = json.loads(value)
            spec, status = found["spec"], found["status"]
            said: tuple[str, ...] = (
                spec["podUID"],
                status["phase"],
                spec.get("node", ""),
                str(spec.get("bindingVersion", 0)),
            )
            if status["phase"] in ("pending", "rebinding"):
                said += (status.get("reason", ""), status.get("message", ""))
            if known.get(key) != said:
                yield revision, name, status["phase"]
            known[key] = said
    finally:
        connection.close()


def as_told(line: dict[str, Any]) -> Told:
    return line["revision"], line["pod"], "gone" if line["event"] == "gone" else line["phase"]


def test_killing_the_follower_and_the_server_leaves_no_gap_and_tells_nothing_twice(tmp_path: Path) -> None:
    port, dice = free_port(), random.Random(KILLS)
    parts = ("--with", "scheduler", "--with", "controllers", "--nodes", "4")
    with Plane(tmp_path / "plane", "--port", str(port), *parts) as plane:
        churn, follower = Churn(plane, port), Follower(plane, tmp_path)
        churn.start()
        follower.start()
        for number in range(KILLS):
            follower.wait_for(dice.randint(20, 80))
            if number % 2:
                plane.kill()
                plane.start()
            if number % 3 != 2:
                follower.end()
                follower.start()
        follower.wait_for(50)
        churn.over.set()
        churn.join()
        plane.stop()
        expected = list(log_of(plane.directory / "store.db"))
        plane.start()
        follower.wait_for(len(expected) - len(follower.lines))
        follower.end(signal.SIGTERM)
    told = [as_told(line) for line in follower.lines]
    print(f"{churn.made} pods, {len(told)} lines in several lives, {KILLS // 2} kills of the server")
    assert {line[2] for line in told} >= {"bound", "running", "succeeded", "pending", "gone"}
    assert told[: len(expected)] == expected
    assert [line[0] for line in told] == sorted({line[0] for line in told})
