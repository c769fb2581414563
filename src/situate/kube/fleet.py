"""Membership in a fleet of schedulers: each member renews a Lease, and all members know each other by these Leases.

Membership decides only which member schedules which pod. The server checks each bind in its own transaction. So a
member that cannot renew its lease goes on with its share, and the others take that share over when the lease expires;
for a while two members may decide on the same pod, and the server refuses the second bind. This needs a server that
checks binds: situate's own. On any other server, two members could overfill a node.

A share belongs to the member's name: a member that restarts under its name gets its share back at once. Of two
processes under one name the later one keeps it, and the earlier one exits.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import msgspec

from situate.core.changes import Change
from situate.core.effects import Effect, Report, SetCondition
from situate.core.fleet.members import FleetMember, Roster
from situate.core.fleet.share import Share
from situate.core.queue.queued_pod import QueueState
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.lease_store import ApiLeaseStore, decoded
from situate.loop.drive import Drive, DrivenPerformer, running_clock
from situate.loop.leases import API, LeaseError, LeaseRecord, LeaseWriter, steady_seconds
from situate.loop.logs import Log
from situate.wire.errors import InputError

LABEL: Final = "situate.dev/fleet"
MEMBER: Final = "situate.dev/member"
SCHEDULERS: Final = "situate.dev/schedulers"
"""Annotation: the schedulerNames whose pods a member decides on."""
NAMESPACE: Final = "kube-system"
GUARDED: Final = "/apis/situate.dev/v1alpha1"
"""An API group that only a server that checks binds has."""
NOT_GUARDED: Final = (
    "this API server is not situate's: it binds a pod to any node that it is told, so two members could fill the same "
    "room; let one scheduler lead there, and others stand by"
)
WATCH_S: Final = 300
WATCH_GRACE_S: Final = 30.0
AGAIN_S: Final = 0.5
"""The pause after a watch or a list that failed."""
FORGET_TIMES: Final = 20.0
"""Delete a member's Lease when it expired this many durations ago."""
TRIES: Final = 5
NEVER_S: Final = 60.0
HOST_CHARS: Final = 30

_log = Log(__name__)


class TakenNameError(Exception):
    """Another process has taken our member name."""


@dataclass(frozen=True, slots=True)
class FleetRules:
    """Which fleet, under which name, and how fast others notice that we are gone."""

    fleet: str
    member: str
    lease_s: float = 5.0
    renew_s: float = 1.0
    pool_label: str = ""

    @property
    def lease(self) -> str:
        return f"situate-fleet-{self.fleet}-{self.member}"


