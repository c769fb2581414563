"""Which control plane runs in a directory: what it wrote of itself, if its process is still there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

__all__ = ["STATE", "read_state"]

STATE: Final = "server.json"


def read_state(directory: Path) -> dict[str, Any] | None:
    """None: nothing runs there. A file that a killed process left behind says nothing."""
    try:
        found: Any = json.loads((directory / STATE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("pid"), int) or not _is_alive(found["pid"]):
        return None
    return found


def _is_alive(pid: int) -> bool:
    """A number may be another process's by now: it has to be one of ours."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return True  # no /proc here
    return any(b"situate" in word for word in words)
