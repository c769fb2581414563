"""Leases in the registry, and the server's own elections on them.

Each change of holder is a new term, `leaseTransitions`. Holding the lease is no promise, as a holder may be asleep. The
transaction that commits a leader's write checks that the Lease is still as that leader knows it, and that keeps a stale
leader from writing, whatever its clock says.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from situate.loop.election import ElectionRules, Elector
from situate.loop.leases import LeaseError, LeaseObject, lease_errors, steady_seconds
from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import LEASE, LEASES
from situate.server.registry.registry import Registry
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.unreadable import REASON as UNREADABLE
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.store.entries import Revision
from situate.store.transactions import At, Guard

RULES: Final = ElectionRules(*LEASE, lease_s=15, renew_deadline_s=15, retry_s=5, first_term=1, fenced=True)
"""Renewed rarely: each renewal makes the writes in flight retry."""
LOST: Final = "the lease {lock} is not held, so nothing was written"

_log = Log(__name__)


class RegistryLeaseStore:
    def __init__(self, registry: Registry, namespace: str, name: str, caller: Caller = SYSTEM) -> None:
        self.namespace = namespace
        self.name = name
        self._registry = registry
        self._caller = caller
        self._target = Target(LEASES, namespace, name)

    async def read(self) -> LeaseObject | None:
        try:
            return _versioned(await self._registry.get(self._target))
        except StatusError as error:
            if error.reason == "NotFound":
                return None
            if error.reason == UNREADABLE:
                await self._replace_unreadable(error)
                return None
            raise LeaseError(error.reason, error.message) from error

    async def _replace_unreadable(self, error: StatusError) -> None:
        """Replace a lease that cannot be read: nothing else would. If a server of another release holds it after all,
        the fence keeps that server from writing."""
        _log.error("A leader's lease cannot be read; making another", lock=self.name, err=error.message)
        with lease_errors(StatusError):
            await self._registry.delete(self._target, self._caller)

    async def create(self, lease: LeaseObject) -> LeaseObject:
        with lease_errors(StatusError):
            return _versioned(await self._registry.create(Target(LEASES, self.namespace), lease, self._caller))

    async def update(self, lease: LeaseObject) -> LeaseObject:
        def change(found: Object, _held: StoredObject) -> Object:
            return {**found, "spec": lease["spec"]}

        version = lease["metadata"]["resourceVersion"]
        with lease_errors(StatusError):
            return _versioned(await self._registry.modify(self._target, change, self._caller, resource_version=version))

    async def watch(self) -> AsyncIterator[LeaseObject]:
        with lease_errors(StatusError):
            async with aclosing(await self._registry.watch(self._target)) as events:
                async for event in events:
                    if event.stored is not None and event.type != "DELETED":
                        yield _versioned(event.stored)

    async def announce(self, lease: LeaseObject, note: str) -> None:
        """The server records no events about its own elections."""


def server_elector(
    registry: Registry,
    identity: str,
    caller: Caller = SYSTEM,
    wall_ns: Callable[[], int] = time.time_ns,
    *,
    lease: tuple[str, str] = LEASE,
    clock: Callable[[], float] = steady_seconds,
) -> Elector:
    """A candidate for the scheduler's lease, or another one of the server's own."""
    store = RegistryLeaseStore(registry, *lease, caller)
    rules = replace(RULES, namespace=lease[0], name=lease[1])
    return Elector(store, rules, identity, clock=clock, wall_ns=wall_ns, dice=lambda: 0.0)


def fence(registry: Registry, elector: Elector) -> Callable[[], Guard]:
    """The condition of each write of a leader: that the Lease is still its own, in the same term. `Registry.fenced`
    takes it."""
    cache, rules = registry.cache, elector.rules
    known: tuple[int, str, int] = (0, "", 0)

    def guard() -> Guard:
        nonlocal known
        held = cache.get(LEASES, rules.namespace, rules.name) if elector.may_write() else None
        if held is not None and held.revision != known[0]:
            spec = held.object(LEASES)["spec"]
            known = held.revision, spec.get("holderIdentity", ""), spec.get("leaseTransitions", 0)
        if held is None or known[1:] != (elector.identity, elector.term()):
            raise StatusError(HTTPStatus.CONFLICT, "LeaseLost", LOST.format(lock=rules.lock))
        return At(held.key, Revision(held.revision))

    return guard


def _versioned(held: StoredObject) -> LeaseObject:
    lease = held.object(LEASES)
    return {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(held.revision)}}
