"""Reloads the configuration file when it changes, and on SIGHUP. A wrong one changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from situate.core.config.types import KubeSchedulerConfiguration
from situate.kube.settings import Loaded, Settings
from situate.loop.logs import Log
from situate.loop.watched import WatchedFile
from situate.wire.errors import InputError

LOOK_EVERY_S: Final = 3.0

_log = Log(__name__)


async def whenever_changed(
    file: WatchedFile | None, asked: asyncio.Event, then: Callable[[], Awaitable[None]], every_s: float = LOOK_EVERY_S
) -> None:
    """Call `then` whenever the file changed or `asked` is set, until cancelled. One call at a time."""
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
    """The changed fields that take effect only after a restart."""
    fields = (
        ("leader_election", "leaderElection"),
        ("client_connection", "clientConnection"),
        ("delay_cache_until_active", "delayCacheUntilActive"),
    )
    return tuple(name for field, name in fields if getattr(old, field) != getattr(new, field))


def without_restart(old: Loaded, new: Loaded) -> Loaded:
    """The new configuration, as far as it takes effect at once."""
    kept = {"leader_election": old.config.leader_election, "client_connection": old.config.client_connection}
    return Loaded(replace(new.config, **kept), new.others)


class Configuration:
    """The configuration in use. `check` raises InputError for one that cannot be used."""

    def __init__(self, settings: Settings, loaded: Loaded, check: Callable[[Loaded], None]) -> None:
        self.loaded = loaded
        """The one in use."""
        self._read = loaded
        """As last read, with what takes effect only after a restart."""
        self._settings = settings
        self._check = check

    def read_again(self) -> bool:
        """Load the file again; whether `loaded` is a new configuration now."""
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
