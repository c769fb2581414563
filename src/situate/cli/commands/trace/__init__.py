"""`situate trace`: play public traces of clusters, and say what policies make of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import click

from situate.cli import BadInput
from situate.cli.commands.sim import read_seeds
from situate.cli.input.files import read_file

if TYPE_CHECKING:
    from situate.core.place.profile import Profile
    from situate.sim.openb.experiment import OpenbRun
    from situate.sim.openb.figures import PolicyFigures
    from situate.sim.openb.trace_files import TraceNode, TracePod

NODES_FILE: Final = "openb_node_list_gpu_node.csv"
PODS_FILE: Final = "openb_pod_list_{}.csv"
SEEDS: Final = "42..51"
"""Those of the authors."""
SAID_EVERY_S: Final = 15.0
"""How long a run is silent, where nobody watches a terminal."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What was read of the trace, and from where."""

    folder: str
    workload: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[TracePod, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One run. `config` is the file of a policy that is not ours, and empty else."""

    policy: str
    config: str
    seed: int
    redraw: bool


@click.group()
def trace() -> None:
    """Play a public trace of a cluster, and compare policies on it."""


@trace.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--pods", "workload", default="default", show_default=True, metavar="NAME", help="Which pods come.")
@click.option("--policy", "policies", multiple=True, metavar="NAME", help="Only this policy (repeatable).")
@click.option("--config", "configs", multiple=True, metavar="FILE", help="A scheduler configuration, too (repeatable).")
@click.option("--seeds", default=SEEDS, show_default=True, metavar="A..B", callback=read_seeds, help="A run for each.")
@click.option("--redraw", is_flag=True, help="Draw every pod that comes, instead of letting all of the trace come.")
@click.option("--workers", type=click.IntRange(1, 64), help="How many runs at once; default: one for each core.")
@click.option("--print-config", metavar="NAME", help="Print the configuration of this policy, and run nothing.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def openb(
    folder: Path,
    workload: str,
    policies: tuple[str, ...],
    configs: tuple[str, ...],
    seeds: range,
    redraw: bool,
    workers: int | None,
    print_config: str | None,
    output: str,
) -> None:
    """Fill Alibaba's GPU cluster of the openb trace, and say how much of its GPUs each policy allocates.

    DIR has openb_node_list_gpu_node.csv and openb_pod_list_NAME.csv, from cluster-trace-gpu-v2023 of
    github.com/alibaba/clusterdata.
    """
    from situate.cli.commands.trace.output import as_json, as_table
    from situate.sim.openb.figures import figures
    from situate.sim.openb.policies import POLICIES

    read = _read(folder, workload)
    if print_config is not None:
        click.echo(_configuration(_known(print_config, "--print-config"), read), nl=False)
        return
    chosen = [_known(policy, "--policy") for policy in policies] or ([] if configs else list(POLICIES))
    sources = {**dict.fromkeys(chosen, ""), **{Path(config).name: config for config in configs}}
    tasks = [Task(policy, config, seed, redraw) for policy, config in sources.items() for seed in seeds]
    outcomes = list(_watched(_outcomes(read, tasks, workers or os.cpu_count() or 1), len(tasks)))
    found = [
        figures(workload, read.nodes, policy, [one for one in outcomes if one.policy == policy]) for policy in sources
    ]
    shown: Callable[[Trace, range, Sequence[PolicyFigures]], str] = as_json if output == "json" else as_table
    click.echo(shown(read, seeds, found), nl=False)


def _known(policy: str, option: str) -> str:
    from situate.sim.openb.policies import POLICIES

    for known in POLICIES:
        if known.lower() == policy.lower():
            return known
    raise BadInput(f"{option}: there is no policy {policy}; there are {', '.join(POLICIES)}")


def _configuration(policy: str, read: Trace) -> str:
    from situate.sim.openb.policies import configuration
    from situate.wire.dump import dump_yaml

    return dump_yaml(configuration(policy, read.pods))


# -- reading -----------------------------------------------------------------------------------------------------


def _read(folder: Path, workload: str) -> Trace:
    from situate.sim.openb.trace_files import read_nodes, read_pods

    if not folder.is_dir():
        raise BadInput(f"{folder}: is no folder; it should have {NODES_FILE} and {PODS_FILE.format('NAME')}")
    nodes_file, pods_file = folder / NODES_FILE, folder / PODS_FILE.format(workload)
    if not pods_file.exists():
        before, after = PODS_FILE.split("{}")
        there = sorted(
            path.name.removeprefix(before).removesuffix(after) for path in folder.glob(PODS_FILE.format("*"))
        )
        raise BadInput(f"{pods_file}: No such file or directory; of pods there are {', '.join(there) or 'none'}")
    nodes = read_nodes(read_file(nodes_file), str(nodes_file))
    return Trace(str(folder), workload, nodes, read_pods(read_file(pods_file), str(pods_file)))


# -- running -----------------------------------------------------------------------------------------------------


def _outcomes(read: Trace, tasks: Sequence[Task], workers: int) -> Iterable[OpenbRun]:
    """In the order of the tasks, whoever is ready first."""
    _profiles(read, tasks)  # what is wrong with a configuration is said before anything runs
    if workers == 1 or len(tasks) == 1:
        return (_run(read, task) for task in tasks)
    return _at_once(read, tasks, workers)


def _at_once(read: Trace, tasks: Sequence[Task], workers: int) -> Iterator[OpenbRun]:
    with ProcessPoolExecutor(min(workers, len(tasks)), initializer=_begin, initargs=(read,)) as pool:
        yield from pool.map(_run_here, tasks)


_READ: list[Trace] = []
"""The trace, in a worker: it is sent once, not with each task."""


def _begin(read: Trace) -> None:
    _READ.append(read)


def _run_here(task: Task) -> OpenbRun:
    return _run(_READ[-1], task)


def _run(read: Trace, task: Task) -> OpenbRun:
    from situate.sim.openb.experiment import run

    return run(read.nodes, read.pods, task.policy, _profile(read, task), task.seed, redraw=task.redraw)


def _profiles(read: Trace, tasks: Sequence[Task]) -> None:
    for task in {task.policy: task for task in tasks}.values():
        _profile(read, task)


def _profile(read: Trace, task: Task) -> Profile:
    from situate.cli.input.profiles import read_profiles
    from situate.sim.openb.policies import configuration, profile_of

    if task.config:
        return next(iter(read_profiles(Path(task.config)).values())).profile
    return profile_of(configuration(task.policy, read.pods))


def _watched(outcomes: Iterable[OpenbRun], count: int) -> Iterator[OpenbRun]:
    """The outcomes; and, on the standard error, how far it has come."""
    began = said = monotonic()
    live = sys.stderr.isatty()
    for done, outcome in enumerate(outcomes, 1):
        yield outcome
        now = monotonic()
        if done < count and (live or now - said >= SAID_EVERY_S):
            said = now
            left = round((now - began) / done * (count - done))
            line = f"{done} of {count} runs, about {left} s to go"
            click.echo(f"\r{line}\033[K" if live else line, err=True, nl=not live)
    if live:
        click.echo("\r\033[K", err=True, nl=False)
    click.echo(f"{count} run{'' if count == 1 else 's'} in {monotonic() - began:.1f} s", err=True)
