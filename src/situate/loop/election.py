"""Leader election on a Lease, by client-go's rules, so that kube-scheduler and situate can stand by for each other.

Safety
- The right to write ends `renew_deadline_s` after the last successful renewal was sent. Others may take the lease only
  after `lease_s`, which is longer. `may_write` reads the clock on each call, so a process that was stopped and wakes up
  too late finds out before it writes.
- Where each write carries its term and the server checks that (`fenced`), a late holder may renew in the same term.
- A holder that finds the lease in somebody else's term has lost it, even if it may take it again at once: meanwhile
  another has led. `lead` ends the work of the old term before it begins that of the new one.

Liveness
- A standby watches the Lease and also reads it now and then: it notices a release at once, and a dead leader when the
  lease expires. Without permission to watch it only reads, as kube-scheduler does.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from situate.core.config.types import LeaderElection
from situate.core.model.duration import SECOND
from situate.loop.leases import LeaseError, LeaseRecord, LeaseStore, LeaseWriter, steady_seconds
from situate.loop.logs import Log

JITTER: Final = 1.2
"""Between two attempts lies the retry period, and up to this many times as much in addition."""
WATCH_AGAIN_S: Final = 1.0
"""The pause between two watches."""
MOST_LOGGED: Final = 100
"""How many problems are remembered, to log each once."""
UNHEALTHY_S: Final = 20.0
"""A leader that is alive this long after its lease expired reports itself unhealthy."""

_log = Log(__name__)


def new_identity() -> str:
    """A holder identity that no other process has."""
    return f"{socket.gethostname()}_{uuid4()}"


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """Which Lease, and how fast."""

    namespace: str = "kube-system"
    name: str = "kube-scheduler"
    lease_s: float = 15.0
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0
    first_term: int = 0
    """The `leaseTransitions` of a Lease that we create."""
    fenced: bool = False
    """The server refuses writes of another term, so a renewal that comes late does no harm."""

    @staticmethod
    def of(config: LeaderElection) -> ElectionRules:
        return ElectionRules(
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


class Elector:
    """One candidate. `acquire`, then `hold` until it returns, then perhaps `release`; or `run`, for ever."""

    def __init__(
        self,
        store: LeaseStore,
        rules: ElectionRules,
        identity: str,
        *,
        clock: Callable[[], float] = steady_seconds,
        wall_ns: Callable[[], int] = time.time_ns,
        dice: Callable[[], float] = random.random,
    ) -> None:
        """`clock` measures; `wall_ns` is only written into the Lease, for people."""
        self.rules = rules
        self.identity = identity
        self.leader = ""
        """The last holder that we saw."""
        self._store = store
        self._clock = clock
        self._dice = dice
        self._record = LeaseRecord(identity, max(1, int(rules.lease_s)), rules.first_term)
        self._writer = LeaseWriter(store, self._record, clock, wall_ns)
        self._write_until: float | None = None
        self._tried_at = float("-inf")
        self._tried_knowing = 0
        """`record.changes` at the last attempt."""
        self._moved = asyncio.Event()
        self._announcing: asyncio.Task[None] | None = None
        self._logged: set[str] = set()

    # -- what others ask ---------------------------------------------------------------------------------------------

    def may_write(self) -> bool:
        """Whether the lease is ours beyond doubt, now. Ask before every write."""
        return self._record.term is not None and self._before_deadline()

    def term(self) -> int | None:
        """The `leaseTransitions` under which we hold the lease; None if we do not."""
        return self._record.term

    def health(self) -> str:
        """What is wrong, or nothing: a leader should not outlive its lease."""
        record = self._record
        if self._write_until is None or record.holder != self.identity:
            return ""
        if self._clock() - record.since > self.rules.lease_s + UNHEALTHY_S:
            return f"failed election to renew leadership on lease {self.rules.name}"
        return ""

    def _before_deadline(self) -> bool:
        """Whether the last renewal is recent enough. We may have no term: while a Lease that was deleted is created."""
        return self._write_until is not None and self._clock() < self._write_until

    # -- acquiring ---------------------------------------------------------------------------------------------------

    async def run(self, on_leading: Callable[[], None], on_lost: Callable[[], None]) -> None:
        """Acquire the lease and hold it, again and again, until cancelled."""
        while True:
            await self.acquire()
            on_leading()
            await self.hold()
            on_lost()

    async def acquire(self) -> None:
        """Returns when the lease is ours."""
        _log.info("Attempting to acquire leader lease...", lock=self.rules.lock)
        watching = asyncio.create_task(self._watch())
        try:
            while not await self.attempt():
                await self._pause()
        finally:
            watching.cancel()
            await asyncio.wait([watching])  # `await watching` would take our own cancellation for its
        _log.info("Successfully acquired lease", lock=self.rules.lock)
        self._announcing = asyncio.create_task(self._announce("became leader"))  # nobody waits for it

    async def _pause(self) -> None:
        """Until the next attempt is due: after a while, or at once when the lease is free or expires."""
        until = self._clock() + self.rules.retry_s * (1 + JITTER * self._dice())
        while (left := self._next_chance(until) - self._clock()) > 0:
            self._moved.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._moved.wait()

    def _next_chance(self, at_the_latest: float) -> float:
        record = self._record
        if not record.lease:
            return at_the_latest
        if not record.holder:
            # It is free. If the last attempt knew that, it failed: do not try in circles.
            return record.since if self._tried_knowing < record.changes else at_the_latest
        return min(at_the_latest, record.expires) if self._tried_at < record.expires else at_the_latest

    async def attempt(self) -> bool:
        """Acquire the lease or renew it, once; whether it is ours."""
        self._tried_at = begun = self._clock()
        self._tried_knowing = self._record.changes
        try:
            async with asyncio.timeout(self._patience(begun)):
                ours = await self._writer.claim(self._may_take)
        except LeaseError as error:
            self._log_once(error)
            return False
        except TimeoutError:
            _log.error("Error updating lease lock", lock=self.rules.lock, err="no answer in time")
            return False
        finally:
            self._notice_leader()
        if ours:
            self._write_until = begun + self.rules.renew_deadline_s
            self._logged.clear()
        elif self._record.held_by_other:
            self._write_until = None
        return ours

    def _patience(self, begun: float) -> float:
        """Half the renew deadline for one attempt, so that a second one is possible."""
        half = self.rules.renew_deadline_s / 2
        left = 0.0 if self._write_until is None else self._write_until - begun
        return half if left <= 0 else min(half, left)

    def _may_take(self) -> bool:
        record = self._record
        if record.held_by_other and self._clock() < record.expires:
            _log.v(4).info("Lease is held by and has not yet expired", lock=self.rules.lock, holder=record.holder)
            return False
        return True

    def _notice_leader(self) -> None:
        holder = self._record.holder
        if holder and holder != self.leader:
            _log.v(2).info("New leader elected", identity=holder)
        self.leader = holder

    # -- holding -----------------------------------------------------------------------------------------------------

    async def hold(self) -> None:
        """Renew the lease until that fails for too long or another has held it. `may_write` is False when this returns,
        until the next `acquire`."""
        taken = self._writer.taken
        while True:
            left = 0.0 if self._write_until is None else self._write_until - self._clock()
            await asyncio.sleep(min(self.rules.retry_s, max(0.0, left)))
            if not (self._before_deadline() or self.rules.fenced):
                break
            if not await self.attempt() and not self._before_deadline():
                break
            if self._writer.taken != taken:
                break  # another has led since, and our work does not know what it wrote
        self._write_until = None
        _log.info("Failed to renew lease", lock=self.rules.lock)

    async def release(self) -> None:
        """Let go of the lease, so that the next leader need not wait. Write nothing after this."""
        ours = self.may_write()
        self._write_until = None
        if not ours:
            return
        try:
            async with asyncio.timeout(self.rules.renew_deadline_s / 2):
                released = await self._writer.release()
        except (LeaseError, TimeoutError) as error:
            _log.error("Failed to release lease", lock=self.rules.lock, err=str(error) or "no answer in time")
            return
        if released:
            await self._announce("stopped leading")

    async def close(self) -> None:
        """Cancel the announcement if it is still in flight."""
        if self._announcing is not None:
            self._announcing.cancel()
            await asyncio.gather(self._announcing, return_exceptions=True)

    async def _watch(self) -> None:
        """See every change of the Lease when it happens. Gives up without permission."""
        while True:
            try:
                async for lease in self._store.watch():
                    if self._record.see(lease, self._clock()):
                        self._moved.set()
                    self._notice_leader()
            except LeaseError as error:
                if error.forbidden:
                    self._log_once(error)
                    return
            await asyncio.sleep(WATCH_AGAIN_S)

    # -- logs and events ---------------------------------------------------------------------------------------------

    def _log_once(self, error: LeaseError) -> None:
        """Log a problem once until an attempt succeeds; repetitions only at a higher verbosity."""
        line = f"{error.reason}: {error.message}"
        log = _log.v(4).info if error.conflict or line in self._logged else _log.error
        if len(self._logged) < MOST_LOGGED:
            self._logged.add(line)
        log("Error retrieving or updating lease lock", lock=self.rules.lock, err=error.message)

    async def _announce(self, what: str) -> None:
        await self._store.announce(self._record.lease, f"{self.identity} {what}")


async def lead(elector: Elector, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `work` while we hold the lease. When it is lost, cancel the work, wait for its end, and stand by again.

    Runs until cancelled; then the lease is released, after the work has ended. Raises what the work raises.
    """
    try:
        while True:
            await elector.acquire()
            working = asyncio.create_task(work(), name=f"{elector.rules.name} leader")
            holding = asyncio.create_task(elector.hold(), name=f"{elector.rules.name} lease")
            try:
                await asyncio.wait([working, holding], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (working, holding):
                    task.cancel()
                await asyncio.gather(working, holding, return_exceptions=True)
            if not working.cancelled():
                working.result()
            if holding.cancelled():
                return  # the work has ended by itself
            holding.result()
            _log.warning("The lease was lost; standing by", lock=elector.rules.lock)
    finally:
        await elector.release()
        await elector.close()
