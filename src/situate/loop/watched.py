"""Notices that a file has changed.

Kubernetes changes a ConfigMap's file by swapping a symbolic link, and editors replace files. So it is looked up by
name on every call, and its bytes decide.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, TypeAlias

MOST_BYTES: Final = 16 << 20

Stamp: TypeAlias = tuple[int, int, int, int]


class WatchedFile:
    """One file, as it was at the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = self._look()
        self._digest = self._read()

    def changed(self) -> bool:
        """Whether its bytes differ from those at the last call. A file that is missing has not changed."""
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
