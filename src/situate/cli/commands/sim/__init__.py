"""`situate sim`: run the scheduler in simulated worlds, each drawn from a seed, and check it at every step."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, Final

import click
from click.core import ParameterSource

DEFAULT_STEPS: Final = 2_000
CHUNK: Final = 4
"""How many worlds a worker takes at a time."""
PROGRESS_EVERY_S: Final = 30.0
"""How often a long run reports its progress on standard error."""


def read_seeds(ctx: click.Context, param: click.Parameter, value: str | None) -> range | None:
    """`7`, or `1..100`, both included."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})(?:\.\.([0-9]{1,9}))?", value, re.ASCII)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise click.BadParameter(f"{value!r} is neither a seed nor a range such as 1..100", ctx, param)
    return range(int(found[1]), int(found[2] or found[1]) + 1)


@click.command()
@click.option("--seed", type=click.IntRange(0), help="Run this one world.")
@click.option("--seeds", metavar="A..B", callback=read_seeds, help="Run these worlds, one after another.")
@click.option("--steps", type=click.IntRange(1), default=DEFAULT_STEPS, help="Changes before the faults stop.")
@click.option("--workers", type=click.IntRange(1, 64), default=1, help="How many worlds to run at once.")
@click.option("--trace", is_flag=True, help="With --seed: print everything that the scheduler receives and asks for.")
@click.option("--devices", is_flag=True, help="Give devices to every world, not only to some.")
@click.option("--nodes", is_flag=True, help="Simulate agents and the control plane, not the scheduler alone.")
@click.pass_context
def sim(
    ctx: click.Context,
    seed: int | None,
    seeds: range | None,
    steps: int,
    workers: int,
    trace: bool,
    devices: bool,
    nodes: bool,
) -> None:
    """Run the scheduler in simulated worlds, and print every violation with the command that reproduces it."""
    if seed is not None and seeds is not None:
        raise click.UsageError("--seed and --seeds exclude each other")
    if trace and seed is None:
        raise click.UsageError("--trace is for one world; give it with --seed")
    if seeds is None:
        seeds = range(seed or 0, (seed or 0) + 1)
    if not nodes:
        with without_logs():
            failed = play(scheduler_worlds(steps, devices=devices), seeds, workers, trace=trace)
    elif ctx.get_parameter_source("steps") is not ParameterSource.DEFAULT:
        raise click.UsageError("--steps is for the scheduler's worlds, not for those with --nodes")
    else:
        from situate.cli.commands.sim.nodes import node_worlds

        with without_logs():
            failed = play(node_worlds(devices=devices), seeds, workers, trace=trace)
    ctx.exit(1 if failed else 0)


@contextmanager
def without_logs() -> Iterator[None]:
    """Silence what is simulated: agents that are cut off log it thousands of times."""
    was = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(was)


@dataclass(frozen=True, slots=True)
class Worlds:
    """One kind of world: how to run it, and what to print of its results."""

    run: Callable[..., Any]
    """Takes a seed, and optionally `trace`. Must be picklable."""
    violations: Callable[[Any, bool], Iterable[str]]
    """The lines to print of a result; the flag says whether it was traced."""
    describe: Callable[[Any], str]
    figures: Callable[[Any], Mapping[str, float]]
    totals: str
    """A format string over the sums of all figures; `slowest` is the maximum instead."""
    prepare: Callable[[], None] | None = None
    """Runs once in each worker."""


def play(worlds: Worlds, seeds: range, workers: int, *, trace: bool) -> int:
    """Run these worlds, and print what happened. Returns the number of violations."""
    failed = 0
    totals: dict[str, float] = {}
    progress = Progress(len(seeds), monotonic)
    for done, result in enumerate(_results(worlds, seeds, workers, trace=trace), 1):
        for name, value in worlds.figures(result).items():
            before = totals.get(name, 0)
            totals[name] = max(before, value) if name == "slowest" else before + value
        for line in worlds.violations(result, trace):
            click.echo(line)
        failed += len(result.violations)
        if len(seeds) == 1:
            click.echo(f"seed {result.seed}: {result.digest}; {worlds.describe(result)}")
        if (status := progress.after(done, failed)) is not None:
            click.echo(status, err=True)
    click.echo(f"{len(seeds)} worlds, {worlds.totals.format(**totals)}, {failed} violations")
    return failed


def _results(worlds: Worlds, seeds: range, workers: int, *, trace: bool) -> Iterable[Any]:
    """In the order of the seeds, so that the same seeds print the same lines."""
    if trace:
        yield worlds.run(seeds[0], trace=click.echo)
    elif workers == 1:
        yield from map(worlds.run, seeds)
    else:
        with ProcessPoolExecutor(workers, initializer=worlds.prepare) as pool:
            yield from pool.map(worlds.run, seeds, chunksize=CHUNK)


def scheduler_worlds(steps: int, *, devices: bool = False) -> Worlds:
    from situate.sim.world import WorldResult, run

    def violations(result: WorldResult, _: bool) -> Iterable[str]:
        again = f"situate sim --seed {result.seed} --steps {steps}{' --devices' if devices else ''}"
        return [f"seed {result.seed}, {violation}  ({again})" for violation in result.violations]

    counted = ("steps", "changes", "binds", "evictions", "restarts", "rescued")
    return Worlds(
        partial(run, changes=steps, devices=devices or None),
        violations,
        lambda result: f"{result.cast}; faults: {result.faults.named()}",
        lambda result: {"minutes": result.ended_ms / 60_000, **{name: getattr(result, name) for name in counted}},
        "{minutes:.0f} virtual minutes, {steps} steps, {changes} changes, {binds} binds, {evictions} evictions, "
        "{restarts} restarts, {rescued} rescued by the flush",
        partial(logging.disable, logging.CRITICAL),
    )


class Progress:
    """Says now and then how far a long run is."""

    def __init__(self, worlds: int, clock: Callable[[], float]) -> None:
        self._worlds = worlds
        self._clock = clock
        self._began = self._said = clock()

    def after(self, done: int, violations: int) -> str | None:
        """The line to print after so many worlds; None: it is too early, or all are done."""
        now = self._clock()
        if done >= self._worlds or now - self._said < PROGRESS_EVERY_S:
            return None
        self._said = now
        minutes = round((now - self._began) / done * (self._worlds - done) / 60)
        left = "less than a minute" if minutes < 1 else "1 minute" if minutes == 1 else f"{minutes} minutes"
        return f"{done} of {self._worlds} worlds, {violations} violations, {left} to go"
