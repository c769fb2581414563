"""Notices that the configuration file is another: on SIGHUP, or because what is on the disk changed.

A ConfigMap in a pod changes by a symbolic link that is swapped, and an editor replaces the file; so it is looked at by
name, every few seconds, and its bytes decide. Nothing here says what to do with it. The file is read by whoever is
called, who keeps what there was if it is wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeAlias

from situate.core.config.types import KubeSchedulerConfiguration

LOOK_EVERY_S: Final = 3.0
MOST_BYTES: Final = 16 << 20

Stamp: TypeAlias = tuple[int, int, int, int]


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
