"""The name under which a server takes leases in a store that several servers share.

It is in a file in the server's directory, so that a server that was killed finds its leases again at once, in a new
term, instead of waiting until they expire. A lock lets one process at a time use the file: another process takes
a new name. So does a server in a copy of the directory, because the file contains its own path.
"""

import fcntl
import os
import socket
import uuid
from pathlib import Path
from typing import Final

FILE: Final = "lease-identity"

_held: dict[str, tuple[int, str]] = {}
"""The files that this process has locked, with their names. The kernel unlocks them when it ends, however it ends."""


def lease_identity(directory: Path) -> str:
    """Every call by one process returns the same name. Raises OSError if the directory cannot be written."""
    where = str(directory.resolve() / FILE)
    if where not in _held:
        handle = os.open(where, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return _new()
        _held[where] = handle, _read_or_write(handle, where)
    return _held[where][1]


def _read_or_write(handle: int, where: str) -> str:
    name, _, place = os.read(handle, 4_096).decode("utf-8", "replace").strip().partition(" ")
    host, _, unique = name.rpartition("_")
    if host == socket.gethostname() and unique and place == where:
        return name
    name = _new()
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{name} {where}\n".encode(), 0)
    os.fsync(handle)
    return name


def _new() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"
