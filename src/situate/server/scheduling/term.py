"""The scheduler's lease, and its term: who holds it binds with the term it has, and binds of other terms are refused.

The lease is an object, kube-system/situate-scheduler, taken as client-go's leader election takes one: free, or not
renewed for its whole duration by our own clock. Each change of holder is a new term, `leaseTransitions`. Holding it is
no promise, as a holder may be asleep: what keeps a stale one from writing is that each bind is checked against the term
in the transaction that commits it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import LEASE, LEASES
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import Held
from situate.server.requests import Caller, Object, Target
from situate.wire.bodies import micro_time

__all__ = ["DURATION_S", "RENEW_S", "Term"]

DURATION_S: Final = 15
RENEW_S: Final = 5.0
"""How often it is renewed, or asked for. Rarely: each renewal has the binds of that moment judged again."""
NOT_FOUND: Final = 404

_log = Log(__name__)


class _TakenError(Exception):
    """Somebody else holds it."""


class Term:
    """One who wants to hold the lease."""

    def __init__(
        self,
        registry: Registry,
        identity: str,
        caller: Caller,
        wall_ns: Callable[[], int],
        *,
        clock: Callable[[], float] | None = None,
        duration_s: int = DURATION_S,
        renew_s: float = RENEW_S,
        lease: tuple[str, str] = LEASE,
    ) -> None:
        """`clock` is for how long; `wall_ns` is only shown."""
        self._clock = clock or time.monotonic
        self._registry = registry
        self._identity = identity
        self._caller = caller
        self._wall_ns = wall_ns
        self._duration_s = duration_s
        self._renew_s = renew_s
        self._lease = lease
        self._term: int | None = None
        self._until = 0.0
        self._seen: tuple[int, float] = (0, 0.0)
        """The revision of another's lease, and when we saw it first."""

    def number(self) -> int | None:
        """The term that we bind with; None: we do not hold the lease, and have no business binding."""
        return self._term

    def held(self) -> bool:
        """Whether we hold it, as far as we know."""
        return self._term is not None and self._clock() < self._until

    async def hold(self, leads: Callable[[], None], lost: Callable[[], None]) -> None:
        """Take it as soon as it can be had, and renew it, until cancelled. Says when it comes and goes."""
        while True:
            before = self.held()
            await self.ask()
            if self.held() != before:
                (lost if before else leads)()
            await asyncio.sleep(self._renew_s)

    async def ask(self) -> bool:
        """Take or renew it, once; whether we hold it."""
        asked_at = self._clock()
        try:
            held = await self._written()
        except _TakenError:
            self._term = None
            return False
        except StatusError as error:
            _log.info("The lease cannot be written", lease="/".join(self._lease), err=error.message)
            return self.held()
        self._term = held.object(LEASES)["spec"].get("leaseTransitions", 0)
        self._until = asked_at + self._duration_s
        return True

    async def release(self) -> None:
        """Let go of it, so that others need not wait for its end."""
        if self._term is None:
            return
        self._term = None

        def change(lease: Object, _held: Held) -> Object:
            if lease["spec"].get("holderIdentity") != self._identity:
                raise _TakenError
            lease["spec"]["holderIdentity"] = ""
            return lease

        try:
            await self._registry.modify(Target(LEASES, *self._lease), change, self._caller)
        except (StatusError, _TakenError):
            return

    async def _written(self) -> Held:
        target = Target(LEASES, *self._lease)
        try:
            return await self._registry.modify(target, self._taken, self._caller)
        except StatusError as error:
            if error.code != NOT_FOUND:
                raise
        now = micro_time(self._wall_ns())
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._duration_s,
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 1,
        }
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"namespace": self._lease[0], "name": self._lease[1]},
            "spec": spec,
        }
        return await self._registry.create(Target(LEASES, self._lease[0]), body, self._caller)

    def _taken(self, lease: Object, held: Held) -> Object:
        """The lease as ours, if it is or may be. Raises _TakenError."""
        spec, now = lease.setdefault("spec", {}), micro_time(self._wall_ns())
        holder = spec.get("holderIdentity", "")
        if holder == self._identity and self._term == spec.get("leaseTransitions", 0):
            spec["renewTime"] = now
            return lease
        if holder not in ("", self._identity) and not self._expired(held.revision, spec):
            raise _TakenError
        # Also if it was ours in an earlier life: what that one decided must not count as ours.
        spec.update(
            holderIdentity=self._identity,
            leaseDurationSeconds=self._duration_s,
            acquireTime=now,
            renewTime=now,
            leaseTransitions=spec.get("leaseTransitions", 0) + 1,
        )
        return lease

    def _expired(self, revision: int, spec: Object) -> bool:
        """Whether another's lease was not renewed for its whole duration, by our clock: theirs may be another."""
        now = self._clock()
        if self._seen[0] != revision:
            self._seen = (revision, now)
        return now - self._seen[1] >= int(spec.get("leaseDurationSeconds", self._duration_s))
