"""`situate simulate`: what becomes of workloads on a cluster, under several configurations. Changes nothing.

The figures on standard output are the same for the same input; how fast it went is on standard error.
"""

import gc
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Final, TypeVar

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import Client, with_client
from situate.cli.commands.simulate.input import read_configurations, read_trace_file
from situate.cli.commands.simulate.progress import progress_bars
from situate.cli.commands.simulate.runs import begin_of, script_for, simulate_each
from situate.cli.commands.simulate.table import table
from situate.cli.commands.simulate.values import as_values
from situate.cli.input.cluster import ClusterObjects, read_files
from situate.cli.input.files import mapped_sources
from situate.cli.input.live import read_live
from situate.cli.input.manifests import read_manifests
from situate.cli.options import (
    FILES_OR_CLUSTER,
    cluster_options,
    kubernetes_version_option,
    output_option,
    require_one_source,
)
from situate.cli.output.formats import NAME, for_people
from situate.cli.output.text import show
from situate.core.model.priority import PriorityClasses
from situate.core.versions import DEFAULT, KubernetesRules
from situate.kube.discovery import server_rules
from situate.kube.kinds import ALL_KINDS
from situate.sim.whatif.arrivals import ArrivalOptions
from situate.sim.whatif.distributions import parse_distribution, parse_rate, parse_span
from situate.sim.whatif.trace import Trace
from situate.sim.whatif.world import Remade, SimulationSettings

MOST_PODS: Final = 10_000_000
SLOW_S: Final = 2.0
"""A run that takes longer says so on standard error, if that is a terminal."""

T = TypeVar("T")


@click.command()
@click.option("-f", "--filename", "names", multiple=True, metavar="FILE", help="The cluster: file, folder or -.")
@click.option("-w", "--workload", "workloads", multiple=True, metavar="FILE", help="Workloads to come: file or folder.")
@click.option("--trace", metavar="FILE", help="Pods that come and go: CSV or JSON lines.")
@click.option("--config", "configs", multiple=True, metavar="FILE", help="Scheduler configuration (repeatable).")
@click.option("--arrivals", metavar="HOW", help="How workloads' pods arrive: poisson:5 (a second), every:10s.")
@click.option("--pods", type=click.IntRange(1, MOST_PODS), help="With --arrivals: how many pods, drawn at random.")
@click.option("--duration", metavar="TIME", help="How long pods run: 10m, exp:10m, uniform:5m..15m.")
@click.option("--until", metavar="TIME", help="End at this time; default: when nothing more happens.")
@click.option("--grace", metavar="TIME", default="0s", show_default=True, help="How long an evicted pod takes to end.")
@click.option(
    "--evicted",
    type=click.Choice(["owned", "all", "none"]),
    default="owned",
    show_default=True,
    help="Which evicted pods are created again: those with a controller, all, or none.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random choices.")
@kubernetes_version_option(FILES_OR_CLUSTER)
@output_option(without=(NAME,))
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
    rules: KubernetesRules | None,
    output: str,
    report: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Simulate workloads on a cluster, and compare scheduler configurations.

    -f names the cluster, as `kubectl get -o json` prints it; without -f, the command reads a live one. It changes
    nothing. Time is virtual: a day takes seconds.
    """
    began = monotonic()
    require_one_source(names, kubeconfig, context)
    if pods is not None and arrivals is None:
        raise BadInput("--pods needs --arrivals")
    if report is not None and not Path(report).parent.is_dir():
        raise BadInput(f"--report {report}: there is no such folder")
    run_time, rate = _parsed("--duration", duration, parse_distribution), _parsed("--arrivals", arrivals, parse_rate)
    until_ms, grace_ms = _parsed("--until", until, parse_span), _parsed("--grace", grace, parse_span) or 0
    objects, found_rules = _read(names, kubeconfig, context)
    configurations = read_configurations(configs, rules or found_rules)
    where = ", ".join(names) or "the cluster"
    if not objects.nodes:
        raise BadInput(f"{where}: no Node found, so pods have nowhere to go; add `kubectl get nodes`")

    def read_trace(classes: PriorityClasses, taken: Mapping[str, str], first_group: int) -> Trace:
        return read_trace_file(str(trace), classes, taken, seed=seed, duration=run_time, first_group=first_group)

    snapshot, script, notes = script_for(
        objects,
        where,
        read_manifests(workloads),
        ArrivalOptions(rate, pods, run_time),
        seed,
        configurations,
        trace=None if trace is None else read_trace,
    )
    settings = SimulationSettings(until_ms, grace_ms, Remade(evicted), begin_of(objects))
    gc.collect()
    gc.freeze()  # what was read stays: collecting would only take time
    with progress_bars([one.name for one in configurations]) as progress:
        simulated = simulate_each(snapshot, script, configurations, settings, progress)
    if report is not None:
        from situate.cli.commands.simulate.report import page

        Path(report).write_text(page(simulated, seed=seed, notes=notes), encoding="utf-8")
    show(table(simulated) if for_people(output) else [], as_values(simulated, seed=seed), notes, output)
    took_s, figures = monotonic() - began, simulated[0].figures
    if took_s > SLOW_S and sys.stderr.isatty():
        times = f" under {len(simulated)} configurations" if len(simulated) > 1 else ""
        size = f"{figures.counts.arrived:,} pods on {figures.nodes.total:,} nodes"
        click.echo(f"{size}{times} in {took_s:.1f} s", err=True)


def _parsed(option: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    if text is None:
        return None
    try:
        return parse(text)
    except ValueError as error:
        raise BadInput(f"{option}: {error}") from None


def _read(
    names: tuple[str, ...], kubeconfig: str | None, context: str | None
) -> tuple[ClusterObjects, KubernetesRules]:
    """The cluster, and the rules of its version."""
    if names:
        return read_files(list(mapped_sources(names)), claims=True)[0], DEFAULT

    async def work(client: Client) -> tuple[ClusterObjects, KubernetesRules]:
        objects = await read_live(client, ALL_KINDS, priority_classes=True)
        objects.make_claims()
        return objects, await server_rules(client)

    return with_client(kubeconfig, context, work)
