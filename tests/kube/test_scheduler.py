"""A whole scheduler process against a small API server: how it begins, leads, stands by, changes and ends."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kube.fake_server import FakeServer, Object
from situate.core.changes import Change
from situate.core.config.defaults import default_configuration
from situate.core.effects import Effect
from situate.core.engine.binding import BIND_ANSWER_MS
from situate.kube.process import FAILED, OK, Process
from situate.kube.settings import DecisionPace, Loaded, Settings
from situate.loop.election import ElectionRules
from situate.loop.history import History
from situate.wire.config import load_config
from situate.wire.errors import InputError

PODS, NODES, LEASES = "/api/v1/pods", "/api/v1/nodes", "/apis/coordination.k8s.io/v1/leases"
EVENTS = "/apis/events.k8s.io/v1/events"
QUICK = ElectionRules(retry_s=0.02)
LIMIT_S = 60
"""For one test, on a machine that has other things to do."""


def node(name: str) -> Object:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "status": {"allocatable": room, "capacity": room}}


def pod(name: str, scheduler: str = "default-scheduler") -> Object:
    container = {"name": "c", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container]},
        "status": {"phase": "Pending"},
    }


def config_text(scheduler: str = "default-scheduler", *, elect: bool = False, **fields: Any) -> str:
    whole = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": scheduler}],
        "leaderElection": {"leaderElect": elect},
        **fields,
    }
    return json.dumps(whole)


class Server(FakeServer):
    """One that says its version, and which kinds of an API group it has."""

    def __init__(self) -> None:
        super().__init__()
        self.served: dict[str, str] = {}

    def _do(self, method: str, path: str, query: dict[str, str], body: Any) -> Object:
        if path in self.served:
            return {"resources": [{"name": self.served[path], "verbs": ["list", "watch"]}]}
        return {"gitVersion": "v1.36.4"} if path == "/version" else super()._do(method, path, query, body)


class World:
    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.config = folder / "config.yaml"
        self.config.write_text(config_text())
        server.absent |= {"/apis/authorization.k8s.io/v1", "/apis/authentication.k8s.io/v1"}
        server.put(NODES, node("n1"))

    def load(self) -> Loaded:
        return Loaded(load_config(self.config.read_bytes(), str(self.config)))

    def process(self, **settings: Any) -> Process:
        wanted = Settings(load=self.load, config_file=self.config, **settings)
        return Process(wanted, self.load(), self.server.access(), rules=QUICK, signals=False)

    @asynccontextmanager
    async def running(self, process: Process) -> AsyncIterator[asyncio.Task[int]]:
        task = asyncio.create_task(process.run())
        try:
            yield task
        finally:
            process.end(OK)
            await asyncio.gather(task, return_exceptions=True)

    async def bound(self, name: str) -> str:
        while True:
            found = self.server.get(PODS, name, "default")
            if found is not None and found["spec"].get("nodeName"):
                return str(found["spec"]["nodeName"])
            await asyncio.sleep(0.002)

    def holder(self) -> str:
        lease = self.server.get(LEASES, "kube-scheduler", "kube-system")
        return "" if lease is None else str(lease["spec"]["holderIdentity"])


def play(tmp_path: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        server = Server()
        async with server, asyncio.timeout(LIMIT_S):
            await scenario(World(server, tmp_path))

    asyncio.run(run())


async def until(check: Callable[[], object]) -> None:
    while not check():
        await asyncio.sleep(0.002)


# -- beginning -------------------------------------------------------------------------------------------------------


def test_pods_that_wait_and_pods_that_come_are_bound_and_told_so(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(PODS, pod("before"))
        async with world.running(world.process()):
            assert await world.bound("before") == "n1"
            world.server.put(PODS, pod("after"))
            assert await world.bound("after") == "n1"
            await until(lambda: len(world.server.all(EVENTS)) == 2)
            assert {event["reason"] for event in world.server.all(EVENTS)} == {"Scheduled"}
            said_by = {event["reportingInstance"] for event in world.server.all(EVENTS)}
            assert said_by == {f"default-scheduler-{socket.gethostname()}"}

    play(tmp_path, scenario)


CONFIG_MAPS = "/api/v1/configmaps"


def published(world: World) -> dict[str, str]:
    """The names of the profiles that each scheduler has published."""
    found = world.server.get(CONFIG_MAPS, "situate-schedulers", "kube-system") or {"data": {}}
    return {key: json.loads(text)["profiles"][0]["schedulerName"] for key, text in (found.get("data") or {}).items()}


def test_its_configuration_is_published_and_published_again_when_it_changes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(CONFIG_MAPS, {"metadata": {"name": "situate-schedulers", "namespace": "kube-system"}})
        process = world.process()
        async with world.running(process):
            await until(lambda: published(world) == {"kube-system.kube-scheduler.json": "default-scheduler"})
            world.config.write_text(config_text("another"))
            process.reload()
            await until(lambda: published(world) == {"kube-system.kube-scheduler.json": "another"})

    play(tmp_path, scenario)


def test_a_scheduler_that_may_not_publish_its_configuration_says_so_and_schedules(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("PATCH", "/configmaps", status=403, reason="Forbidden", times=99)
        async with world.running(world.process()):
            await until(lambda: "The configuration was not published" in caplog.text)
            world.server.put(PODS, pod("ours"))
            await world.bound("ours")

    play(tmp_path, scenario)


def test_a_scheduler_that_only_watches_publishes_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        process = world.process(shadow=True)
        async with world.running(process):
            await until(lambda: process.session is not None and process.session.drive.steps)
        assert not [one for one in world.server.requests if "/configmaps/situate" in one.path]

    play(tmp_path, scenario)


def test_pods_of_other_schedulers_are_left_alone(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(PODS, pod("theirs", "other"))
        world.server.put(PODS, pod("ours"))
        async with world.running(world.process()):
            await world.bound("ours")
            assert "nodeName" not in world.server.all(PODS)[0]["spec"]

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "version, condition", [("v1alpha2", "PodGroupScheduled"), ("v1beta1", "PodGroupInitiallyScheduled")]
)
def test_a_gang_that_has_to_wait_is_told_so_in_the_api_that_the_server_has(
    tmp_path: Path, version: str, condition: str
) -> None:
    async def scenario(world: World) -> None:
        group = f"/apis/scheduling.k8s.io/{version}"
        world.server.served[group] = "podgroups"
        meta = {"name": "train", "namespace": "default"}
        world.server.put(
            f"{group}/podgroups", {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
        )
        for name in ("a", "b"):
            one = pod(name)
            one["spec"]["schedulingGroup"] = {"podGroupName": "train"}
            one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
            world.server.put(PODS, one)

        def conditions() -> list[Object]:
            found = world.server.get(f"{group}/podgroups", "train", "default") or {}
            return list(found.get("status", {}).get("conditions", []))

        async with world.running(world.process()):
            await until(conditions)
        assert [(one["type"], one["status"]) for one in conditions()] == [(condition, "False")]

    play(tmp_path, scenario)


def test_what_could_not_be_carried_out_is_in_the_metrics(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(PODS, pod("web"))
        world.server.fault("POST", "/binding", status=403, reason="Forbidden")
        process = world.process()
        failures = b'situate_failures_total{operation="binding"} 1.0'
        async with world.running(process):
            await until(lambda: failures in process.metrics.render().splitlines())

    play(tmp_path, scenario)


def test_an_api_server_that_does_not_know_us_is_an_error_with_what_to_do(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("GET", "/version", status=401, reason="Unauthorized", times=9)
        with pytest.raises(InputError, match=r"expired credentials\?.*--kubeconfig"):
            await world.process().run()

    play(tmp_path, scenario)


def test_what_cannot_be_used_after_all_leaves_the_lease_free(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        elects(world)
        process = world.process()
        running = asyncio.create_task(process.run())
        await until(lambda: process.leading)

        async def fail() -> None:
            raise InputError("no")

        await process._guarded(fail())
        with pytest.raises(InputError, match="no"):
            await running
        assert world.holder() == ""

    play(tmp_path, scenario)


def test_it_can_be_stopped_while_the_api_server_is_out_of_reach(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.fault("GET", "/version", status=503, reason="ServiceUnavailable", times=1_000)
        process = world.process()
        async with world.running(process) as task:
            await until(lambda: world.server.asked("GET", "/version"))
            process.end(OK)
            assert await task == OK

    play(tmp_path, scenario)


def test_a_session_that_is_recorded_can_be_read_back(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(PODS, pod("web"))
        async with world.running(world.process(journal=tmp_path / "journals")):
            await world.bound("web")

    play(tmp_path, scenario)
    (folder,) = (tmp_path / "journals").iterdir()
    assert any(step.effects for step in History(folder))


# -- leading ---------------------------------------------------------------------------------------------------------


def elects(world: World) -> None:
    world.config.write_text(config_text(elect=True))


def test_of_two_one_binds_and_the_other_takes_over_when_it_stops(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        elects(world)
        first, second = world.process(), world.process()
        async with world.running(first) as running:
            await until(lambda: first.leading)
            async with world.running(second):
                await until(lambda: second.elector is not None and second.elector.leader == first.identity)
                world.server.put(PODS, pod("one"))
                await world.bound("one")
                assert not second.leading
                first.end(OK)
                assert await running == OK
                world.server.put(PODS, pod("two"))
                await world.bound("two")
                assert world.holder() == second.identity
        binds = [asked.path for asked in world.server.asked("POST", "/binding")]
        assert len(binds) == len(set(binds)) == 2

    play(tmp_path, scenario)
    assert "Leaderelection lost" not in caplog.text


def test_a_lease_that_is_lost_ends_the_process_and_its_binds_at_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        elects(world)
        process = world.process()
        async with world.running(process) as task:
            await until(lambda: process.leading)
            lease = world.server.get(LEASES, "kube-scheduler", "kube-system")
            assert lease is not None
            lease["spec"]["holderIdentity"] = "somebody else"
            world.server.put(LEASES, lease)
            assert await task == FAILED
            assert not process.may_write()
            assert world.holder() == "somebody else"

    play(tmp_path, scenario)


def test_a_lease_is_kept_however_long_it_takes_to_see_the_cluster(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.config.write_text(config_text(elect=True, delayCacheUntilActive=True))
        world.server.put(PODS, pod("web"))
        world.server.fault("GET", "/api/v1/pods?", hang=True)
        process = world.process()
        async with world.running(process):
            await until(lambda: world.holder() == process.identity)
            renewals = len(world.server.asked("PUT", "/leases/"))
            await until(lambda: len(world.server.asked("PUT", "/leases/")) > renewals + 2)
            assert not process.leading
            world.server.release()
            await world.bound("web")

    play(tmp_path, scenario)


def test_without_election_it_leads_at_once_and_makes_no_lease(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        async with world.running(process):
            await until(lambda: process.leading)
            assert world.server.all(LEASES) == []

    play(tmp_path, scenario)


def test_an_engine_that_fails_ends_the_process_and_leaves_the_lease_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        elects(world)
        process = world.process()
        async with world.running(process) as task:
            await until(lambda: process.leading and process.session)

            def fail(now: int, changes: Sequence[Change]) -> list[Effect]:
                raise RuntimeError("ours")

            assert process.session is not None
            process.session.drive.engine.step = fail  # type: ignore[method-assign]
            world.server.put(PODS, pod("web"))
            assert await task == FAILED
            assert world.holder() == ""

    play(tmp_path, scenario)
    said = [record for record in caplog.records if "The engine failed" in record.getMessage()]
    assert len(said) == 1
    assert "report" in said[0].getMessage()


# -- looking on -------------------------------------------------------------------------------------------------------


def test_who_only_looks_on_binds_nothing_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(world: World) -> None:
        elects(world)
        process = world.process(shadow=True)
        world.server.put(PODS, pod("web"))
        async with world.running(process):
            await until(lambda: process.session and process.session.watching.synced)
            found = world.server.get(PODS, "web", "default")
            assert found is not None
            found["spec"]["nodeName"] = "n1"
            world.server.put(PODS, found)
            await until(lambda: process.report.compared)
        assert process.report.counts["same"] == 1
        written = [asked.path for asked in world.server.requests if asked.method != "GET"]
        assert [path for path in written if not path.endswith("reviews")] == []

    play(tmp_path, scenario)
    assert capsys.readouterr().out.startswith("1 pods were bound while the shadow watched")


# -- another configuration -------------------------------------------------------------------------------------------


def test_a_new_configuration_is_taken_over_while_it_runs(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        async with world.running(process):
            world.server.put(PODS, pod("old"))
            world.server.put(PODS, pod("new", "another"))
            await world.bound("old")
            world.config.write_text(config_text("another"))
            process.reload()
            await world.bound("new")
            world.server.put(PODS, pod("newer", "another"))
            await world.bound("newer")

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "text", [pytest.param("{", id="no YAML"), pytest.param(config_text(parallelism=-1), id="wrong values")]
)
def test_a_new_configuration_that_is_wrong_changes_nothing(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        async with world.running(process):
            await until(lambda: process.leading)
            session = process.session
            world.config.write_text(text)
            process.reload()
            await until(lambda: any("the old one stays" in record.getMessage() for record in caplog.records))
            world.server.put(PODS, pod("web"))
            await world.bound("web")
            assert process.session is session

    play(tmp_path, scenario)


def test_what_holds_only_after_a_restart_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        async with world.running(process):
            await until(lambda: process.leading)
            elects(world)
            process.reload()
            await until(lambda: any("after a restart" in record.getMessage() for record in caplog.records))

    play(tmp_path, scenario)


def test_an_extender_whose_certificates_cannot_be_had_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        async with world.running(process):
            await until(lambda: process.leading)
            session = process.session
            tls = {"caFile": str(tmp_path / "absent.crt")}
            extender = {"urlPrefix": "https://e/", "filterVerb": "f", "enableHTTPS": True, "tlsConfig": tls}
            world.config.write_text(config_text(extenders=[extender]))
            process.reload()
            await until(lambda: any("the old one stays" in record.getMessage() for record in caplog.records))
            assert process.session is session

    play(tmp_path, scenario)


# -- health ----------------------------------------------------------------------------------------------------------


def test_it_is_ready_when_everything_has_been_seen_and_not_while_it_stops(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        process = world.process()
        checks = {check.name: check for check in process.endpoints.checks()["readyz"]}
        assert checks["informer-sync"].problem()
        async with world.running(process) as task:
            await until(lambda: process.leading)
            assert {name: check.problem() for name, check in checks.items()} == dict.fromkeys(checks, "")
            process.end(OK)
            await task
            assert checks["shutdown"].problem() == "process is shutting down"

    play(tmp_path, scenario)


def test_the_configuration_is_shown_without_private_keys(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        tls = {"keyData": "c2VjcmV0", "insecure": True}
        extender = {"urlPrefix": "https://e/", "filterVerb": "f", "enableHTTPS": True, "tlsConfig": tls}
        world.config.write_text(config_text(extenders=[extender]))
        kind, body = world.process().endpoints.configz()
        assert kind == "application/json"
        assert json.loads(body)["componentconfig"]["kind"] == "KubeSchedulerConfiguration"
        assert b"c2VjcmV0" not in body

    play(tmp_path, scenario)


# -- as a process of its own -----------------------------------------------------------------------------------------


class Child:
    """`situate scheduler`, as anybody runs it."""

    def __init__(self, world: World, *flags: str) -> None:
        kubeconfig = world.folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_of(world.server.url)))
        self._command = [sys.executable, "-m", "situate", "scheduler", f"--kubeconfig={kubeconfig}", "--secure-port=0"]
        self._command += flags
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *self._command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=dict(os.environ)
        )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self) -> tuple[int, str]:
        assert self.process is not None
        _, said = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, said.decode()


def kubeconfig_of(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_with_the_lease_released(tmp_path: Path, number: signal.Signals) -> None:
    async def scenario(world: World) -> None:
        child = Child(world)
        await child.start()
        world.server.put(PODS, pod("web"))
        await world.bound("web")
        assert world.holder()
        child.signal(number)
        code, said = await child.ended()
        assert (code, world.holder()) == (0, "")
        assert "Traceback" not in said

    play(tmp_path, scenario)


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        child = Child(world)
        await child.start()
        world.server.put(PODS, pod("web"))
        await world.bound("web")
        world.server.fault("GET", "/leases/", hang=True, times=9)
        child.signal(signal.SIGTERM)
        await until(lambda: [asked for asked in world.server.asked("GET", "/leases/kube") if not asked.query][1:])
        child.signal(signal.SIGTERM)
        code, said = await child.ended()
        assert code == 1
        assert "A second signal" in said

    play(tmp_path, scenario)


def test_a_hangup_has_the_configuration_read_again(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.server.put(PODS, pod("web"))
        world.server.put(PODS, pod("other", "another"))
        child = Child(world, f"--config={world.config}")
        await child.start()
        await world.bound("web")
        world.config.write_text(config_text("another"))
        child.signal(signal.SIGHUP)
        await world.bound("other")
        child.signal(signal.SIGTERM)
        code, said = await child.ended()
        assert code == 0
        assert said.count("The new configuration is in use") == 1

    play(tmp_path, scenario)


def test_a_port_that_is_taken_ends_it_with_one_line(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        port = world.server.url.rpartition(":")[2]
        child = Child(world, f"--secure-port={port}", "--bind-address=127.0.0.1")
        await child.start()
        code, said = await child.ended()
        assert code == 2
        assert said.splitlines()[-1].startswith(f"error: 127.0.0.1:{port} is already in use")
        assert "Traceback" not in said

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "qps, batch, pause_above", [(50, 500, 250), (-1, 1_024, 1_024), (5_000, 1_024, 1_024), (0, 500, 250), (0.01, 1, 1)]
)
def test_no_more_is_decided_than_can_be_bound_before_a_bind_counts_as_failed(
    qps: float, batch: int, pause_above: int
) -> None:
    assert DecisionPace.at(qps) == DecisionPace(batch, pause_above)
    rate = qps or 50
    assert qps < 0.1 or (batch + pause_above) / rate * 1_000 < BIND_ANSWER_MS


def test_the_default_configuration_elects() -> None:
    assert default_configuration().leader_election.leader_elect
