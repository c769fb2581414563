"""Leader election on a Lease, by client-go's rules, so that kube-scheduler and situate can stand by for each other.

Safety
- What others wrote is timed from when we saw it, on a clock that nobody can set and that goes on while the process is
  stopped. The times in the record are for people.
- The right to write ends RENEW_DEADLINE after the last renewal that succeeded was sent. Others may take the lease only
  after LEASE_DURATION, which is longer. `may_write` looks at the clock each time it is asked, so a process that was
  stopped and wakes up too late finds out before it writes.
- Every write of the Lease carries the version that was read. A 409 means: read again.

Liveness
- A standby watches the Lease beside asking for it now and then: it notices a release at once, and a dead leader at the
  moment the lease runs out. Without permission to watch it only asks, as kube-scheduler does.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import msgspec

from situate.core.config.duration import SECOND
from situate.core.config.types import LeaderElection
from situate.kube.client import Client
from situate.kube.problems import ApiError
from situate.loop.logs import Log

JITTER: Final = 1.2
"""Between two attempts lie the retry period and up to so many times as much."""
API: Final = "coordination.k8s.io/v1"
RELEASED_S: Final = 1
"""The duration that a released lease is left with, as client-go leaves it."""
RELEASE_TRIES: Final = 3
WATCH_S: Final = 300
"""How long one watch of the Lease lasts at most."""
WATCH_GRACE_S: Final = 30.0
WATCH_AGAIN_S: Final = 1.0
"""How long after a watch has ended the next is begun."""
EVENT_S: Final = 1.0
"""How long the event about the election is waited for: less than anybody waits for a leader."""
MOST_TOLD: Final = 100
"""How many problems are remembered, so as to be said once."""
UNHEALTHY_S: Final = 20.0
"""A leader whose lease ran out so long ago, and that still lives, says that it is not well."""

_log = Log(__name__)


def steady_seconds() -> float:
    """A clock that cannot be set, and that also goes on while the machine is suspended, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def identity() -> str:
    """Who we are in the election; no two processes are the same."""
    return f"{socket.gethostname()}_{uuid4()}"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is elected for, and how fast. In seconds."""

    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    @staticmethod
    def of(config: LeaderElection) -> Rules:
        return Rules(
            config.resource_namespace,
            config.resource_name,
            config.lease_duration / SECOND,
            config.renew_deadline / SECOND,
            config.retry_period / SECOND,
        )

    def problem(self) -> str:
        """What is wrong with them, in client-go's words; empty if nothing is."""
        if self.lease_s <= self.renew_deadline_s:
            return "leaseDuration must be greater than renewDeadline"
        if self.renew_deadline_s <= JITTER * self.retry_s:
            return "renewDeadline must be greater than retryPeriod*JitterFactor"
        return "" if self.retry_s > 0 else "retryPeriod must be greater than zero"

    @property
    def lock(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class _Observed:
    """A Lease as it was last seen, and since when it has been like that."""

    lease: dict[str, Any]
    since: float

    @property
    def spec(self) -> dict[str, Any]:
        found: dict[str, Any] = self.lease.get("spec") or {}
        return found

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity") or "")

    @property
    def until(self) -> float:
        """When others may take it."""
        return self.since + float(self.spec.get("leaseDurationSeconds") or 0)


class Lease:
    """One candidate. `acquire`, then `hold` until it returns, then perhaps `release`."""

    def __init__(
        self,
        client: Client,
        rules: Rules,
        identity: str,
        *,
        component: str = "default-scheduler",
        clock: Callable[[], float] = steady_seconds,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self.rules = rules
        self.identity = identity
        self.leader = ""
        """Whoever was last seen to hold it."""
        self._client = client
        self._component = component
        self._clock = clock
        self._dice = dice
        self._observed: _Observed | None = None
        self._write_until: float | None = None
        self._tried_at = float("-inf")
        self._news = self._tried_knowing = 0
        """How often the Lease was seen to be another; and how often by the time of the last attempt."""
        self._moved = asyncio.Event()
        self._reporting: asyncio.Task[None] | None = None
        self._told: set[str] = set()
        self._path = f"/apis/{API}/namespaces/{rules.namespace}/leases"

    # -- what others may ask -------------------------------------------------------------------------------------

    def may_write(self) -> bool:
        """Whether the lease is ours beyond doubt, now. To be asked before every write."""
        return self._write_until is not None and self._clock() < self._write_until

    @property
    def term(self) -> int | None:
        """Which change of holders made it ours; None while it is not, as far as we know."""
        observed = self._observed
        if observed is None or observed.holder != self.identity:
            return None
        return int(observed.spec.get("leaseTransitions") or 0)

    def health(self) -> str:
        """What is wrong, or nothing: a leader should not outlive its lease."""
        observed = self._observed
        if self._write_until is None or observed is None or observed.holder != self.identity:
            return ""
        if self._clock() - observed.since > self.rules.lease_s + UNHEALTHY_S:
            return f"failed election to renew leadership on lease {self.rules.name}"
        return ""

    # -- acquiring -----------------------------------------------------------------------------------------------

    async def acquire(self) -> None:
        """Returns when the lease is ours."""
        _log.info("Attempting to acquire leader lease...", lock=self.rules.lock)
        watching = asyncio.create_task(self._watch())
        try:
            while not await self._try():
                await self._pause()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
        _log.info("Successfully acquired lease", lock=self.rules.lock)
        self._reporting = asyncio.create_task(self._report("became leader"))  # nobody waits for it

    async def _pause(self) -> None:
        """Until the next attempt is due: after a while, or at once when the lease is free or runs out."""
        until = self._clock() + self.rules.retry_s * (1 + JITTER * self._dice())
        while (left := self._next_chance(until) - self._clock()) > 0:
            self._moved.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._moved.wait()

    def _next_chance(self, at_the_latest: float) -> float:
        observed = self._observed
        if observed is None:
            return at_the_latest
        if not observed.holder:
            # Free. If that was known at the last attempt already, it failed: do not try in circles.
            return observed.since if self._tried_knowing < self._news else at_the_latest
        return min(at_the_latest, observed.until) if self._tried_at < observed.until else at_the_latest

    async def _try(self) -> bool:
        """Acquire the lease, or renew it; whether it is ours."""
        self._tried_at = begun = self._clock()
        self._tried_knowing = self._news
        try:
            async with asyncio.timeout(self._patience(begun)):
                ours = await self._acquire_or_renew()
        except ApiError as error:
            self._say(error)
            return False
        except TimeoutError:
            _log.error("Error updating lease lock", lock=self.rules.lock, err="no answer in time")
            return False
        finally:
            self._notice_leader()
        if ours:
            self._write_until = begun + self.rules.renew_deadline_s
            self._told.clear()
        return ours

    def _patience(self, begun: float) -> float:
        """Half the renew deadline for one attempt, so that a second one is possible."""
        half = self.rules.renew_deadline_s / 2
        return half if self._write_until is None else max(0.001, min(half, self._write_until - begun))

    async def _acquire_or_renew(self) -> bool:
        observed = self._observed
        if observed is not None and observed.holder == self.identity and self._clock() < observed.until:
            try:
                return await self._update(observed)
            except ApiError as error:
                _log.v(2).info("Failed to update lease, reading it first", lock=self.rules.lock, err=error.message)
        try:
            observed = self._see(_decoded(await self._client.request("GET", f"{self._path}/{self.rules.name}")))
        except ApiError as error:
            if not error.not_found:
                raise
            return await self._create()
        if observed.holder not in ("", self.identity) and self._clock() < observed.until:
            _log.v(4).info("Lease is held by and has not yet expired", lock=self.rules.lock, holder=observed.holder)
            return False
        return await self._update(observed)

    async def _create(self) -> bool:
        now = _micro_time()
        body = {
            "apiVersion": API,
            "kind": "Lease",
            "metadata": {"name": self.rules.name, "namespace": self.rules.namespace},
            "spec": self._spec(now, now, 0),
        }
        self._see(_decoded(await self._client.request("POST", self._path, body=msgspec.json.encode(body))))
        return True

    async def _update(self, observed: _Observed) -> bool:
        """Write ourselves into the lease as it was seen. Raises ApiError; 409 if it is another by now."""
        now, spec = _micro_time(), observed.spec
        transitions = int(spec.get("leaseTransitions") or 0)
        if observed.holder == self.identity:
            wanted = self._spec(spec.get("acquireTime") or now, now, transitions)
        else:
            wanted = self._spec(now, now, transitions + 1)
        await self._put(observed, {**_kept(spec), **wanted})
        return True

    async def _put(self, observed: _Observed, spec: dict[str, Any]) -> None:
        body = msgspec.json.encode({**observed.lease, "apiVersion": API, "kind": "Lease", "spec": spec})
        self._see(_decoded(await self._client.request("PUT", f"{self._path}/{self.rules.name}", body=body)))

    def _spec(self, acquired: str, renewed: str, transitions: int) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, int(self.rules.lease_s)),
            "acquireTime": acquired,
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }

    def _see(self, lease: dict[str, Any]) -> _Observed:
        """Note a Lease; the clock starts anew only if it says something else than before."""
        before = self._observed
        if before is not None and before.spec == (lease.get("spec") or {}):
            self._observed = _Observed(lease, before.since)
        else:
            self._observed = _Observed(lease, self._clock())
            self._news += 1
            self._moved.set()
        return self._observed

    def _notice_leader(self) -> None:
        holder = "" if self._observed is None else self._observed.holder
        if holder and holder != self.leader:
            _log.v(2).info("New leader elected", identity=holder)
        self.leader = holder

    # -- holding -------------------------------------------------------------------------------------------------

    async def hold(self) -> None:
        """Renew the lease until that fails for too long; then returns, and it is not ours any more."""
        while self.may_write():
            await asyncio.sleep(min(self.rules.retry_s, max(0.0, self._left())))
            if not self.may_write():
                break
            if not await self._try() and self._held_by_other():
                break
        self._write_until = None
        _log.info("Failed to renew lease", lock=self.rules.lock)

    def _left(self) -> float:
        return 0.0 if self._write_until is None else self._write_until - self._clock()

    def _held_by_other(self) -> bool:
        observed = self._observed
        return observed is not None and observed.holder not in ("", self.identity)

    async def release(self) -> None:
        """Let go of the lease, so that the next leader need not wait. Nothing may be written after this."""
        ours = self.may_write()
        self._write_until = None
        if not ours:
            return
        try:
            async with asyncio.timeout(self.rules.renew_deadline_s / 2):
                released = await self._give_back()
        except (ApiError, TimeoutError) as error:
            _log.error("Failed to release lease", lock=self.rules.lock, err=str(error) or "no answer in time")
            return
        if released:
            await self._report("stopped leading")

    async def _give_back(self) -> bool:
        """Whether it was still ours. A renewal may have been under way when we stopped: then it is read again."""
        for tries_left in range(RELEASE_TRIES - 1, -1, -1):
            observed = self._see(_decoded(await self._client.request("GET", f"{self._path}/{self.rules.name}")))
            if observed.holder != self.identity:
                break
            now = _micro_time()
            spec = {
                "holderIdentity": "",
                "leaseDurationSeconds": RELEASED_S,
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": int(observed.spec.get("leaseTransitions") or 0),
            }
            try:
                await self._put(observed, {**_kept(observed.spec), **spec})
                return True
            except ApiError as error:
                if not (error.conflict and tries_left):
                    raise
        return False

    async def close(self) -> None:
        """Leave nothing under way."""
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)

    # -- watching ------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """See every change of the Lease when it happens. Without permission it is given up."""
        params = {
            "watch": "true",
            "fieldSelector": f"metadata.name={self.rules.name}",
            "timeoutSeconds": str(WATCH_S),
        }
        while True:
            try:
                async with self._client.stream(self._path, params=params, idle_s=WATCH_S + WATCH_GRACE_S) as lines:
                    async for line in lines:
                        self._heard(line)
            except ApiError as error:
                if error.forbidden:
                    self._say(error)
                    return
            await asyncio.sleep(WATCH_AGAIN_S)

    def _heard(self, line: bytes) -> None:
        event = _decoded(line)
        lease = event.get("object") or {}
        if event.get("type") in ("ADDED", "MODIFIED") and lease.get("metadata", {}).get("name") == self.rules.name:
            self._see(lease)
            self._notice_leader()

    # -- telling -------------------------------------------------------------------------------------------------

    def _say(self, error: ApiError) -> None:
        """What went wrong, once until something goes right; later times are for whoever looks closer."""
        line = f"{error.reason}: {error.message}"
        log = _log.v(4).info if error.conflict or line in self._told else _log.error
        if len(self._told) < MOST_TOLD:
            self._told.add(line)
        log("Error retrieving or updating lease lock", lock=self.rules.lock, err=error.message)

    async def _report(self, what: str) -> None:
        """The event that kube-scheduler makes, too; that it cannot be made stops nothing."""
        metadata = {} if self._observed is None else self._observed.lease.get("metadata") or {}
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "name": f"{self.rules.name}.{time.time_ns():x}",
                "namespace": self.rules.namespace,
            },
            "eventTime": _micro_time(),
            "type": "Normal",
            "reason": "LeaderElection",
            "action": "LeaderElection",
            "note": f"{self.identity} {what}"[:1_024],
            "regarding": {
                "apiVersion": API,
                "kind": "Lease",
                "namespace": self.rules.namespace,
                "name": self.rules.name,
                "uid": str(metadata.get("uid") or ""),
                "resourceVersion": str(metadata.get("resourceVersion") or ""),
            },
            "reportingController": self._component,
            "reportingInstance": f"{self._component}-{socket.gethostname()}"[:128],
        }
        path = f"/apis/events.k8s.io/v1/namespaces/{self.rules.namespace}/events"
        try:
            await self._client.request("POST", path, body=msgspec.json.encode(body), timeout_s=EVENT_S)
        except ApiError as error:
            _log.v(2).info("Event was not recorded", err=error.message)


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ApiError(0, "NotJSON", f"the Lease cannot be read: {error}") from None


def _kept(spec: dict[str, Any]) -> dict[str, Any]:
    """What the record holds beside what we write."""
    return {key: spec[key] for key in ("preferredHolder", "strategy") if key in spec}


def _micro_time() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
