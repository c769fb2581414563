"""Hooks: what is run, and what is told of one that fails."""

from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent.world import story
from situate.agent.hooks import HookError, run_hook
from situate.agent.probes import ProbeTarget
from situate.agent.runtime import ExecResult


class FakeRuntime:
    async def execute(self, pod: str, container: str, argv: Any, timeout_s: float | None) -> ExecResult:
        return ExecResult(0 if argv[0] == "true" else 3, "it said this\n")


async def page(_: web.Request) -> web.Response:
    return web.Response()


def outcome(hook: dict[str, Any], timeout_s: float | None = None) -> str:
    """What is wrong, beside a server on a free port that has the name `web`."""
    found = ""

    async def told() -> None:
        nonlocal found
        application = web.Application()
        application.router.add_get("/ok", page)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession() as session:
            runtime: Any = FakeRuntime()
            target = ProbeTarget(runtime, session, "u", "c", "127.0.0.1", {"web": runner.addresses[0][1]})
            try:
                await run_hook(hook, target, timeout_s)
            except HookError as error:
                found = str(error)
        await runner.cleanup()

    story(told)
    return found


@pytest.mark.parametrize(
    "hook, problem",
    [
        pytest.param({"exec": {"command": ["true"]}}, "", id="a command that succeeds"),
        pytest.param({"exec": {"command": ["false"]}}, "exit code 3: it said this", id="a command that fails"),
        pytest.param({"httpGet": {"port": "web", "path": "/ok"}}, "", id="a page that is there"),
        pytest.param({"httpGet": {"port": "web", "path": "/none"}}, "404", id="a page that is not"),
        pytest.param({"sleep": {"seconds": 0}}, "", id="a nap"),
        pytest.param({"tcpSocket": {"port": 1}}, "this node supports exec, httpGet and sleep hooks only", id="another"),
    ],
)
def test_a_hook(hook: dict[str, Any], problem: str) -> None:
    found = outcome(hook)
    assert problem in found
    assert bool(found) == bool(problem)


def test_a_hook_that_takes_too_long_fails() -> None:
    assert outcome({"sleep": {"seconds": 100}}, 0.01) == "it took too long"
