"""The simulation of the page: what it answers, whose its report is, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from situate.cli.commands.web.desk import CommandDesk
from situate.web import answers, reports
from situate.web.desk import Simulation, SimulationQuestion
from situate.web.limits import MAX_REPORTS_PER_LOGIN
from situate.web.logins import Login, Person
from situate.web.reports import keep_report
from situate.wire.errors import InputError
from web.serving import PageWorld, Visitor, page_world

PACK = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint:
        enabled: [{name: BinPack, weight: 10}]
"""
TEMPLATE = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
}
WEB: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}


def run(directory: Path, test: Callable[[PageWorld], Awaitable[None]]) -> None:
    async def work() -> None:
        async with page_world(directory / "c") as world:
            await test(world)

    asyncio.run(work())


async def simulated(visitor: Visitor, **asked: Any) -> tuple[int, Any]:
    return await visitor.post("/api/simulate", {"manifest": json.dumps(WEB), **asked})


def test_policies_are_compared_on_the_cluster_as_it_is_and_the_report_is_the_askers(tmp_path: Path) -> None:
    async def test(world: PageWorld) -> None:
        async with world.person() as admin, world.person() as other:
            code, found = await simulated(admin, policy=PACK, cluster=True)
            assert code == 200, found
            names = found["configurations"]
            assert (names[0], names[-1], len(names)) == ("default", "your policy", 3)
            rows = {row["label"]: row["values"] for row in found["rows"]}
            assert rows["placed"] == ["3", "3", "3"]
            assert (rows["used, most"][0], rows["used, most"][-1]) == ("3", "1"), "spread, and packed"
            path = f"/api/reports/{found['report']}"
            async with admin.session.get(admin.url + path) as response:
                assert (response.status, response.content_type) == (200, "text/html")
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "script-src" not in policy
                assert "sandbox" in policy
                assert "frame-ancestors 'self'" in policy
                assert response.headers["X-Frame-Options"] == "SAMEORIGIN"
                text = await response.text()
                assert "your policy" in text
                assert "<script" not in text
            assert (await other.get(path))[0] == 404
            async with world.visitor() as stranger:
                assert (await stranger.get(path))[0] == 401
            assert await world.api.items("/api/v1/pods") == []
            await _refusals(admin)

    run(tmp_path, test)


async def _refusals(admin: Visitor) -> None:
    plugin = PACK.replace("BinPack", "/tmp/evil.py:Plugin")
    table = (
        PACK.replace("BinPack", "Latency")
        + "    pluginConfig:\n      - {name: Latency, args: {tableFile: /etc/passwd}}\n"
    )
    for asked, words in (
        ({"manifest": ""}, "no pod would come"),
        ({"manifest": ": : :"}, "the manifest"),
        ({"policy": "kind: Pod"}, "your policy"),
        ({"policy": plugin}, "evil.py"),
        ({"policy": table}, "tableFile is not read here"),
        ({"default": False}, "choose a policy"),
        ({"arrivals": "sometimes"}, "arrivals: "),
        ({"duration": "long"}, "duration: "),
        ({"pods": 5}, "needs a manifest, and how the pods arrive"),
        ({"pods": 10_001, "arrivals": "poisson:5"}, "10,001 pods would come"),
        ({"manifest": json.dumps({**WEB, "spec": {**WEB["spec"], "replicas": 900_000}})}, "900,000 pods would come"),
        ({"pods": "many"}, "Expected `int | null`"),
        ({"unknown": 1}, "unknown"),
    ):
        code, found = await simulated(admin, **asked)
        assert (code, words in found["error"]) == (400, True), (asked, found)


def test_a_simulation_that_nobody_waits_for_any_more_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "QUESTION_S", 5.0)
    ended = threading.Event()

    async def endless(_desk: object, _client: object, _asked: object, stopped: Callable[[], bool]) -> Simulation:
        def wait() -> None:
            while not stopped():
                time.sleep(0.01)
            ended.set()

        await asyncio.to_thread(wait)
        raise AssertionError("somebody waited")

    async def test(world: PageWorld) -> None:
        async with world.person() as admin:
            asked = SimulationQuestion(manifest=json.dumps(WEB))
            async with world.page.models.client(Person()) as client:
                with pytest.raises(InputError, match="took too long"):
                    await CommandDesk().simulate(client, asked, lambda: True)
            monkeypatch.setattr(CommandDesk, "simulate", endless)
            code, found = await simulated(admin)
            assert (code, found["error"]) == (504, "the answer took too long")
            assert await asyncio.to_thread(ended.wait, 120.0)

    run(tmp_path, test)


def test_only_the_newest_reports_of_a_login_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    login = Login(Person(), 1.0)
    names = [keep_report(login, f"<p>{number}") for number in range(MAX_REPORTS_PER_LOGIN + 1)]
    assert list(login.reports) == names[1:]
    monkeypatch.setattr(reports, "MAX_REPORT_BYTES", 10)
    with pytest.raises(InputError, match="the report has more than"):
        keep_report(login, "x" * 11)
