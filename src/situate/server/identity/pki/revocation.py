"""Revoked client certificates: in a file of the server's directory, and in a ConfigMap that servers of a store share.

A line names the serial number of a certificate and when the certificate expires, or a user, all of whose certificates
up to a time are revoked:

    serial 1f2e3d 2027-11-16T12:00:00Z
    user system:node:n1 2026-11-16T12:00:00Z

A change of the file takes effect at the next request. A server copies the file to the ConfigMap within SHARE_S.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import Any, Final, Protocol

from situate.loop.logs import Log
from situate.server.errors import StatusError
from situate.server.identity import secret_files
from situate.server.identity.pki.certificates import CLOCKS_DIFFER
from situate.server.identity.ports import ObjectReader, resource_of
from situate.server.identity.secret_files import IdentityError, SecretFile, write_private
from situate.server.requests import SYSTEM, Caller, Object, Target

REVOKED: Final = "revoked"
"""The file, beside the authority."""
NAMESPACE: Final = "kube-system"
NAME: Final = "situate-revoked"
KEY: Final = "revoked"
CONFIG_MAPS: Final = resource_of("v1", "configmaps")
MAX_REVOKED: Final = 10_000
"""The most entries, certificates and users: a longer list would not fit into an object."""
SHARE_S: Final = 1.0
"""How often servers exchange revocations with others on the same store."""

_log = Log(__name__)


@dataclass(frozen=True, slots=True)
class RevocationList:
    serials: Mapping[int, datetime] = field(default_factory=dict)
    """Serial numbers, with the time when the certificate expires."""
    users: Mapping[str, datetime] = field(default_factory=dict)
    """Users, with the time up to which their certificates are revoked."""

    def has(self, serial: int, user: str, valid_from: datetime) -> bool:
        if serial in self.serials:
            return True
        until = self.users.get(user) if self.users else None
        return until is not None and valid_from + CLOCKS_DIFFER <= until

    def __or__(self, other: RevocationList) -> RevocationList:
        users = {**self.users}
        for user, until in other.users.items():
            users[user] = max(until, users.get(user, until))
        return RevocationList({**self.serials, **other.serials}, users)

    def current(self, now: datetime) -> RevocationList:
        """Without certificates that have expired anyway."""
        return RevocationList({serial: end for serial, end in self.serials.items() if end > now}, self.users)

    def text(self) -> str:
        lines = [f"serial {serial:x} {_time(end)}" for serial, end in sorted(self.serials.items())]
        return "".join(
            f"{line}\n" for line in (*lines, *(f"user {a} {_time(b)}" for a, b in sorted(self.users.items())))
        )


NOTHING: Final = RevocationList()
FOREVER: Final = datetime.max.replace(tzinfo=UTC, microsecond=0) - timedelta(days=1)
"""The expiry of a certificate whose own is not known."""


def parse(text: str) -> RevocationList:
    """Raises ValueError."""
    serials: dict[int, datetime] = {}
    users: dict[str, datetime] = {}
    for line in filter(None, text.splitlines()):
        match line.split():
            case ["serial", serial, end]:
                serials[int(serial, 16)] = _parsed(end)
            case ["user", *name, until] if name:
                users[" ".join(name)] = _parsed(until)
            case [serial]:  # as releases before wrote it
                serials[int(serial, 16)] = FOREVER
            case _:
                raise ValueError(f"not a revocation: {line[:100]!r}")
    return RevocationList(serials, users)


def read_revoked(path: Path) -> RevocationList:
    """Raises IdentityError."""
    try:
        return parse(SecretFile(path).text())
    except ValueError as error:
        raise IdentityError(f"{path} is damaged: {error}") from None


def revoke(path: Path, more: RevocationList, now: datetime) -> None:
    """Add to the file. The caller holds the lock of the directory; see users.py."""
    wanted = (read_revoked(path) | more).current(now)
    if len(wanted.serials) + len(wanted.users) > MAX_REVOKED:
        raise IdentityError(
            f"{path} has {MAX_REVOKED} revocations already; `situate certificates rotate ca` makes them unnecessary"
        )
    write_private(path, wanted.text().encode())


class Revocations:
    """The revocations that this server knows. A revoked certificate stays revoked, whatever happens to the file and the
    ConfigMap meanwhile."""

    def __init__(self, path: Path, objects: ObjectReader) -> None:
        self._path = path
        self._file = SecretFile(path)
        self._objects = objects
        self._revision = 0
        self._next_look = 0.0
        self._known = read_revoked(path)

    def __call__(self) -> RevocationList:
        now = monotonic()
        if now < self._next_look:
            return self._known
        self._next_look = now + secret_files.STAT_INTERVAL_S
        if self._file.changed():
            self._add_file()
        found = self._objects.get(CONFIG_MAPS, NAMESPACE, NAME)
        if found is not None and found.revision != self._revision:
            self._revision = found.revision
            self._known |= shared(found.object(CONFIG_MAPS))
        return self._known

    def _add_file(self) -> None:
        try:
            self._known |= read_revoked(self._path)
        except IdentityError as error:
            _log.error("The revocations cannot be read; keeping the known ones", err=str(error))


class RevocationRegistry(Protocol):
    """The part of the registry that sharing needs."""

    @property
    def cache(self) -> ObjectReader: ...

    async def create(self, target: Target, obj: Object, caller: Caller) -> Any: ...

    async def update(self, target: Target, obj: Object, caller: Caller) -> Any: ...


async def share(registry: RevocationRegistry, path: Path, now: datetime) -> bool:
    """Copy the file's revocations to the ConfigMap. Returns whether it lacked one."""
    own = read_revoked(path).current(now)
    found = registry.cache.get(CONFIG_MAPS, NAMESPACE, NAME)
    obj = found.object(CONFIG_MAPS) if found is not None else None
    present = shared(obj).current(now) if obj is not None else NOTHING
    wanted = present | own
    if wanted == present:
        return False
    data = {KEY: wanted.text()}
    if obj is not None:
        await registry.update(Target(CONFIG_MAPS, NAMESPACE, NAME), {**obj, "data": data}, SYSTEM)
        return True
    made: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "data": data,
    }
    await registry.create(Target(CONFIG_MAPS, NAMESPACE), made, SYSTEM)
    return True


async def share_always(registry: RevocationRegistry, path: Path) -> None:
    """Until cancelled."""
    file = SecretFile(path)
    stale = False
    while True:
        stale = file.changed() or stale
        if stale:
            try:
                await share(registry, path, datetime.now(UTC))
                stale = False
            except IdentityError as error:
                _log.error("The revocations cannot be read", err=str(error))
                stale = False
            except StatusError as error:
                if error.code != HTTPStatus.CONFLICT:
                    _log.warning("The revocations could not be shared; trying again", err=str(error))
        await asyncio.sleep(SHARE_S)


def shared(obj: Object) -> RevocationList:
    """The revocations in the ConfigMap; none if it is damaged."""
    try:
        return parse((obj.get("data") or {}).get(KEY, ""))
    except (ValueError, AttributeError):
        return NOTHING


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _parsed(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
