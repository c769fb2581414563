"""Probes of a container by exec, TCP or HTTP, with the thresholds of Kubernetes.

Readiness and liveness probes start when the startup probe has succeeded. If the startup or the liveness probe fails too
often, the container is restarted. A probe that hangs fails after its timeout.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import aiohttp

from situate.agent.runtime import RunError, Runtime

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
    """The defaults also stand for values that are not positive: 0 means unset, and a server rejects the others."""

    def said(name: str, default: float) -> float:
        value = float(spec.get(name) or 0)
        return value if value > 0 else default

    return Probe(
        spec,
        said("initialDelaySeconds", 0),
        said("periodSeconds", 10),
        said("timeoutSeconds", 1),
        int(said("successThreshold", 1)),
        int(said("failureThreshold", 3)),
    )


@dataclass(frozen=True, slots=True)
class ProbeStreak:
    """The result of a probe after its thresholds, and how often in a row the last answer came."""

    result: bool
    last: bool | None = None
    row: int = 0


def count_result(streak: ProbeStreak, answer: bool, probe: Probe) -> ProbeStreak:
    row = streak.row + 1 if streak.last is answer else 1
    enough = row >= (probe.successes if answer else probe.failures)
    return ProbeStreak(answer if enough else streak.result, answer, row)


@dataclass(frozen=True, slots=True)
class ContainerHealth:
    """What the probes of a run have found."""

    started: bool
    ready: bool
    failure: str = ""
    """Why the container must be restarted."""


NOT_STARTED: Final = ContainerHealth(started=False, ready=False)


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    runtime: Runtime
    http: aiohttp.ClientSession
    pod: str
    container: str
    host: str
    ports: Mapping[str | int, int]
    """The real ports, by the names and numbers that the container declares."""


async def run_probes(
    container: Mapping[str, Any],
    target: ProbeTarget,
    changed: Callable[[ContainerHealth], None],
    failed: Callable[[str, str], None],
) -> None:
    """Run all probes of a container until cancelled. `changed` gets every new health, `failed` every failed probe as
    (kind, message)."""
    health = ContainerHealth(started="startupProbe" not in container, ready="readinessProbe" not in container)

    def set_health(**news: Any) -> None:
        nonlocal health
        if (new := replace(health, **news)) != health:
            health = new
            changed(health)

    changed(replace(health, ready=health.started and health.ready))
    if "startupProbe" in container:
        health = replace(health, ready=False)
        why = await _until_decided(probe_of(container["startupProbe"]), target, failed)
        if why:
            set_health(failure=f"Container {target.container} failed startup probe, will be restarted")
            return
        set_health(started=True, ready="readinessProbe" not in container)
    async with asyncio.TaskGroup() as group:
        if "readinessProbe" in container:
            probe = probe_of(container["readinessProbe"])
            group.create_task(_probe(probe, target, "Readiness", False, failed, lambda ok: set_health(ready=ok)))
        if "livenessProbe" in container:
            probe, text = probe_of(container["livenessProbe"]), "failed liveness probe, will be restarted"
            failure = f"Container {target.container} {text}"
            group.create_task(
                _probe(probe, target, "Liveness", True, failed, lambda ok: set_health(failure="" if ok else failure))
            )


async def _until_decided(probe: Probe, target: ProbeTarget, failed: Callable[[str, str], None]) -> str:
    """Run a startup probe: empty if it succeeded, else its last problem."""
    streak = ProbeStreak(result=False)
    await asyncio.sleep(probe.delay_s)
    while True:
        problem = await probe_once(probe, target)
        streak = count_result(streak, not problem, probe)
        if problem:
            failed("Startup", problem)
            if streak.row >= probe.failures:
                return problem
        elif streak.result:
            return ""
        await asyncio.sleep(probe.period_s)


async def _probe(
    probe: Probe,
    target: ProbeTarget,
    kind: str,
    initial: bool,
    failed: Callable[[str, str], None],
    set_result: Callable[[bool], None],
) -> None:
    streak = ProbeStreak(result=initial)
    await asyncio.sleep(probe.delay_s)
    while True:
        problem = await probe_once(probe, target)
        streak = count_result(streak, not problem, probe)
        if problem:
            failed(kind, problem)
        set_result(streak.result)
        await asyncio.sleep(probe.period_s)


async def probe_once(probe: Probe, target: ProbeTarget) -> str:
    """The problem that one probe found; empty: none."""
    handler = probe.handler
    try:
        if "exec" in handler:
            return await _exec(handler["exec"].get("command", ()), target, probe.timeout_s)
        async with asyncio.timeout(probe.timeout_s):
            if "tcpSocket" in handler:
                return await _tcp(handler["tcpSocket"], target)
            if "httpGet" in handler:
                return await http_problem(handler["httpGet"], target)
    except TimeoutError:
        return f"timed out after {probe.timeout_s:g}s"
    except Exception as error:  # noqa: BLE001 - a probe that cannot be performed has failed
        return _message(error)[:LONGEST_TEXT]
    return "this node supports exec, tcpSocket and httpGet probes only"


def _message(error: Exception) -> str:
    """The operating system's message, if there is one."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and isinstance(cause.errno, int) and cause.errno > 0:
        return os.strerror(cause.errno).lower()
    return str(error) or type(error).__name__


async def _exec(command: Any, target: ProbeTarget, timeout_s: float) -> str:
    done = await target.runtime.execute(target.pod, target.container, tuple(command), timeout_s)
    return "" if not done.code else done.output.strip()[:LONGEST_TEXT] or f"exit code {done.code}"


async def _tcp(action: Mapping[str, Any], target: ProbeTarget) -> str:
    _, writer = await asyncio.open_connection(action.get("host") or target.host, _port(action, target))
    writer.close()
    return ""


async def http_problem(action: Mapping[str, Any], target: ProbeTarget) -> str:
    """Why the request failed; empty if it succeeded."""
    scheme = action.get("scheme", "HTTP").lower()
    host = action.get("host") or target.host
    where = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{where}:{_port(action, target)}/{action.get('path', '/').lstrip('/')}"
    headers = [(one["name"], one.get("value", "")) for one in action.get("httpHeaders", ())]
    # Like the kubelet: do not verify the certificate.
    async with target.http.get(url, headers=headers, allow_redirects=False, ssl=scheme != "https") as answer:
        return "" if answer.status in SUCCESS_CODES else f"HTTP probe failed with statuscode: {answer.status}"


def _port(action: Mapping[str, Any], target: ProbeTarget) -> int:
    said = action.get("port", 0)
    found = target.ports.get(said)
    if found is None and isinstance(said, str) and not said.isdigit():
        raise RunError(f"the container has no port {said}")
    return int(said) if found is None else found
