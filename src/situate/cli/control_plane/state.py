"""Which control plane runs in a directory: it writes its process and address there, and removes them when it ends."""

import json
import os
import time
from pathlib import Path
from typing import Any, Final

from situate import __version__

STATE: Final = "server.json"
COPIED_FROM: Final = "copied-from"
"""Which dump the cluster of this directory was filled from; absent if from none."""
_PROC: Final = Path("/proc")
_START_TIME: Final = 19
"""The position of the start time in /proc/<pid>/stat, counted after the program's name."""


def read_state(directory: Path) -> dict[str, Any] | None:
    """None: nothing runs there. A file that a killed process left behind does not count."""
    found = _recorded(directory)
    return found if found is not None and _is_server(found) else None


def stranger(directory: Path) -> int | None:
    """The pid in the file, if it now belongs to another program than the server."""
    found = _recorded(directory)
    return found["pid"] if found is not None and _runs(found["pid"]) and not _is_server(found) else None


def _recorded(directory: Path) -> dict[str, Any] | None:
    try:
        found: Any = json.loads((directory / STATE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("pid"), int) and found["pid"] > 0 else None


def _is_server(state: dict[str, Any]) -> bool:
    """Whether the process is still the one that wrote the state, and not another with the same number."""
    pid: int = state["pid"]
    if not _runs(pid):
        return False
    then, now = state.get("process"), _identity(pid)
    if then is not None and now is not None:
        return bool(then == now)
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return True  # no /proc here
    return any(word.rpartition(b"/")[2] == b"situate" for word in words)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it is somebody else's
    return True


def _identity(pid: int) -> str | None:
    """The boot and the time since then at which a process started; None without /proc."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    return f"{boot}/{stat.rpartition(')')[2].split()[_START_TIME]}"


def write_state(directory: Path, url: str, page: str = "", **more: object) -> None:
    """Atomically: `situate up` waits for this file. `page` is the address of the page, if it is served; `more`: what
    `situate up` says besides."""
    pid = os.getpid()
    made = {"version": __version__, "started": time.time()}
    state = {"pid": pid, "process": _identity(pid), "url": url, "page": page, **made, **more}
    new = directory / f"{STATE}.new"
    new.write_text(json.dumps(state))
    new.replace(directory / STATE)


def remove_state(directory: Path) -> None:
    (directory / STATE).unlink(missing_ok=True)
