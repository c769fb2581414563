"""Files that hold secrets: for their owner only, there as a whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

__all__ = ["PRIVATE", "PRIVATE_FOLDER", "IdentityError", "SecretFile", "read_private", "write_private", "sync_folder"]

PRIVATE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
STAT_INTERVAL_S: Final = 0.1
"""How often a file is looked at. Each look lets go of the interpreter, which under load takes as long as 3 % of a
request to get back."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class IdentityError(Exception):
    """Something on disk is not what it should be. One line, for whoever started the server; nothing was changed."""


def read_private(path: Path) -> str:
    """What the file says, if nobody else can read it."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise IdentityError(f"{path} is damaged: it is not text") from None
    except OSError as error:
        raise IdentityError(f"{path} cannot be read: {error.strerror}") from error
    if mode & _OTHERS:
        raise IdentityError(f"{path} can be read by others (mode {mode:04o}); say chmod 600 if that was not meant")
    return text


class SecretFile:
    """A file that is read again when it has changed: a token that was taken out is refused a moment later."""

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._clock = clock
        self._next_look = 0.0
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> bool:
        """Since it was last asked; or, if that is less than LOOK_S ago, no."""
        now = self._clock()
        if now < self._next_look:
            return False
        self._next_look = now + STAT_INTERVAL_S
        try:
            found = os.stat(self._path)  # noqa: PTH116 - on the way of each request, and three times as fast
        except FileNotFoundError:
            seen = (0, 0, 0)
        else:
            seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        if seen == self._seen:
            return False
        self._seen = seen
        return True

    def text(self) -> str:
        """What it says; "" if it is not there."""
        return read_private(self._path) if self._path.exists() else ""


def write_private(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file at once: whoever reads it, also after a crash, sees the old one or the new one."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    try:
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
