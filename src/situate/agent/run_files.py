"""The files of one run of a container, as its shim writes them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from situate.agent.processes import kill_marked, signal_group, start_ticks
from situate.agent.runtime import Run
from situate.loop.logs import Log

BEGAN, STARTED, ENDED, LOCK = "began", "started", "ended", "lock"
COMPLAINT: Final = "complaint"
"""The shim's stderr."""
FIELDS: Final = ("code", "reason", "message", "started_ns", "finished_ns")
"""Of the file ENDED."""
LOST_CODE: Final = 137
LOST_REASON: Final = "ContainerStatusUnknown"
LOST: Final = "The container could not be located when the agent looked for it"

_log = Log(__name__)


def read_ended(run: Run, directory: Path) -> Run | None:
    found = read(directory / ENDED)
    if found is None:
        return None
    return replace(run, state="exited", **{name: found[name] for name in FIELDS})


def record_lost(run: Run, directory: Path) -> Run:
    """Mark a run whose shim is gone as exited, and kill what is left of it."""
    found = read(directory / STARTED)
    if found is not None:
        process = found["process"]
        if start_ticks(process["pid"]) == process["ticks"]:
            signal_group(process["pid"], signal.SIGKILL)
    killed = kill_marked(mark_of(directory))
    if found is not None or killed:
        _log.warning("A container lost its shim", directory=str(directory), killed=killed)
    now = time.time_ns()
    message = LOST if found is not None else _complaint(directory)
    over = replace(
        run,
        state="exited",
        started_ns=(found or {}).get("started_ns", now),
        finished_ns=now,
        code=LOST_CODE,
        reason=LOST_REASON,
        message=message,
    )
    body = {name: getattr(over, name) for name in FIELDS}
    with contextlib.suppress(OSError):  # the directory was deleted, with the shim's files
        write(directory / ENDED, body)
    return over


def mark_of(directory: Path) -> str:
    """The value of the variable MARK in the environment of the run's processes, unique on this machine."""
    return hashlib.sha256(os.fsencode(directory.absolute())).hexdigest()[:24]


def _complaint(directory: Path) -> str:
    """The last line of the shim's stderr."""
    with contextlib.suppress(OSError):
        lines = (directory / COMPLAINT).read_text(errors="replace").strip().splitlines()
        if lines:
            return lines[-1]
    return LOST


def read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write(path: Path, body: dict[str, Any]) -> None:
    made = path.with_name(f"{path.name}.new")
    made.write_text(json.dumps(body))
    made.replace(path)
