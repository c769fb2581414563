"""What is made ready for reserved pods before their binds, whatever it is: volumes, or devices.

One attempt at a time counts for a pod: the last that the engine asked for. Its reads and writes run in the pod's lane,
so those of an earlier attempt come first. What is written may take long to be ready: that is a wait, which occupies no
lane and is looked at when the engine has heard of a change, and every LOOK_S.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

from situate.core.changes import PodRef
from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.loop.scheduling.lanes import Lanes
from situate.loop.scheduling.port import NOT_LEADER, STOPPING
from situate.loop.scheduling.view import EngineView

TIMEOUT_S: Final = 600.0
"""How long a wait may take, where no profile says otherwise: bindTimeoutSeconds and bindingTimeout."""
LOOK_S: Final = 1.0
"""How often to look at what is waited for while the engine hears of no change."""

_log = Log(__name__)


class PreBindEffect(Protocol):
    @property
    def pod(self) -> PodRef: ...
    @property
    def attempt(self) -> int: ...


E = TypeVar("E", bound=PreBindEffect)
W = TypeVar("W")


@dataclass(slots=True, eq=False)
class _Job:
    kind: str
    pod: PodRef
    run: Callable[[], Awaitable[None]]
    failed: Callable[[str], None]


class PreBindAttempts(Generic[E, W]):
    """The attempts of all pods for one kind of work, and what they wait for. Lives in the running event loop."""

    def __init__(
        self,
        kind: str,
        limit: int,
        objects: EngineView,
        may_write: Callable[[], bool],
        *,
        version: Callable[[], int],
        look_at: Callable[[W], None],
        end: Callable[[E, str], None],
        timeouts_s: Mapping[str, float] | None = None,
    ) -> None:
        """`limit`: how many pieces of work run at a time. `version` moves when something that is waited for may have
        changed; then `look_at` is called for each wait. `end` answers for an attempt that did not end by itself, and
        says why. `timeouts_s`: by the name of the pod's scheduler."""
        self._kind = kind
        self._objects = objects
        self._may_write = may_write
        self._version = version
        self._look_at = look_at
        self._end = end
        self._timeouts_s = timeouts_s or {}
        self._lanes: Lanes[_Job] = Lanes({kind: (limit, self._run)})
        self._current: dict[str, E] = {}
        """By the pod's uid: what has no answer yet."""
        self._waits: dict[str, W] = {}
        """By the pod's uid: those whose work is done, and who wait."""
        self._looked_at = -1
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def busy(self) -> bool:
        """Whether reads or writes wait or run. What is waited for does not count."""
        return self._lanes.busy

    @property
    def writing(self) -> int:
        """For how many pods something is still to be written."""
        return len(self._current) - len(self._waits)

    @property
    def refusal(self) -> str:
        """Why nothing may be written now; empty if it may."""
        if self._closed:
            return STOPPING
        return "" if self._may_write() else NOT_LEADER

    def begin(self, effect: E) -> bool:
        """Have this attempt count for its pod, and none before it. False: it is under way already."""
        before = self._current.get(effect.pod.uid)
        if before is not None and before.attempt == effect.attempt:
            return False
        self._current[effect.pod.uid] = effect
        return True

    def is_current(self, effect: E) -> bool:
        return self._current.get(effect.pod.uid) is effect

    def finish(self, effect: E) -> bool:
        """The attempt gets its answer; whether it still counted for its pod."""
        if not self.is_current(effect):
            return False
        del self._current[effect.pod.uid]
        self._waits.pop(effect.pod.uid, None)
        return True

    def give_up(self, uid: str) -> None:
        """No attempt counts for a pod any more."""
        self._current.pop(uid, None)

    def put(self, pod: PodRef, run: Callable[[], Awaitable[None]], failed: Callable[[str], None]) -> None:
        """Run this after all other work for the pod. `failed` is called after a fault of ours. Returns at once."""
        self._lanes.put(pod.uid, _Job(self._kind, pod, run, failed))

    async def _run(self, job: _Job) -> None:
        try:
            await job.run()
        except Exception as error:  # noqa: BLE001 - a fault of ours: the engine has its answer all the same
            _log.error("Work before a bind failed", kind=self._kind, pod=job.pod.key, err=describe_error(error))
            job.failed(repr(error))

    # -- waiting -----------------------------------------------------------------------------------------------------

    def timeout_s(self, pod: PodRef) -> float:
        known = self._objects.pod(pod)
        return self._timeouts_s.get(known.spec.scheduler_name if known is not None else "", TIMEOUT_S)

    def wait(self, effect: E, wait: W) -> None:
        """All is written. The attempt must be the current one."""
        self._waits[effect.pod.uid] = wait
        self._look()

    def waiting(self, uid: str) -> W | None:
        return self._waits.get(uid)

    def stop_waiting(self, uid: str) -> W | None:
        """The wait of a pod, which is not looked at any more."""
        return self._waits.pop(uid, None)

    def look(self) -> None:
        """The engine has made a step: see whether what is waited for has come."""
        if self._waits and self._version() != self._looked_at:
            self._look()

    def look_now(self) -> None:
        if not self._closed:
            self._look()

    def _look(self) -> None:
        self._looked_at = self._version()
        for wait in list(self._waits.values()):
            self._look_at(wait)
        if self._waits and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look_again)

    def _look_again(self) -> None:
        self._timer = None
        self.look_now()

    async def drain(self, timeout_s: float) -> bool:
        """Begin nothing more, let reads and writes finish, and end what is left. False if some were cut off."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._lanes.drop_all()
        done = await self._lanes.idle(timeout_s)
        await self._lanes.cancel()
        for effect in list(self._current.values()):
            self._end(effect, STOPPING)
        return done
