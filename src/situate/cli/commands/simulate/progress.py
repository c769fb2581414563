"""A progress bar on standard error for each configuration, if that is a terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

Report = Callable[[int, int], None]
"""Receives how many pods have arrived, of how many."""


@contextmanager
def progress_bars(names: Sequence[str]) -> Iterator[dict[str, Report]]:
    """What to call for each name."""
    if not sys.stderr.isatty():
        yield dict.fromkeys(names, lambda arrived, of: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    label = TextColumn("{task.description}", markup=False)
    columns = (label, BarColumn(), MofNCompleteColumn(), TextColumn("pods"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def report(name: str) -> Report:
            task = progress.add_task(name, total=None)
            return lambda arrived, of: progress.update(task, completed=arrived, total=of)

        yield {name: report(name) for name in names}
