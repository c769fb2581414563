"""Notices that the configuration file is another, on SIGHUP or because what is on the disk changed, and reads it again.

A ConfigMap in a pod changes by a symbolic link that is swapped, and an editor replaces the file; so it is looked at by
name, every few seconds, and its bytes decide. If it is wrong, what there was stays. Nothing here says what to do with
it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from msgspec.structs import replace

from situate.core.config.types import KubeSchedulerConfiguration
from situate.kube.settings import Loaded, Settings
from situate.loop.logs import Log
from situate.wire.errors import InputError

LOOK_EVERY_S: Final = 3.0
MOST_BYTES: Final = 16 << 20

Stamp: TypeAlias = tuple[int, int, int, int]

_log = Log(__name__)


class ConfigFile:
    """One file, and what was last seen of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._look()
        self._digest = self._read()

    def changed(self) -> bool:
        """Whether its bytes are others than at the last call. A file that is away for a moment has not changed."""
        stamp = self._look()
        if stamp is None or stamp == self._stamp:
            return False
        digest = self._read()
        if digest is None:
            return False
        before, self._digest, self._stamp = self._digest, digest, stamp
        return digest != before

    def _look(self) -> Stamp | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> bytes | None:
        try:
            with self.path.open("rb") as file:
                return hashlib.sha256(file.read(MOST_BYTES)).digest()
        except OSError:
            return None


async def whenever_changed(
    file: ConfigFile | None, asked: asyncio.Event, then: Callable[[], Awaitable[None]], every_s: float = LOOK_EVERY_S
) -> None:
    """Until cancelled: call whenever the file changed, or somebody asked. One call at a time."""
    while True:
        try:
            async with asyncio.timeout(every_s if file is not None else None):
                await asked.wait()
        except TimeoutError:
            pass
        changed = file is not None and file.changed()
        if changed or asked.is_set():
            asked.clear()
            await then()


def needs_restart(old: KubeSchedulerConfiguration, new: KubeSchedulerConfiguration) -> tuple[str, ...]:
    """The fields whose new values hold only after a restart."""
    found = []
    if old.leader_election != new.leader_election:
        found.append("leaderElection")
    if old.client_connection != new.client_connection:
        found.append("clientConnection")
    if old.delay_cache_until_active != new.delay_cache_until_active:
        found.append("delayCacheUntilActive")
    return tuple(found)


def without_restart(old: Loaded, new: Loaded) -> Loaded:
    """The new one, as far as it holds at once."""
    kept = {"leader_election": old.config.leader_election, "client_connection": old.config.client_connection}
    return Loaded(replace(new.config, **kept), new.others)


class Configuration:
    """The configuration in use, and how it is replaced. `check` raises InputError for one that cannot be used."""

    def __init__(self, settings: Settings, loaded: Loaded, check: Callable[[Loaded], None]) -> None:
        self.loaded = loaded
        """The one in use."""
        self._read = loaded
        """As it was last read, with what holds only after a restart."""
        self._settings = settings
        self._check = check

    def read_again(self) -> bool:
        """Whether there is another one, and it is good; `loaded` is that one then."""
        if self._settings.config_file is None:
            _log.info("There is no --config to read again")
            return False
        file = str(self._settings.config_file)
        try:
            found = self._settings.load()
            self._check(found)
        except (InputError, OSError) as error:
            _log.error("The new configuration cannot be used, the old one stays", file=file, err=str(error))
            return False
        if found == self._read:
            _log.info("The configuration has not changed", file=file)
            return False
        self._read = found
        if fields := needs_restart(self.loaded.config, found.config):
            _log.warning("Some of the new configuration holds only after a restart", file=file, fields=list(fields))
        self.loaded = without_restart(self.loaded, found)
        return True
