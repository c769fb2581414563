"""`situate sim`: run the scheduler in virtual worlds, each drawn from a seed, and hold it to account at every step."""

from __future__ import annotations

import re
from concurrent.futures import ProcessPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from situate.sim.world import WorldResult

DEFAULT_STEPS = 2_000
CHUNK = 4
"""How many worlds a worker takes at a time."""
PROGRESS_EVERY_S: Final = 30.0
"""How long a run is silent before it says, on the standard error, how far it has come."""


def read_seeds(ctx: click.Context, param: click.Parameter, value: str | None) -> range | None:
    """`7`, or `1..100`: from one to the other, both included."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", value, re.ASCII)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise click.BadParameter(f"{value!r} is neither a seed nor two of them, as in 1..100", ctx, param)
    return range(int(found[1]), int(found[2] or found[1]) + 1)


@click.command()
@click.option("--seed", type=click.IntRange(0), help="Run this one world.")
@click.option("--seeds", metavar="A..B", callback=read_seeds, help="Run these worlds, one after another.")
@click.option("--steps", type=click.IntRange(1), default=DEFAULT_STEPS, help="Changes before the faults stop.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="How many worlds to run at once.")
@click.option("--trace", is_flag=True, help="With --seed: print all that the scheduler is told and asks for.")
@click.option("--nodes", is_flag=True, help="Run agents and the control plane, rather than the scheduler alone.")
@click.pass_context
def sim(
    ctx: click.Context, seed: int | None, seeds: range | None, steps: int, workers: int, trace: bool, nodes: bool
) -> None:
    """Run the scheduler in virtual worlds, and print what it did wrong, with the command that does it again."""
    if seed is not None and seeds is not None:
        raise click.UsageError("--seed and --seeds are two ways to say the same; give one of them")
    if trace and seed is None:
        raise click.UsageError("--trace is for one world; give it with --seed")
    if seeds is None:
        seeds = range(seed or 0, (seed or 0) + 1)
    if nodes:
        from situate.cli.commands.sim.nodes import play_nodes

        if ctx.get_parameter_source("steps") is not ParameterSource.DEFAULT:
            raise click.UsageError("--steps is of the scheduler's worlds; those with --nodes last as long as they do")
        ctx.exit(1 if play_nodes(seeds, workers, trace=trace) else 0)
    failed = 0
    total = Totals()
    progress = Progress(len(seeds), monotonic)
    for outcome in _outcomes(seeds, steps, workers, trace):
        total.add(outcome)
        for violation in outcome.violations:
            failed += 1
            click.echo(f"seed {outcome.seed}, {violation}  (situate sim --seed {outcome.seed} --steps {steps})")
        if len(seeds) == 1:
            click.echo(f"seed {outcome.seed}: {outcome.digest}; {outcome.cast}; faults: {outcome.faults.named()}")
        if (line := progress.after(total.worlds, failed)) is not None:
            click.echo(line, err=True)
    click.echo(f"{total.said()}, {failed} violations")
    if failed:
        ctx.exit(1)


class Totals:
    """What was seen in all worlds together."""

    def __init__(self) -> None:
        self.worlds = self.steps = self.changes = self.binds = self.evictions = self.restarts = self.rescued = 0
        self.minutes = 0.0

    def add(self, outcome: WorldResult) -> None:
        self.worlds += 1
        self.steps += outcome.steps
        self.changes += outcome.changes
        self.binds += outcome.binds
        self.evictions += outcome.evictions
        self.restarts += outcome.restarts
        self.rescued += outcome.rescued
        self.minutes += outcome.ended_ms / 60_000

    def said(self) -> str:
        return (
            f"{self.worlds} worlds, {self.minutes:.0f} virtual minutes, {self.steps} steps, {self.changes} changes, "
            f"{self.binds} binds, {self.evictions} evictions, {self.restarts} restarts, "
            f"{self.rescued} rescued by the flush"
        )


class Progress:
    """Says now and then how far a long run has come."""

    def __init__(self, worlds: int, clock: Callable[[], float]) -> None:
        self._worlds = worlds
        self._clock = clock
        self._began = self._said = clock()

    def after(self, done: int, violations: int) -> str | None:
        """What to say when so many worlds are done; None: it is too early for that, or all are done."""
        now = self._clock()
        if done >= self._worlds or now - self._said < PROGRESS_EVERY_S:
            return None
        self._said = now
        minutes = round((now - self._began) / done * (self._worlds - done) / 60)
        left = "less than a minute" if minutes < 1 else "1 minute" if minutes == 1 else f"{minutes} minutes"
        return f"{done} of {self._worlds} worlds, {violations} violations, {left} to go"


def _outcomes(seeds: range, steps: int, workers: int, trace: bool) -> Iterable[WorldResult]:
    from situate.sim.world import run

    if trace:
        return [run(seeds[0], changes=steps, trace=click.echo)]
    if workers == 1:
        return (run(seed, changes=steps) for seed in seeds)
    return _at_once(seeds, steps, workers)


def _at_once(seeds: range, steps: int, workers: int) -> Iterable[WorldResult]:
    """In order, whoever is ready first: the same seeds print the same lines."""
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_one, seeds, [steps] * len(seeds), chunksize=CHUNK)


def _one(seed: int, steps: int) -> WorldResult:
    from situate.sim.world import run

    return run(seed, changes=steps)
