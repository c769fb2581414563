"""The log of a world: what happened, and the violations."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from situate.sim.nodes.virtual_time import VirtualLoop


class RunLog:
    """Lines with true times. The same seed gives the same digest."""

    def __init__(self, loop: VirtualLoop, trace: Callable[[str], None] | None = None) -> None:
        self.lines: list[str] = []
        self.violations: list[str] = []
        self._loop = loop
        self._trace = trace
        self._digest = hashlib.sha256()

    def record(self, text: str) -> None:
        line = f"{self._loop.now:9.3f}  {text}"
        self.lines.append(line)
        self._digest.update(line.encode())
        if self._trace is not None:
            self._trace(line)

    def violation(self, what: str) -> None:
        """Record each violation once, because most repeat."""
        if what in self.violations:
            return
        self.violations.append(what)
        self.record(f"!! {what}")

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()[:16]
