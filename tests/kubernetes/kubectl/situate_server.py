"""`situate server` as a process of its own, for clients to talk to."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kubernetes.parts import Part

START_S = 30.0
RUNNING: list[Part] = []


@dataclass(frozen=True, slots=True)
class SituateServer:
    part: Part
    folder: Path
    url: str

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"


@contextmanager
def situate_server(folder: Path, *flags: str) -> Iterator[SituateServer]:
    """Ready, at a free port; it has stopped by itself at the end."""
    command = [sys.executable, "-m", "situate", "server", "--port", "0", "--dir", str(folder), *flags]
    part = Part("situate server", command, folder / "server.log")
    state = folder / "server.json"
    RUNNING.append(part)
    try:
        part.start(state.exists, START_S)
        yield SituateServer(part, folder, json.loads(state.read_text())["url"])
        code = part.stop()
        if code:
            raise AssertionError(f"situate server ended with exit code {code}\n{part.tail()}")
    finally:
        part.kill()
        RUNNING.remove(part)
