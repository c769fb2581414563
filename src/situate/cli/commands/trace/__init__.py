"""`situate trace`: run public cluster traces, and compare policies on them."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import click

from situate.cli import BadInput, CommandGroup
from situate.cli.commands.sim import read_seeds
from situate.cli.commands.trace.output import as_table, as_values
from situate.cli.input.files import read_file
from situate.cli.input.profiles import read_profiles
from situate.cli.options import output_option
from situate.cli.output.formats import NAME, dump, for_people
from situate.cli.output.text import plural
from situate.core.place.profile import Profile
from situate.sim.openb.experiment import OpenbRun, run
from situate.sim.openb.figures import figures
from situate.sim.openb.mixes import MIXES, RANDOM_MIX, mix_of
from situate.sim.openb.policies import POLICIES, configuration, profile_of
from situate.sim.openb.trace_files import TraceNode, TracePod, read_nodes, read_pods
from situate.wire.dump import dump_yaml

NODES_FILE: Final = "openb_node_list_gpu_node.csv"
PODS_FILE: Final = "openb_pod_list_{}.csv"
SEEDS: Final = "42..51"
"""The seeds of the authors."""
REPORT_EVERY_S: Final = 15.0
"""How often progress is reported where standard error is not a terminal."""


@dataclass(frozen=True, slots=True)
class OpenbTrace:
    """A trace that was read."""

    workload: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]


@dataclass(frozen=True, slots=True)
class TraceRun:
    """One run. `config` is the file of a policy that is not built in, else empty."""

    policy: str
    config: str
    seed: int
    redraw: bool


@click.group(cls=CommandGroup)
def trace() -> None:
    """Run a public cluster trace, and compare policies on it."""


@trace.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--pods", "workload", default="default", show_default=True, metavar="NAME", help="Which list of pods arrives."
)
@click.option("--mix", metavar="NAME", help="Derive another mix from these pods (cpu-pods, models, random-7, …).")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Only this policy (repeatable).")
@click.option("--config", "configs", multiple=True, metavar="FILE", help="Add a scheduler configuration (repeatable).")
@click.option(
    "--seeds", default=SEEDS, show_default=True, metavar="A..B", callback=read_seeds, help="One run for each."
)
@click.option("--redraw", is_flag=True, help="Draw each pod at random, instead of using every pod of the trace.")
@click.option("--workers", type=click.IntRange(1, 64), help="How many runs at once; default: one for each core.")
@click.option("--print-config", metavar="NAME", help="Print the configuration of this policy, and run nothing.")
@output_option(without=(NAME,))
def openb(
    folder: Path,
    workload: str,
    mix: str | None,
    policies: tuple[str, ...],
    configs: tuple[str, ...],
    seeds: range,
    redraw: bool,
    workers: int | None,
    print_config: str | None,
    output: str,
) -> None:
    """Fill Alibaba's GPU cluster of the openb trace, and show how much of its GPUs each policy allocates.

    DIR has openb_node_list_gpu_node.csv and openb_pod_list_NAME.csv, from cluster-trace-gpu-v2023 of
    github.com/alibaba/clusterdata.
    """
    read = _read(folder, workload, mix)
    if print_config is not None:
        click.echo(dump_yaml(configuration(_known(print_config, "--print-config"), read.pods)), nl=False)
        return
    chosen = [_known(policy, "--policy") for policy in policies] or ([] if configs else list(POLICIES))
    sources = {**dict.fromkeys(chosen, ""), **{Path(config).name: config for config in configs}}
    tasks = [TraceRun(policy, config, seed, redraw) for policy, config in sources.items() for seed in seeds]
    outcomes = list(_with_progress(_outcomes(read, tasks, workers or os.cpu_count() or 1), len(tasks)))
    found = [
        figures(read.workload, read.nodes, policy, [one for one in outcomes if one.policy == policy])
        for policy in sources
    ]
    if for_people(output):
        click.echo(as_table(read, seeds, found), nl=False)
    else:
        click.echo(dump(as_values(read, seeds, found), output), nl=False)


def _known(policy: str, option: str) -> str:

    for known in POLICIES:
        if known.lower() == policy.lower():
            return known
    raise BadInput(f"{option}: unknown policy {policy}; known are {', '.join(POLICIES)}")


def _read(folder: Path, workload: str, mix: str | None) -> OpenbTrace:

    if not folder.is_dir():
        raise BadInput(f"{folder}: is not a folder; expected one with {NODES_FILE} and {PODS_FILE.format('NAME')}")
    nodes_file, pods_file = folder / NODES_FILE, folder / PODS_FILE.format(workload)
    if not pods_file.exists():
        before, after = PODS_FILE.split("{}")
        there = sorted(
            path.name.removeprefix(before).removesuffix(after) for path in folder.glob(PODS_FILE.format("*"))
        )
        raise BadInput(f"{pods_file}: No such file or directory; the pods there are {', '.join(there) or 'none'}")
    nodes = read_nodes(read_file(nodes_file), str(nodes_file))
    pods = read_pods(read_file(pods_file), str(pods_file))
    if mix is None:
        return OpenbTrace(workload, nodes, pods)
    derived = mix_of(mix, nodes, pods)
    if derived is None:
        raise BadInput(f"--mix: unknown mix {mix}; known are {', '.join(MIXES)} and {RANDOM_MIX}N")
    return OpenbTrace(f"{workload} {mix}", nodes, derived)


def _outcomes(read: OpenbTrace, tasks: Sequence[TraceRun], workers: int) -> Iterable[OpenbRun]:
    """In the order of the tasks."""
    for task in {task.policy: task for task in tasks}.values():
        _profile(read, task)  # report a wrong configuration before anything runs
    if workers == 1 or len(tasks) == 1:
        return (_run(read, task) for task in tasks)
    return _at_once(read, tasks, workers)


def _at_once(read: OpenbTrace, tasks: Sequence[TraceRun], workers: int) -> Iterator[OpenbRun]:
    with ProcessPoolExecutor(min(workers, len(tasks)), initializer=_READ.append, initargs=(read,)) as pool:
        yield from pool.map(_run_here, tasks)


_READ: list[OpenbTrace] = []
"""The trace, in a worker: sent once, not with each task."""


def _run_here(task: TraceRun) -> OpenbRun:
    return _run(_READ[-1], task)


def _run(read: OpenbTrace, task: TraceRun) -> OpenbRun:

    return run(read.nodes, read.pods, task.policy, _profile(read, task), task.seed, redraw=task.redraw)


def _profile(read: OpenbTrace, task: TraceRun) -> Profile:

    if task.config:
        return next(iter(read_profiles(Path(task.config)).values())).profile
    return profile_of(configuration(task.policy, read.pods))


def _with_progress(outcomes: Iterable[OpenbRun], count: int) -> Iterator[OpenbRun]:
    """The outcomes; reports progress on standard error."""
    began = reported = monotonic()
    live = sys.stderr.isatty()
    for done, outcome in enumerate(outcomes, 1):
        yield outcome
        now = monotonic()
        if done < count and (live or now - reported >= REPORT_EVERY_S):
            reported = now
            left = round((now - began) / done * (count - done))
            line = f"{done} of {count} runs, about {left} s to go"
            click.echo(f"\r{line}\033[K" if live else line, err=True, nl=not live)
    if live:
        click.echo("\r\033[K", err=True, nl=False)
    click.echo(f"{plural(count, 'run')} in {monotonic() - began:.1f} s", err=True)
