"""Probes: what is counted, and what is asked."""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent.world import story
from situate.agent.probes import Probe, ProbeStreak, ProbeTarget, count_result, probe_of, probe_once


@pytest.mark.parametrize(
    "answers, result",
    [
        pytest.param("y", [True], id="one yes is enough"),
        pytest.param("ynn", [True, True, True], id="two noes are not"),
        pytest.param("ynnn", [True, True, True, False], id="three are"),
        pytest.param("nnynnn", [False, False, True, True, True, False], id="they have to be in a row"),
    ],
)
def test_thresholds(answers: str, result: list[bool]) -> None:
    probe, tally, seen = Probe({}, successes=1, failures=3), ProbeStreak(result=False), []
    for answer in answers:
        tally = count_result(tally, answer == "y", probe)
        seen.append(tally.result)
    assert seen == result


def test_what_is_not_said_is_as_in_kubernetes() -> None:
    probe = probe_of({"tcpSocket": {"port": 1}})
    assert (probe.delay_s, probe.period_s, probe.timeout_s, probe.successes, probe.failures) == (0, 10, 1, 1, 3)


def asked_of(session: aiohttp.ClientSession, **ports: int) -> ProbeTarget:
    return ProbeTarget(None, session, "u", "c", "127.0.0.1", ports)  # type: ignore[arg-type]


def answered(handler: dict[str, Any], status: int = 200, wait_s: float = 0.0) -> str:
    """What is wrong, asked of a server on a free port that has the name `web`."""
    found = ""

    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(wait_s)
        return web.Response(status=status if request.path == "/ok" else 404)

    async def told() -> None:
        nonlocal found
        application = web.Application()
        application.router.add_get("/{any:.*}", answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        async with aiohttp.ClientSession() as session:
            asked = asked_of(session, web=runner.addresses[0][1])
            found = await probe_once(Probe(handler, timeout_s=0.3), asked)
        await runner.cleanup()

    story(told)
    return found


@pytest.mark.parametrize(
    "status, problem",
    [(200, ""), (302, ""), (399, ""), (400, "HTTP probe failed with statuscode: 400"), (503, "503")],
)
def test_http_answers(status: int, problem: str) -> None:
    found = answered({"httpGet": {"port": "web", "path": "/ok"}}, status)
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_port_that_is_open_answers() -> None:
    assert answered({"tcpSocket": {"port": "web"}}) == ""


def test_a_server_that_takes_too_long_has_not_answered() -> None:
    assert answered({"httpGet": {"port": "web", "path": "/ok"}}, wait_s=5) == "timed out after 0.3s"


@pytest.mark.parametrize(
    "handler, problem",
    [
        ({"httpGet": {"port": "none"}}, "the container has no port none"),
        ({"tcpSocket": {"port": "none"}}, "the container has no port none"),
        ({"tcpSocket": {"port": 1}}, "refused"),
        ({"httpGet": {"port": 1}}, "refused"),
        ({"grpc": {"port": 1}}, "this node supports exec, tcpSocket and httpGet probes only"),
    ],
)
def test_what_does_not_answer_says_why(handler: dict[str, Any], problem: str) -> None:
    assert problem in answered(handler)
