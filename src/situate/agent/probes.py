"""Probes of a container: asked by command, by TCP or by HTTP, counted by their thresholds.

What they say of a run is its Health. A startup probe has to be content before the others are asked; one that fails too
often, and a liveness probe that does, condemn the run. A probe that hangs is given up after its timeout.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import aiohttp

from situate.agent.runtime import RunError, Runtime

__all__ = ["ProbeTarget", "ContainerHealth", "Probe", "ProbeStreak", "count_result", "probe_of", "run_probes"]

SUCCESS_CODES: Final = range(200, 400)
LONGEST_TEXT: Final = 1_024
KINDS: Final = ("startup", "readiness", "liveness")


@dataclass(frozen=True, slots=True)
class Probe:
    handler: Mapping[str, Any]
    delay_s: float = 0.0
    period_s: float = 10.0
    timeout_s: float = 1.0
    successes: int = 1
    failures: int = 3


def probe_of(spec: Mapping[str, Any]) -> Probe:
    return Probe(
        spec,
        float(spec.get("initialDelaySeconds", 0)),
        float(spec.get("periodSeconds", 10)),
        float(spec.get("timeoutSeconds", 1)),
        spec.get("successThreshold", 1),
        spec.get("failureThreshold", 3),
    )


@dataclass(frozen=True, slots=True)
class ProbeStreak:
    """How a probe counts: what it stands at, and how many answers in a row were alike."""

    stands: bool
    last: bool | None = None
    row: int = 0


def count_result(tally: ProbeStreak, answer: bool, probe: Probe) -> ProbeStreak:
    row = tally.row + 1 if tally.last is answer else 1
    enough = row >= (probe.successes if answer else probe.failures)
    return ProbeStreak(answer if enough else tally.stands, answer, row)


@dataclass(frozen=True, slots=True)
class ContainerHealth:
    """What the probes of a run say of it."""

    started: bool
    ready: bool
    condemned: str = ""
    """Which probe wants it to end, and its last word."""


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """Whom to ask."""

    runtime: Runtime
    http: aiohttp.ClientSession
    pod: str
    container: str
    host: str
    ports: Mapping[str | int, int]
    """Where what the container calls its ports really is, by name and by number."""


async def run_probes(
    container: Mapping[str, Any],
    asked: ProbeTarget,
    tell: Callable[[ContainerHealth], None],
    complain: Callable[[str, str], None],
) -> None:
    """Ask all probes of a run, until cancelled. `tell` hears each change, `complain` each no: (kind, text)."""
    health = ContainerHealth(started="startupProbe" not in container, ready="readinessProbe" not in container)

    def say(**news: Any) -> None:
        nonlocal health
        if (new := replace(health, **news)) != health:
            health = new
            tell(health)

    tell(replace(health, ready=health.started and health.ready))
    if "startupProbe" in container:
        health = replace(health, ready=False)
        why = await _until_decided(probe_of(container["startupProbe"]), asked, complain)
        if why:
            say(condemned=f"Container {asked.container} failed startup probe, will be restarted")
            return
        say(started=True, ready="readinessProbe" not in container)
    async with asyncio.TaskGroup() as group:
        if "readinessProbe" in container:
            probe = probe_of(container["readinessProbe"])
            group.create_task(_ask(probe, asked, "Readiness", False, complain, lambda yes: say(ready=yes)))
        if "livenessProbe" in container:
            probe, text = probe_of(container["livenessProbe"]), "failed liveness probe, will be restarted"
            doom = f"Container {asked.container} {text}"
            group.create_task(
                _ask(probe, asked, "Liveness", True, complain, lambda yes: say(condemned="" if yes else doom))
            )


async def _until_decided(probe: Probe, asked: ProbeTarget, complain: Callable[[str, str], None]) -> str:
    """Of a startup probe: empty when it is content, else its last word when it has failed too often."""
    tally = ProbeStreak(stands=False)
    await asyncio.sleep(probe.delay_s)
    while True:
        problem = await probe_once(probe, asked)
        tally = count_result(tally, not problem, probe)
        if problem:
            complain("Startup", problem)
            if tally.row >= probe.failures:
                return problem
        elif tally.stands:
            return ""
        await asyncio.sleep(probe.period_s)


async def _ask(
    probe: Probe,
    asked: ProbeTarget,
    kind: str,
    begins: bool,
    complain: Callable[[str, str], None],
    say: Callable[[bool], None],
) -> None:
    tally = ProbeStreak(stands=begins)
    await asyncio.sleep(probe.delay_s)
    while True:
        problem = await probe_once(probe, asked)
        tally = count_result(tally, not problem, probe)
        if problem:
            complain(kind, problem)
        say(tally.stands)
        await asyncio.sleep(probe.period_s)


async def probe_once(probe: Probe, asked: ProbeTarget) -> str:
    """Ask once; empty if all is well."""
    handler = probe.handler
    try:
        if "exec" in handler:
            return await _exec(handler["exec"].get("command", ()), asked, probe.timeout_s)
        async with asyncio.timeout(probe.timeout_s):
            if "tcpSocket" in handler:
                return await _tcp(handler["tcpSocket"], asked)
            if "httpGet" in handler:
                return await _http(handler["httpGet"], asked)
    except TimeoutError:
        return f"timed out after {probe.timeout_s:g}s"
    except (OSError, ValueError, RunError, aiohttp.ClientError) as error:
        return _words(error)[:LONGEST_TEXT]
    return "this node asks by exec, tcpSocket and httpGet only"


def _words(error: Exception) -> str:
    """In the system's words, where it has some."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and isinstance(cause.errno, int) and cause.errno > 0:
        return os.strerror(cause.errno).lower()
    return str(error) or type(error).__name__


async def _exec(command: Any, asked: ProbeTarget, timeout_s: float) -> str:
    done = await asked.runtime.execute(asked.pod, asked.container, tuple(command), timeout_s)
    return "" if not done.code else done.output.strip()[:LONGEST_TEXT] or f"exit code {done.code}"


async def _tcp(action: Mapping[str, Any], asked: ProbeTarget) -> str:
    _, writer = await asyncio.open_connection(action.get("host") or asked.host, _port(action, asked))
    writer.close()
    return ""


async def _http(action: Mapping[str, Any], asked: ProbeTarget) -> str:
    scheme = action.get("scheme", "HTTP").lower()
    host = action.get("host") or asked.host
    where = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{where}:{_port(action, asked)}/{action.get('path', '/').lstrip('/')}"
    headers = [(one["name"], one.get("value", "")) for one in action.get("httpHeaders", ())]
    # As a kubelet: who answers is the container, whatever its certificate says.
    async with asked.http.get(url, headers=headers, allow_redirects=False, ssl=scheme != "https") as answer:
        return "" if answer.status in SUCCESS_CODES else f"HTTP probe failed with statuscode: {answer.status}"


def _port(action: Mapping[str, Any], asked: ProbeTarget) -> int:
    said = action.get("port", 0)
    found = asked.ports.get(said)
    if found is None and isinstance(said, str) and not said.isdigit():
        raise RunError(f"the container has no port {said}")
    return int(said) if found is None else found
