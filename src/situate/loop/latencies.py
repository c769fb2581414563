"""Latency tables in files, read again when they change: a new table is a change like that of any other object.

So the journal has each table from the step on in which it applied, and the queue retries the pods that the old table
kept out, and no others. A table that cannot be used is logged in one line, and the old one stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from situate.core.changes import Change, ObjectSeen
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.model.latency import LatencyTable, PlaceLatencies
from situate.core.model.meta import ObjectMeta
from situate.core.plugins.latency import LatencyArgs
from situate.loop.logs import Log
from situate.loop.watched import WatchedFile
from situate.wire.errors import InputError
from situate.wire.latency import load_latencies

LOOK_EVERY_S: Final = 3.0

_log = Log(__name__)


class LatencyFiles:
    """All tables that a configuration has in files. They were read with it; `run` tells of changes since."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        tell: Callable[[Sequence[Change]], None],
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._known = _files_of(config)
        self._tell = tell
        self._every_s = every_s
        self._watched: dict[str, WatchedFile] = {}
        self.looks = 0
        """How often all files were checked."""

    def __bool__(self) -> bool:
        return bool(self._known)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            for name in self._known:
                await self._look(name)
            self.looks += 1
            await asyncio.sleep(self._every_s)

    async def _look(self, name: str) -> None:
        """Read a file that was not checked yet, or has changed since; tell of a new table."""
        if name not in self._watched:
            self._watched[name] = WatchedFile(Path(name))
        elif not self._watched[name].changed():
            return
        try:
            # A large table takes a while to read, and binds must not wait for that.
            places = await asyncio.to_thread(lambda: load_latencies(Path(name).read_bytes(), name))
        except (InputError, OSError) as error:
            _log.error("The new latency table cannot be used, the old one stays", file=name, err=str(error))
            return
        if places != self._known[name]:
            self._known[name] = places
            _log.info("The latency table has changed", file=name, places=len(places))
            self._tell([ObjectSeen(LatencyTable(metadata=ObjectMeta(name=name), places=places))])


def _files_of(config: KubeSchedulerConfiguration) -> dict[str, Mapping[str, PlaceLatencies]]:
    """Name of each file -> the table that was read from it."""
    args = (entry.args for profile in config.profiles for entry in profile.plugin_config)
    return {one.table_file: one.places for one in args if isinstance(one, LatencyArgs) and one.table_file}
