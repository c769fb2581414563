"""Notices that the configuration file is another, on SIGHUP or because what is on the disk changed, and reads it again.

It is looked at every few seconds. If it is wrong, what there was stays. Nothing here says what to do with it.
"""

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