class Fleet:
    """One member. It lives as long as its process; sessions come and go within it."""

    def __init__(
        self,
        client: Client,
        rules: FleetRules,
        schedulers: Sequence[str],
        *,
        clock: Callable[[], float] = steady_seconds,
    ) -> None:
        self.rules = rules
        self._client = client
        self._clock = clock
        self._now = running_clock()
        self._schedulers = tuple(sorted(schedulers))
        self._roster = Roster(FleetMember(rules.member, self._schedulers))
        self._path = f"/apis/{API}/namespaces/{NAMESPACE}/leases"
        store = ApiLeaseStore(client, NAMESPACE, rules.lease, timeout_s=rules.lease_s)
        self._record = LeaseRecord(f"{rules.member}_{uuid4()}", max(1, round(rules.lease_s)), first_term=1)
        self._writer = LeaseWriter(store, self._record, clock, time.time_ns)
        self._describe()
        self._news = asyncio.Event()
        self._share: Share | None = None
        self._drive: Drive | None = None
        self._joined = False

    @property
    def identity(self) -> str:
        return self._record.identity

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(one.name for one in self._roster.live(self._clock()))

    # -- for a session --------------------------------------------------------------------------------------------

    def attach(self, drive: Drive) -> Callable[[Sequence[Change]], None]:
        """Filter what the informers see for a session's drive. The last session attached counts."""

        def may_withdraw(key: str) -> bool:
            entry = drive.engine.queue.get(key)
            return entry is None or entry.state not in (QueueState.IN_FLIGHT, QueueState.RESERVED)

        share = Share(self.rules.member, self.rules.pool_label, may_withdraw)
        self._share, self._drive = share, drive
        if self._joined:
            drive.tell(share.join(self._roster.live(self._clock()), self._now()))
            self._news.set()

        def tell(changes: Sequence[Change]) -> None:
            told = share.take(changes, self._now())
            if told:
                drive.tell(told)

        return tell

    def own_effects(self, effects: Sequence[Effect]) -> list[Effect]:
        """Effects without the conditions and events that another member reports."""
        share = self._share
        if share is None or not self.rules.pool_label:
            return list(effects)
        return [
            one
            for one in effects
            if not isinstance(one, SetCondition | Report)
            or share.speaks_for(one.pod.key)
            or (isinstance(one, Report) and one.reason == "Scheduled")
        ]

    def decide_on(self, schedulers: Sequence[str]) -> None:
        """Decide on the pods of these schedulers from now on. The next renewal of the lease tells the others."""
        self._schedulers = tuple(sorted(schedulers))
        self._roster.be(FleetMember(self.rules.member, self._schedulers))
        self._describe()
        self._news.set()

    # -- in the fleet ----------------------------------------------------------------------------------------------

    async def join(self) -> None:
        """Take our lease and list the other members. Retries until it succeeds."""
        while True:
            try:
                await self._check_server()
                await self._take()
                await self._list()
                break
            except (ApiError, LeaseError) as error:
                _log.error("Cannot join the fleet", fleet=self.rules.fleet, err=error.message)
                await asyncio.sleep(self.rules.renew_s)
        self._joined = True
        self._settle()

    async def _check_server(self) -> None:
        """Raises InputError if the server does not check binds."""
        try:
            await self._client.request("GET", GUARDED)
        except ApiError as error:
            if error.not_found:
                raise InputError(NOT_GUARDED, subject="--fleet") from None
            raise

    async def run(self) -> None:
        """Until cancelled, after `join`. Raises TakenNameError."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew(), name="fleet lease")
            tasks.create_task(self._watch(), name="fleet members")
            tasks.create_task(self._follow(), name="fleet share")

    async def leave(self) -> None:
        """Delete our lease, so that the others take over at once."""
        if not self._record.lease:
            return
        meta = self._record.lease.get("metadata") or {}
        body = {"preconditions": {"uid": meta.get("uid"), "resourceVersion": meta.get("resourceVersion")}}
        path = f"{self._path}/{self.rules.lease}"
        try:
            try:
                await self._client.request("DELETE", path, body=msgspec.json.encode(body), timeout_s=self.rules.lease_s)
            except ApiError as error:
                if not error.forbidden:
                    raise
                await self._writer.release()
        except (ApiError, LeaseError) as error:
            _log.v(2).info("The fleet's lease was not given back", err=error.message)

    def _settle(self) -> None:
        """Update our share to the live members."""
        if self._share is None or self._drive is None:
            return
        live = self._roster.live(self._clock())
        if live != self._share.members:
            _log.info("The fleet has changed", fleet=self.rules.fleet, members=",".join(one.name for one in live))
        told = self._share.join(live, self._now()) + self._share.due(self._now())
        if told:
            self._drive.tell(told)

    async def _follow(self) -> None:
        while True:
            self._settle()
            self._news.clear()
            try:
                async with asyncio.timeout(self._pause_s()):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _pause_s(self) -> float:
        """Until a lease expires, or a pod has waited long enough for another member."""
        now = self._clock()
        end = self._roster.next_end(now)
        pause = NEVER_S if end is None else min(NEVER_S, end - now)
        due = None if self._share is None else self._share.next_due_ms()
        if due is not None:
            pause = min(pause, (due - self._now()) / 1_000)
        return max(0.001, pause)

    # -- our lease -----------------------------------------------------------------------------------------------------

    async def _take(self) -> None:
        """Take the lease of our name, whoever held it. Raises LeaseError."""
        for tries_left in range(TRIES - 1, -1, -1):
            try:
                await self._writer.claim(lambda: True)
                return
            except LeaseError as error:
                if not (error.conflict and tries_left):
                    raise

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self.rules.renew_s)
            try:
                ours = await self._writer.claim(lambda: False)
            except LeaseError as error:
                _log.error("The fleet's lease could not be renewed", fleet=self.rules.fleet, err=error.message)
                continue
            if not ours:
                raise TakenNameError(
                    f"another process has taken the name {self.rules.member} in the fleet {self.rules.fleet}"
                )

    def _describe(self) -> None:
        """Have the lease say who we are and whose pods we decide on."""
        self._writer.metadata.update(
            labels={LABEL: self.rules.fleet, MEMBER: self.rules.member},
            annotations={SCHEDULERS: ",".join(self._schedulers)},
        )

    # -- the leases of all ---------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """For ever. List again before each watch: there are few members."""
        while True:
            try:
                params = {"watch": "true", "timeoutSeconds": str(WATCH_S), "resourceVersion": await self._list()}
                async with self._client.stream(
                    self._path, params={**params, **self._selected()}, idle_s=WATCH_S + WATCH_GRACE_S
                ) as lines:
                    async for line in lines:
                        self._handle(decoded(line))
            except ApiError as error:
                _log.v(2).info("Cannot watch the members of the fleet", err=error.message)
            await self._forget()
            await asyncio.sleep(AGAIN_S)

    def _selected(self) -> dict[str, str]:
        return {"labelSelector": f"{LABEL}={self.rules.fleet}"}

    async def _list(self) -> str:
        """List all members; the resourceVersion of the list."""
        found = decoded(await self._client.request("GET", self._path, params=self._selected()))
        items = found.get("items") or []
        for lease in items:
            self._see(lease)
        self._roster.only(frozenset(_member(lease) for lease in items))
        self._news.set()
        return str((found.get("metadata") or {}).get("resourceVersion") or "")

    def _handle(self, event: dict[str, Any]) -> None:
        lease = event.get("object") or {}
        if event.get("type") in ("ADDED", "MODIFIED"):
            self._see(lease)
        elif event.get("type") == "DELETED":
            self._roster.gone(_member(lease))
        elif event.get("type") == "ERROR":
            raise ApiError(int(lease.get("code") or 0), str(lease.get("reason") or ""), str(lease.get("message") or ""))
        if self._share is not None and self._roster.live(self._clock()) != self._share.members:
            self._news.set()

    def _see(self, lease: dict[str, Any]) -> None:
        meta, spec = lease.get("metadata") or {}, lease.get("spec") or {}
        said = (meta.get("annotations") or {}).get(SCHEDULERS, "")
        member = FleetMember(_member(lease), tuple(name for name in said.split(",") if name))
        if not spec.get("holderIdentity"):
            self._roster.gone(member.name)
            return
        word = f"{spec.get('holderIdentity')} {spec.get('renewTime')}"
        self._roster.seen(member, word, float(spec.get("leaseDurationSeconds") or 0), self._clock())

    async def _forget(self) -> None:
        """Delete the leases of members that are long dead."""
        for name in self._roster.long_dead(self._clock(), FORGET_TIMES):
            gone = FleetRules(self.rules.fleet, name).lease
            try:
                await self._client.request("DELETE", f"{self._path}/{gone}")
            except ApiError as error:
                _log.v(2).info("The lease of a dead member cannot be deleted", member=name, err=error.message)


def _member(lease: dict[str, Any]) -> str:
    meta = lease.get("metadata") or {}
    return str((meta.get("labels") or {}).get(MEMBER) or "")


def fresh_member() -> str:
    """A name for a member without one: its share ends with the process."""
    host = re.sub("[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:HOST_CHARS].rstrip("-")
    return f"{host or 'member'}-{uuid4().hex[:8]}"


class FilteringPerformer:
    """Passes effects on without those that another member reports."""

    def __init__(self, fleet: Fleet, performer: DrivenPerformer) -> None:
        self._fleet = fleet
        self._performer = performer

    @property
    def binds_waiting(self) -> int:
        return self._performer.binds_waiting

    def perform(self, effects: Sequence[Effect]) -> None:
        self._performer.perform(self._fleet.own_effects(effects))
