"""Probes: what is counted, and what is asked."""

import asyncio
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agent.world import story
from situate.agent.probes import (
    LONGEST_TEXT,
    ContainerHealth,
    Probe,
    ProbeStreak,
    ProbeTarget,
    count_result,
    probe_of,
    probe_once,
    run_probes,
)
from situate.agent.runtime import ExecResult, RunError
from situate.sim.nodes.virtual_time import VirtualLoop


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


@pytest.mark.parametrize("value, delay", [(0, 0), (-1, 0), (3, 3), (0.5, 0.5), (None, 0)])
def test_only_positive_times_count(value: Any, delay: float) -> None:
    assert probe_of({"initialDelaySeconds": value}).delay_s == delay
    assert probe_of({"periodSeconds": value}).period_s == (delay or 10)


class Commands:
    """A runtime whose commands answer as they are told, and when they were asked."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.answers: dict[str, list[ExecResult | Exception]] = {}
        self.asked: list[tuple[str, float]] = []

    async def execute(self, _pod: str, _container: str, argv: tuple[str, ...], _timeout_s: float) -> ExecResult:
        self.asked.append((argv[0], round(self.loop.now, 1)))
        answer = self.answers[argv[0]].pop(0) if self.answers.get(argv[0]) else ExecResult(0, "")
        if isinstance(answer, Exception):
            raise answer
        return answer


NO = ExecResult(1, "no\n")
YES = ExecResult(0, "")


def probed(
    seconds: float, answers: dict[str, list[ExecResult | Exception]], **probes: dict[str, Any]
) -> tuple[list[tuple[float, ContainerHealth]], list[tuple[str, str]], Commands]:
    """Every new health with its time, every failure, and what was asked in this time."""
    loop = VirtualLoop()
    commands, health, failures = Commands(loop), list[tuple[float, ContainerHealth]](), list[tuple[str, str]]()
    commands.answers = answers
    container = {kind: {"exec": {"command": [kind]}, **said} for kind, said in probes.items()}

    async def run() -> None:
        target = ProbeTarget(commands, None, "u", "c", "127.0.0.1", {})  # type: ignore[arg-type]
        running = asyncio.create_task(
            run_probes(
                container,
                target,
                lambda new: health.append((round(loop.now, 1), new)),
                lambda kind, text: failures.append((kind, text)),
            )
        )
        await asyncio.sleep(seconds)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return health, failures, commands


def test_without_probes_a_container_has_started_and_is_ready() -> None:
    health, _, _ = probed(5, {})
    assert health == [(0, ContainerHealth(started=True, ready=True))]


def test_readiness_waits_for_the_startup_probe_and_liveness_does_too() -> None:
    health, failures, commands = probed(
        12,
        {"startupProbe": [NO, NO]},
        startupProbe={"periodSeconds": 2, "initialDelaySeconds": 1},
        readinessProbe={"periodSeconds": 5},
        livenessProbe={"periodSeconds": 5, "initialDelaySeconds": 1},
    )
    assert health == [
        (0, ContainerHealth(started=False, ready=False)),
        (5, ContainerHealth(started=True, ready=False)),
        (5, ContainerHealth(started=True, ready=True)),
    ]
    assert failures == [("Startup", "no")] * 2
    assert commands.asked == [
        ("startupProbe", 1), ("startupProbe", 3), ("startupProbe", 5), ("readinessProbe", 5), ("livenessProbe", 6),
        ("readinessProbe", 10), ("livenessProbe", 11),
    ]  # fmt: skip


def test_a_container_with_a_startup_probe_only_is_ready_when_it_has_started() -> None:
    health, _, _ = probed(5, {}, startupProbe={})
    assert health[-1:] == [(0, ContainerHealth(started=True, ready=True))]
    assert not health[0][1].ready


def test_a_startup_probe_that_fails_too_often_condemns_the_container_and_no_other_probe_begins() -> None:
    health, failures, commands = probed(
        60, {"startupProbe": [NO] * 9}, startupProbe={"periodSeconds": 2, "failureThreshold": 2}, livenessProbe={}
    )
    text = "Container c failed startup probe, will be restarted"
    assert health[-1:] == [(2, ContainerHealth(started=False, ready=False, failure=text))]
    assert len(failures) == 2
    assert commands.asked == [("startupProbe", 0), ("startupProbe", 2)]


def test_a_liveness_probe_condemns_after_its_threshold_and_takes_that_back() -> None:
    health, failures, _ = probed(
        8, {"livenessProbe": [YES, NO, NO, YES]}, livenessProbe={"periodSeconds": 2, "failureThreshold": 2}
    )
    well = ContainerHealth(started=True, ready=True)
    text = "Container c failed liveness probe, will be restarted"
    assert health == [(0, well), (4, ContainerHealth(started=True, ready=True, failure=text)), (6, well)]
    assert failures == [("Liveness", "no")] * 2


def test_what_a_command_says_is_cut() -> None:
    long = "x" * 2 * LONGEST_TEXT
    answers: list[ExecResult | Exception] = [
        ExecResult(1, long), ExecResult(7, " "), RunError(long), TimeoutError(), RunError(""), PermissionError(13, "x"),
    ]  # fmt: skip
    _, failures, _ = probed(6, {"readinessProbe": answers}, readinessProbe={"periodSeconds": 1})
    cut = "x" * LONGEST_TEXT
    texts = [cut, "exit code 7", cut, "timed out after 1s", "RunError", "permission denied"]
    assert [text for _, text in failures] == texts
