"""`situate simulate`: what would become of workloads on a cluster, under several configurations. Changes nothing.

The figures go to the standard output and are the same for the same input; how fast it went goes to the standard error.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import cluster_options, with_client

if TYPE_CHECKING:
    from situate.cli.commands.simulate.input import Configuration
    from situate.cli.commands.simulate.values import Simulated
    from situate.cli.input.cluster import Seen
    from situate.core.model.pod import Pod
    from situate.kube.client import Client
    from situate.sim.whatif.arrivals import ArrivalOptions
    from situate.sim.whatif.figures import Prices
    from situate.sim.whatif.script import ClusterSnapshot, Script
    from situate.sim.whatif.world import SimulationSettings

MOST_PODS: Final = 10_000_000
SLOW_S: Final = 2.0
"""A run that takes longer says on the standard error how long, where somebody is watching."""

T = TypeVar("T")


@click.command()
@click.option("-f", "--filename", "names", multiple=True, metavar="FILE", help="The cluster: file, folder or -.")
@click.option("-w", "--workload", "workloads", multiple=True, metavar="FILE", help="Workloads to come: file or folder.")
@click.option("--trace", metavar="FILE", help="Pods that come and go: CSV or JSON lines.")
@click.option("--config", "configs", multiple=True, metavar="FILE", help="Scheduler configuration (repeatable).")
@click.option("--arrivals", metavar="HOW", help="How workloads' pods come: poisson:5 (a second), every:10s.")
@click.option("--pods", type=click.IntRange(1, MOST_PODS), help="With --arrivals: how many pods, drawn by lot.")
@click.option("--duration", metavar="TIME", help="How long pods run: 10m, exp:10m, uniform:5m..15m.")
@click.option("--until", metavar="TIME", help="End at this time; default: when nothing more happens.")
@click.option("--grace", metavar="TIME", default="0s", show_default=True, help="How long an evicted pod takes to go.")
@click.option(
    "--evicted",
    type=click.Choice(["owned", "all", "none"]),
    default="owned",
    show_default=True,
    help="Which evicted pods are made again: those with a controller, all, or none.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="What is drawn by lot follows it.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@click.option("--report", metavar="FILE", help="Write a page with plots: one HTML file.")
@cluster_options
def simulate(
    names: tuple[str, ...],
    workloads: tuple[str, ...],
    trace: str | None,
    configs: tuple[str, ...],
    arrivals: str | None,
    pods: int | None,
    duration: str | None,
    until: str | None,
    grace: str,
    evicted: str,
    seed: int,
    output: str,
    report: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Simulate what becomes of workloads on a cluster, and compare configurations.

    The cluster is what -f says, as `kubectl get -o json` prints it; without -f, a live one is read. Nothing is changed
    anywhere. Time is virtual: a day takes seconds.
    """
    began = monotonic()
    if names and (kubeconfig or context):
        raise BadInput("-f is for files, --kubeconfig and --context for a cluster: give one or the other")
    if pods is not None and arrivals is None:
        raise BadInput("--pods is how many come with --arrivals, which is not given")
    if report is not None and not Path(report).parent.is_dir():
        raise BadInput(f"--report {report}: there is no such folder")
    from situate.cli.commands.simulate.input import read_configurations, read_snapshot
    from situate.sim.whatif.arrivals import ArrivalOptions
    from situate.sim.whatif.distributions import parse_distribution, parse_rate, parse_span
    from situate.sim.whatif.world import Remade, SimulationSettings

    run_time, rate = _said("--duration", duration, parse_distribution), _said("--arrivals", arrivals, parse_rate)
    until_ms, grace_ms = _said("--until", until, parse_span), _said("--grace", grace, parse_span) or 0
    configurations = read_configurations(configs)
    seen = read_snapshot(names) if names else _ask(kubeconfig, context)
    where = ", ".join(names) or "the cluster"
    if not seen.nodes:
        raise BadInput(f"{where}: no Node was given: where pods could go cannot be judged; add `kubectl get nodes`")
    coming = ArrivalOptions(rate, pods, run_time)
    snapshot, script, notes = _play(seen, where, workloads, trace, coming, seed, configurations)
    settings = SimulationSettings(until_ms, grace_ms, Remade(evicted), _begins(seen))
    simulated = _simulate(snapshot, script, configurations, settings)
    if report is not None:
        from situate.cli.commands.simulate.report import page

        Path(report).write_text(page(simulated, seed=seed, notes=notes), encoding="utf-8")
    click.echo(_shown(simulated, seed, notes, output), nl=False)
    if output == "table":
        for note in notes:
            click.echo(f"note: {note}", err=True)
    _how_fast(simulated, monotonic() - began)


