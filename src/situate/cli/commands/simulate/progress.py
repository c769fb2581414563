"""A bar on the standard error that says how far a simulation has come, where somebody is watching; else nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Bar"]


class Bar:
    """One line for each configuration."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("pods"),
                TimeRemainingColumn(),
            )
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._tasks = {name: self._progress.add_task(name, total=None) for name in self._names}
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def of(self, name: str) -> Callable[[int, int], None]:
        """What to tell of a configuration: how many pods of how many have come."""
        progress = self._progress
        if progress is None:
            return _nobody_watches
        task = self._tasks[name]

        def told(came: int, of: int) -> None:
            progress.update(task, completed=came, total=of)

        return told

    def done(self, name: str) -> None:
        if self._progress is not None:
            self._progress.stop_task(self._tasks[name])


def _nobody_watches(came: int, of: int) -> None:
    return
