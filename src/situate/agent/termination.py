"""Stops one container of a pod: preStop hook, SIGTERM, and SIGKILL when its grace period is over."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from situate.agent.hooks import HookError, run_hook
from situate.agent.probes import ProbeTarget
from situate.agent.runtime import Run

if TYPE_CHECKING:
    from situate.agent.worker import WorkerContext

GRACE_S: Final = 30
POLL_S: Final = 0.03
"""How often to look whether the container has stopped."""
SECOND_NS: Final = 1_000_000_000


class ContainerTermination:
    """Stops one run of a container. A restart of the container is not its concern."""

    def __init__(
        self,
        context: WorkerContext,
        pod: Callable[[], Mapping[str, Any]],
        spec: Mapping[str, Any],
        target: ProbeTarget,
    ) -> None:
        """`pod` returns the pod as last seen: whoever deletes it may shorten its grace period."""
        self._target = target
        self._context = context
        self._pod = pod
        self._spec = spec
        self._runtime = context.runtime
        self._uid: str = pod()["metadata"]["uid"]
        self._name: str = spec["name"]
        self._attempt = self._last().attempt

    async def run(self) -> None:
        while self._is_running() and self._last().state == "starting":
            await asyncio.sleep(POLL_S)
        begun = self._now()
        left = self._deadline(begun) - begun
        if left > 0 and self._is_running():
            await self._run_pre_stop(left)
            if self._is_running():
                self._runtime.terminate(self._uid, self._name)
        while self._is_running():
            if self._now() >= self._deadline(begun):
                self._runtime.kill(self._uid, self._name)
            await asyncio.sleep(POLL_S)

    def _now(self) -> float:
        return self._context.wall_ns() / SECOND_NS

    def _last(self) -> Run:
        return self._runtime.runs(self._uid)[self._name][-1]

    def _is_running(self) -> bool:
        last = self._last()
        return last.attempt == self._attempt and not last.is_over

    def _deadline(self, begun: float) -> float:
        """When to kill a container whose termination began at `begun`."""
        pod, limit = self._pod(), self._context.stop_within_s()
        if limit is not None:
            return begun + limit
        meta = pod["metadata"]
        own: int = pod["spec"].get("terminationGracePeriodSeconds", GRACE_S)
        if "deletionTimestamp" not in meta:
            return begun + own
        grace: int = meta.get("deletionGracePeriodSeconds", own)
        # The timestamp has whole seconds, and may be older than this agent.
        return min(begun + grace, _timestamp(meta["deletionTimestamp"]) + 1 if grace else 0.0)

    async def _run_pre_stop(self, grace_s: float) -> None:
        hook = (self._spec.get("lifecycle") or {}).get("preStop") or {}
        if not hook:
            return
        try:
            await run_hook(hook, self._target, grace_s)
        except HookError as error:
            text = f"PreStopHook failed: {error}"
            self._context.recorder.record(self._pod(), "Warning", "FailedPreStopHook", text, self._name)


def _timestamp(text: str) -> float:
    """In seconds; a time that Python cannot represent counts as far in the future."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return math.inf
