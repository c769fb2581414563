"""`situate sim --nodes`: the control plane and agents in virtual worlds, and what they did wrong there."""

from __future__ import annotations

import logging
from concurrent.futures import ProcessPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from situate.cli.commands.sim import CHUNK, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from situate.sim.nodes.world import NodeWorldResult

__all__ = ["play_nodes"]

SHOWN: Final = 60
"""How much of a story is shown before what went wrong."""


def play_nodes(seeds: range, workers: int, *, trace: bool) -> int:
    """Play these worlds; how many violations there were."""
    was = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # Agents that are cut off say so, a thousand times.
    try:
        return _play(seeds, workers, trace=trace)
    finally:
        logging.disable(was)


def _play(seeds: range, workers: int, *, trace: bool) -> int:
    failed = 0
    total = Totals()
    progress = Progress(len(seeds), monotonic)
    for outcome in _outcomes(seeds, workers, trace=trace):
        total.add(outcome)
        failed += len(outcome.violations)
        if outcome.violations and not trace:
            _tell(outcome)
        if len(seeds) == 1:
            click.echo(f"seed {outcome.seed}: {outcome.digest}; {outcome.profile}; faults: {outcome.faults}")
        if (line := progress.after(total.worlds, failed)) is not None:
            click.echo(line, err=True)
    click.echo(f"{total.said()}, {failed} violations")
    return failed


def _tell(outcome: NodeWorldResult) -> None:
    """The log up to the first violation, and all violations."""
    first = next(index for index, line in enumerate(outcome.log) if "!!" in line)
    for line in outcome.log[max(0, first - SHOWN) : first]:
        click.echo(line)
    for violation in outcome.violations:
        click.echo(f"seed {outcome.seed}, {violation}  (situate sim --nodes --seed {outcome.seed} --trace)")


class Totals:
    """What was seen in all worlds together."""

    def __init__(self) -> None:
        self.worlds = self.faults = self.starts = self.given_up = self.evictions = self.restarts = 0
        self.minutes = self.slowest_s = 0.0

    def add(self, outcome: NodeWorldResult) -> None:
        self.worlds += 1
        self.faults += outcome.faults_played
        self.starts += outcome.starts
        self.given_up += outcome.given_up
        self.evictions += outcome.evictions
        self.restarts += outcome.restarts
        self.minutes += outcome.minutes
        self.slowest_s = max(self.slowest_s, outcome.settled_s)

    def said(self) -> str:
        return (
            f"{self.worlds} worlds, {self.minutes:.0f} virtual minutes, {self.faults} faults, {self.starts} containers "
            f"begun, {self.given_up} nodes given up, {self.evictions} evictions, {self.restarts} restarts of the "
            f"control plane, settled within {self.slowest_s:.0f} s"
        )


def _outcomes(seeds: range, workers: int, *, trace: bool) -> Iterable[NodeWorldResult]:
    from situate.sim.nodes.world import run

    if trace:
        return [run(seeds[0], click.echo)]
    if workers == 1:
        return (run(seed) for seed in seeds)
    return _at_once(seeds, workers)


def _at_once(seeds: range, workers: int) -> Iterable[NodeWorldResult]:
    """In order, whoever is ready first: the same seeds print the same lines."""
    with ProcessPoolExecutor(workers, initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        yield from pool.map(_one, seeds, chunksize=CHUNK)


def _one(seed: int) -> NodeWorldResult:
    from situate.sim.nodes.world import run

    return run(seed)
