"""Files with secrets: readable by their owner only, and written atomically."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

from situate.store.durable import sync_folder

PRIVATE: Final = 0o600
PRIVATE_FOLDER: Final = 0o700
STAT_INTERVAL_S: Final = 0.1
"""How often to stat a file. Each stat releases the interpreter lock; under load, getting it back takes 3 % of a
request."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class IdentityError(Exception):
    """A file is missing, damaged or unsafe. One line, for the administrator; nothing was changed."""


def read_private(path: Path) -> str:
    """The text of a file that only its owner can read."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise IdentityError(f"{path} is damaged: it is not text") from None
    except OSError as error:
        raise IdentityError(f"{path} cannot be read: {error.strerror}") from error
    if mode & _OTHERS:
        raise IdentityError(f"{path} is readable by others (mode {mode:04o}); run chmod 600 if that was not intended")
    return text


class SecretFile:
    """A file to read again when it changes, so that a removed token is refused a moment later."""

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._clock = clock
        self._next_stat = 0.0
        self._stamp: tuple[int, ...] | None = None

    def changed(self) -> bool:
        """Whether it changed since the last call. Always False within STAT_INTERVAL_S of one."""
        now = self._clock()
        if now < self._next_stat:
            return False
        self._next_stat = now + STAT_INTERVAL_S
        try:
            found = os.stat(self._path)  # noqa: PTH116 - on the hot path, and three times as fast
        except FileNotFoundError:
            stamp: tuple[int, ...] = ()
        else:
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        return True

    def text(self) -> str:
        """The text; "" if the file does not exist."""
        return read_private(self._path) if self._path.exists() else ""


def write_private(path: Path, content: bytes, mode: int = PRIVATE) -> None:
    """Write a file atomically: a reader, also after a crash, sees the old content or the new."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)  # of a process that was killed
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
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
