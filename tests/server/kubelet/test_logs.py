"""Logs of pods, as the server asks for them."""

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from server.placing.world import World, tell
from situate.agent import kubelet_server
from situate.agent.kubelet_server import KubeletServer
from situate.agent.log_writer import LogWriter
from situate.agent.runtime import Run
from situate.server.errors import StatusError
from situate.server.http.ports import LogOptions
from situate.server.kubelet import logs as kubelet_logs
from situate.server.kubelet.connector import FINGERPRINT, KubeletConnector, KubeletTls
from situate.server.kubelet.logs import KubeletLogs
from situate.server.placing.bind_transaction import NODES
from situate.server.registry.stored_object import StoredObject
from situate.server.requests import SYSTEM, Object, Target


class Runtime:
    """Two runs of a container, and their logs."""

    def __init__(self, directory: Path, runs: int) -> None:
        self._directory = directory
        self._runs = [Run(attempt, 0, "exited") for attempt in range(runs)]
        for one in self._runs:
            writer = LogWriter(str(self.log("", "", one.attempt)), 1 << 20, 2)
            writer.write(b"stdout", b"run %d\n" % one.attempt, 0)

    def runs(self, pod: str) -> dict[str, list[Run]]:
        return {"c": self._runs}

    def log(self, pod: str, container: str, attempt: int) -> Path:
        return self._directory / f"{attempt}.log"


def asked(
    tmp_path: Path, options: LogOptions, *, runs: int = 2, runtime: str = "process://1", here: bool = True
) -> str:
    found = b""

    async def story(world: World) -> None:
        nonlocal found
        await world.node()
        await world.pod(nodeName="n1")

        def change(obj: Object, _held: StoredObject) -> Object:
            return {**obj, "status": {**obj["status"], "nodeInfo": {"containerRuntimeVersion": runtime}}}

        await world.registry.modify(Target(NODES, "", "n1"), change, SYSTEM)
        nodes = KubeletConnector(world.registry)
        containers: Any = Runtime(tmp_path, runs)
        pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}}
        async with KubeletServer(containers, lambda: [pod]) as agent:
            if here:
                nodes.local["n1"] = agent.connect
            async for piece in await KubeletLogs(world.registry, nodes).open("default", "p", "c", options):
                found += piece

    tell(story)
    return found.decode()


@pytest.mark.parametrize("follow", [False, True], ids=["as it is", "until its end"])
def test_the_log_of_the_last_run(follow: bool, tmp_path: Path) -> None:
    assert asked(tmp_path, LogOptions(follow=follow)) == "run 1\n"


def test_the_log_of_the_run_before(tmp_path: Path) -> None:
    assert asked(tmp_path, LogOptions(previous=True)) == "run 0\n"


def test_there_may_be_no_run_before(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match='previous terminated container "c" in pod "p" not found'):
        asked(tmp_path, LogOptions(previous=True), runs=1)


def test_a_container_that_has_not_begun_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match="is waiting to start"):
        asked(tmp_path, LogOptions(), runs=0)


def test_what_runs_on_paper_writes_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, LogOptions(), runtime="hollow://1", here=False) == ""


def test_a_node_in_another_process_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(StatusError, match="does not say where its kubelet can be reached"):
        asked(tmp_path, LogOptions(), here=False)


@pytest.mark.parametrize(
    "first, said",
    [
        pytest.param(b"", "the kubelet of node n1 did not send the log", id="says nothing"),
        pytest.param(b"HTTP/1.1 400 Bad Request\r\n\r\n", "xxx", id="says no without end"),
        pytest.param(
            b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\n\r\n", "xxx", id="sends the server elsewhere"
        ),
    ],
)
def test_an_agent_that_does_not_answer_as_it_should_is_not_heard_out(
    first: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubelet_logs, "ANSWER_S", 0.5)
    sent = 0

    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with suppress(ConnectionError):
            writer.write(first)
            while first:
                writer.write(b"x" * 65_536)
                sent += 65_536
                await writer.drain()
            await asyncio.sleep(60)

    async def story(world: World) -> None:
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        fingerprint = kubelet_server._make(tmp_path / "pem")
        own.load_cert_chain(tmp_path / "pem")
        agent = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=own)
        await world.node()
        await world.pod(nodeName="n1")

        def change(obj: Object, _held: StoredObject) -> Object:
            endpoints = {"kubeletEndpoint": {"Port": agent.sockets[0].getsockname()[1]}}
            where = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": endpoints}
            named = {**obj["metadata"], "annotations": {FINGERPRINT: fingerprint}}
            return {**obj, "metadata": named, "status": {**obj["status"], **where}}

        await world.registry.modify(Target(NODES, "", "n1"), change, SYSTEM)
        nodes = KubeletConnector(world.registry, KubeletTls())
        async with asyncio.timeout(5.0):
            with pytest.raises(StatusError, match=said):
                await KubeletLogs(world.registry, nodes).open("default", "p", "c", LogOptions())
        agent.close()

    tell(story)
    assert sent < 32 << 20