def _play(
    seen: Seen,
    where: str,
    workloads: Sequence[str],
    trace: str | None,
    coming: ArrivalOptions,
    seed: int,
    configurations: Sequence[Configuration],
) -> tuple[ClusterSnapshot, Script, list[str]]:
    """The cluster at the beginning, what happens then, and what cannot be judged."""
    from situate.cli.commands.simulate.input import (
        notes_on,
        read_trace_file,
        read_workloads,
        snapshot_of,
        taken_names,
        without_clashes,
    )
    from situate.sim.whatif.arrivals import add_trace, script_of, with_duration

    found, classes = read_workloads(workloads, seen)
    snapshot, waiting = snapshot_of(seen)
    groups = [with_duration(group, coming.duration) for group in found.groups]
    taken = taken_names(seen, where)
    without_clashes(groups, taken)
    try:
        script = script_of(waiting, groups, found.named, coming, seed)
    except ValueError as error:
        raise BadInput(f"--pods {coming.pods}: {error}; give one with -w") from None
    if trace is not None:
        made = {f"{one.pod.metadata.namespace}/{one.pod.metadata.name}": "a workload" for one in script.arrivals}
        first = len(script.groups)
        read = read_trace_file(
            trace, classes, {**made, **taken}, seed=seed, duration=coming.duration, first_group=first
        )
        add_trace(script, read)
    if not script.arrivals:
        raise BadInput("no pod comes: no workload (-w) and no trace (--trace) was given, and none waits")
    return snapshot, script, notes_on(seen, found, _each_kind(script), configurations)


def _how_fast(simulated: Sequence[Simulated], took_s: float) -> None:
    if took_s <= SLOW_S or not sys.stderr.isatty():
        return
    figures = simulated[0].figures
    times = f" under {len(simulated)} configurations" if len(simulated) > 1 else ""
    told = f"{figures.counts.arrived:,} pods on {figures.nodes.total:,} nodes{times} in {took_s:.1f} s"
    click.echo(told, err=True)


def _said(option: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None


def _ask(kubeconfig: str | None, context: str | None) -> Seen:
    from situate.cli.commands.simulate.input import read_cluster

    async def work(client: Client) -> Seen:
        return await read_cluster(client)

    return with_client(kubeconfig, context, work)


def _begins(seen: Seen) -> int:
    """The latest moment that the snapshot knows of: what happens in the simulation happens after it."""
    from situate.core.model.timestamp import epoch_ms

    texts = [
        text
        for pod in seen.pods
        for text in (pod.metadata.creation_timestamp, pod.status.start_time)
        if text is not None
    ]
    return max(map(epoch_ms, texts), default=0)


def _each_kind(script: Script) -> list[Pod]:
    """One pod of each specification that comes."""
    return list({id(one.pod.spec): one.pod for one in script.arrivals}.values())


def _simulate(
    snapshot: ClusterSnapshot, script: Script, configurations: Sequence[Configuration], settings: SimulationSettings
) -> list[Simulated]:
    import gc

    from situate.cli.commands.simulate.progress import Bar
    from situate.cli.commands.simulate.values import Simulated
    from situate.sim.whatif.figures import figures_of
    from situate.sim.whatif.world import run

    went = []
    gc.collect()
    gc.freeze()  # what was read stays: looking through it again and again would only take time
    prices = _prices(snapshot, configurations)
    with Bar([one.name for one in configurations]) as bar:
        for one in configurations:
            went.append(run(snapshot, script, one.config, one.others, settings, bar.of(one.name)))
            bar.done(one.name)
    end_ms = max(one.end_ms for one in went)
    return [
        Simulated(one.name, figures_of(each, prices, end_ms)) for one, each in zip(configurations, went, strict=True)
    ]


def _prices(snapshot: ClusterSnapshot, configurations: Sequence[Configuration]) -> Prices | None:
    """Of the first configuration that has prices, for all of them: the nodes are the same."""
    from situate.cli.output.money import price_list
    from situate.sim.whatif.figures import Prices

    lists = [found for one in configurations if (found := price_list(one.profiles)) is not None]
    if not lists:
        return None
    return Prices(lists[0].currency, tuple(lists[0].of(node) for node in snapshot.nodes))


def _shown(simulated: Sequence[Simulated], seed: int, notes: Sequence[str], output: str) -> str:
    if output != "table":
        from situate.cli.commands.simulate.values import as_values
        from situate.wire.dump import dump_json, dump_yaml

        values = as_values(simulated, seed=seed, notes=notes)
        return dump_json(values) if output == "json" else dump_yaml(values)
    from situate.cli.commands.simulate.table import table

    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return table(simulated, terminal_width=width, colour=colour)
