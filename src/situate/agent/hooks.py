"""Runs the lifecycle hooks of a container: exec, httpGet and sleep. Commands run as part of the container."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp

from situate.agent.probes import LONGEST_TEXT, ProbeTarget, http_problem
from situate.agent.runtime import RunError


class HookError(Exception):
    """A hook failed; the message is one line."""


async def run_hook(hook: Mapping[str, Any], target: ProbeTarget, timeout_s: float | None = None) -> None:
    """Raises HookError. None: the hook may take as long as the container lives."""
    try:
        async with asyncio.timeout(timeout_s):
            await _run(hook, target, timeout_s)
    except TimeoutError:
        raise HookError("it took too long") from None
    except (OSError, ValueError, RunError, aiohttp.ClientError) as error:
        raise HookError((str(error) or type(error).__name__)[:LONGEST_TEXT]) from None


async def _run(hook: Mapping[str, Any], target: ProbeTarget, timeout_s: float | None) -> None:
    if "exec" in hook:
        command = tuple(hook["exec"].get("command", ()))
        done = await target.runtime.execute(target.pod, target.container, command, timeout_s)
        if done.code:
            raise HookError(f"exit code {done.code}: {done.output.strip()}"[:LONGEST_TEXT])
    elif "sleep" in hook:
        await asyncio.sleep(hook["sleep"].get("seconds", 0))
    elif "httpGet" in hook:
        if problem := await http_problem(hook["httpGet"], target):
            raise HookError(problem)
    else:
        raise HookError("this node supports exec, httpGet and sleep hooks only")
