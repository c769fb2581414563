"""The machine's clock is set back an hour under a running cluster: everything goes on, and the log says so once."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from server.faults.process import Plane
from server.faults.wire import Wire

WITHIN_S = 30.0
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
WITH_A_CLOCK = """
import os, sys, time
from datetime import UTC, datetime
real, real_ns, flag = time.time, time.time_ns, sys.argv.pop(1)
time.time = lambda: real() - (3_600 if os.path.exists(flag) else 0)
time.time_ns = lambda: real_ns() - (3_600_000_000_000 if os.path.exists(flag) else 0)
import situate.cli.control_plane.parts as parts
parts.now = lambda: datetime.fromtimestamp(time.time(), UTC)
from situate.cli import main
sys.argv[0] = "situate"
main()
"""
"""A server whose clock is set back as soon as a file is there."""


class Clocked(Plane):
    @property
    def command(self) -> list[str]:
        _, _, _, *words = super().command
        return [sys.executable, "-c", WITH_A_CLOCK, str(self.directory.parent / "back"), *words]


def until(said: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not said():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def deployment(replicas: int) -> dict[str, object]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}


def running(wire: Wire) -> int:
    pods = json.loads(wire.ask("GET", PODS).body)["items"]
    return sum(pod["status"].get("phase") == "Running" for pod in pods)


def test_a_clock_that_is_set_back_an_hour_stops_nothing(tmp_path: Path) -> None:
    flags = ("--nodes", "2", "--with", "scheduler", "--with", "controllers")
    with Clocked(tmp_path / "plane", *flags) as plane, Wire(plane.port, plane.admin()) as wire:
        assert wire.send("POST", DEPLOYMENTS, deployment(2)).code == 201
        until(lambda: running(wire) == 2)
        (tmp_path / "back").touch()
        until(lambda: "The clock was set back" in plane.said())
        assert wire.send("PUT", f"{DEPLOYMENTS}/a", deployment(5)).code == 200
        until(lambda: running(wire) == 5)
        assert wire.ask("GET", "/readyz").code == 200
        nodes = json.loads(wire.ask("GET", "/api/v1/nodes").body)["items"]
        ready = [one["status"] for node in nodes for one in node["status"]["conditions"] if one["type"] == "Ready"]
        assert ready == ["True", "True"]
        # After a restart its certificates are valid: they begin before the clock's new time.
        plane.kill()
        plane.start()
        assert plane.said().count("The clock was set back") == 1
