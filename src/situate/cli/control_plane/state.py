"""Which control plane runs in a directory: it writes its process and address there, and removes them when it ends."""

import json
import os
import time
from pathlib import Path
from typing import Any, Final

from situate import __version__

STATE: Final = "server.json"


def read_state(directory: Path) -> dict[str, Any] | None:
    """None: nothing runs there. A file that a killed process left behind does not count."""
    try:
        found: Any = json.loads((directory / STATE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("pid"), int) or not _is_alive(found["pid"]):
        return None
    return found


def _is_alive(pid: int) -> bool:
    """Another program may have the process id by now, so its command line has to be ours."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return True  # no /proc here
    return any(b"situate" in word for word in words)


def write_state(directory: Path, url: str) -> None:
    """Atomically: `situate up` waits for this file."""
    state = {"pid": os.getpid(), "url": url, "version": __version__, "started": time.time()}
    new = directory / f"{STATE}.new"
    new.write_text(json.dumps(state))
    new.replace(directory / STATE)


def remove_state(directory: Path) -> None:
    (directory / STATE).unlink(missing_ok=True)
