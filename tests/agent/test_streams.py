"""exec and attach on a process node: commands in a container, over the channels of a WebSocket."""

import json
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent.world import FakePlane, agent_of, pod, processes_with, running, shell, story, until
from situate.agent.channels import CLOSE, ERROR, PROTOCOLS, RESIZE, STDERR, STDIN, STDOUT
from situate.agent.kubelet_server import NO_STDIN

Ask = Callable[..., Awaitable[tuple[dict[int, bytes], dict[str, Any]]]]


@asynccontextmanager
async def node(tmp_path: Path, script: str) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of an agent with one pod."""
    plane = FakePlane()
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # a socket's path may have 108 bytes only
        async with running(agent_of(plane, tmp_path / "node")) as agent:
            plane.put(pod(shell(script)))
            await until(lambda: "running" in (plane.state().get("state") or {}))
            await web.UnixSite(agent.server._runner, f"{short}/s").start()
            async with aiohttp.ClientSession("http://node", connector=aiohttp.UnixConnector(f"{short}/s")) as client:
                yield client


def told(tmp_path: Path, script: str, tale: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with node(tmp_path, script) as client:
            await tale(client)

    story(whole)


def path(kind: str, *command: str, **options: int) -> str:
    query = "&".join([f"{name}={value}" for name, value in options.items()] + [f"command={one}" for one in command])
    return f"/{kind}/default/p/c?{query}"


async def ask(
    client: aiohttp.ClientSession, where: str, *messages: bytes, protocols: Sequence[str] = PROTOCOLS
) -> tuple[dict[int, bytes], dict[str, Any]]:
    """What came on each channel, and the Status at the end."""
    came: dict[int, bytes] = {}
    async with client.ws_connect(where, protocols=protocols) as socket:
        for message in messages:
            await socket.send_bytes(message)
        async for answer in socket:
            came[answer.data[0]] = came.get(answer.data[0], b"") + answer.data[1:]
    return came, json.loads(came.pop(ERROR))


def test_a_command_runs_in_the_container_and_says_how_it_ended(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        script = "basename $(dirname $SITUATE_POD_DIR); echo no >%262; exit 3"
        came, status = await ask(client, path("exec", "sh", "-c", script, output=1, error=1))
        assert came == {STDOUT: b"uid-p\n", STDERR: b"no\n"}
        assert status["reason"] == "NonZeroExitCode"
        assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]

    told(tmp_path, "exec sleep 60", tale)


def test_a_command_reads_what_the_user_types_until_its_end(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        text = b"x" * 200_000
        sent = [bytes((STDIN,)) + text[:100_000], bytes((STDIN,)) + text[100_000:], bytes((CLOSE, STDIN))]
        came, status = await ask(client, path("exec", "wc", "-c", input=1, output=1), *sent)
        assert (came[STDOUT].strip(), status["status"]) == (b"200000", "Success")

    told(tmp_path, "exec sleep 60", tale)


def test_a_command_can_have_a_terminal_of_the_users_size(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        size = bytes((RESIZE,)) + b'{"Width": 132, "Height": 43}'
        came, _ = await ask(
            client,
            path("exec", "sh", "-c", "read x; stty size; test -t 2 %26%26 echo all", input=1, output=1, tty=1),
            size,
            bytes((STDIN,)) + b"go\n",
        )
        assert came[STDOUT].decode().splitlines()[-2:] == ["43 132", "all"]

    told(tmp_path, "exec sleep 60", tale)


@pytest.mark.parametrize(
    "command, why",
    [(("no-such-command",), "executable file not found in $PATH"), ((), "the command is missing")],
    ids=["no such program", "nothing"],
)
def test_a_command_that_cannot_start_says_why(command: tuple[str, ...], why: str, tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        _, status = await ask(client, path("exec", *command, output=1))
        assert (status["reason"], why in status["message"]) == ("InternalError", True)

    told(tmp_path, "exec sleep 60", tale)


def test_a_command_ends_with_its_user(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        mark = f"left-{tmp_path.parent.name}-{tmp_path.name}"
        async with client.ws_connect(path("exec", "sh", "-c", f"sleep 60; : {mark}", input=1), protocols=PROTOCOLS):
            await until(lambda: processes_with(mark))
        await until(lambda: not processes_with(mark))

    told(tmp_path, "exec sleep 60", tale)


def test_who_attaches_sees_what_the_container_writes_from_then_on(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        async with client.ws_connect(path("attach", output=1, error=1), protocols=PROTOCOLS) as socket:
            came = [bytes((await socket.receive()).data) for _ in range(4)]
        assert {(one[0], line) for one in came for line in one[1:].split()} == {(STDOUT, b"out"), (STDERR, b"err")}

    told(tmp_path, "while sleep 0.1; do echo out; echo err >&2; done", tale)


def test_a_container_has_no_stdin_to_attach_to(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        async with client.get(path("attach", input=1)) as answer:
            assert (answer.status, await answer.text()) == (400, NO_STDIN)

    told(tmp_path, "exec sleep 60", tale)


def test_a_client_that_speaks_spdy_hears_what_to_use(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        headers = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
        async with client.post(path("exec", "true", output=1), headers=headers) as answer:
            assert answer.status == 400
            assert "WebSocket only" in await answer.text()

    told(tmp_path, "exec sleep 60", tale)


def test_a_command_ends_with_its_container(tmp_path: Path) -> None:
    async def tale(client: aiohttp.ClientSession) -> None:
        _, status = await ask(client, path("exec", "sleep", "60", output=1))
        assert status["status"] == "Failure"

    told(tmp_path, "sleep 1; exit 1", tale)
