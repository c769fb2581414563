"""What the command and the page do to simulate: the script of what happens, and a run for each configuration."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from situate.cli import BadInput
from situate.cli.commands.simulate.input import (
    NamedConfiguration,
    require_free_names,
    simulation_notes,
    snapshot_of,
    workloads_in,
)
from situate.cli.commands.simulate.values import Simulated
from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.manifests import Manifest
from situate.cli.input.notes import template_notes
from situate.cli.output.money import price_list
from situate.core.changes import Millis
from situate.core.model.meta import key_of
from situate.core.model.priority import PriorityClasses
from situate.core.model.timestamp import epoch_ms
from situate.sim.whatif.arrivals import ArrivalOptions, add_trace, script_of, with_duration
from situate.sim.whatif.figures import Prices, figures_of
from situate.sim.whatif.script import ClusterSnapshot, Script
from situate.sim.whatif.trace import Trace
from situate.sim.whatif.world import Progress, SimulationSettings, run

NOTHING_ARRIVES: Final = "no pod arrives: give a workload (-w) or a trace (--trace); none is pending"

ReadTrace = Callable[[PriorityClasses, Mapping[str, str], int], Trace]
"""With the known priority classes, the names that are taken and why, and the number of its first set."""


def script_for(
    objects: ClusterObjects,
    where: str,
    workloads: Sequence[Manifest],
    coming: ArrivalOptions,
    seed: int,
    configurations: Sequence[NamedConfiguration],
    *,
    trace: ReadTrace | None = None,
    most: int | None = None,
) -> tuple[ClusterSnapshot, Script, list[str]]:
    """The cluster at the beginning, what happens then, and notes. `most`: how many pods may come.

    Raises InputError.
    """
    found, classes = workloads_in(workloads, objects)
    snapshot, waiting = snapshot_of(objects)
    groups = [with_duration(group, coming.duration) for group in found.groups]
    expected = len(waiting) + (
        sum(group.total or group.first for group in groups) if coming.pods is None else coming.pods
    )
    if most is not None and expected > most:
        raise BadInput(f"{expected:,} pods would come, and {most:,} may; `situate simulate` has room for more")
    taken = {key_of(pod.metadata): where for pod in objects.pods}
    require_free_names(groups, taken)
    try:
        script = script_of(waiting, groups, found.named, coming, seed)
        script.templates = {**objects.templates, **found.templates}
    except ValueError as error:
        raise BadInput(f"--pods {coming.pods}: {error}; give one with -w") from None
    if trace is not None:
        made = {key_of(one.pod.metadata): "a workload" for one in script.arrivals}
        add_trace(script, trace(classes, {**made, **taken}, len(script.groups)))
    if not script.arrivals:
        raise BadInput(NOTHING_ARRIVES)
    one_of_each = list({id(one.pod.spec): one.pod for one in script.arrivals}.values())
    notes = simulation_notes(objects, found, one_of_each, configurations)
    return snapshot, script, notes + template_notes(one_of_each, script.templates)


def begin_of(objects: ClusterObjects) -> Millis:
    """The latest time in the snapshot: the simulation begins then."""
    texts = [
        text
        for pod in objects.pods
        for text in (pod.metadata.creation_timestamp, pod.status.start_time)
        if text is not None
    ]
    return max(map(epoch_ms, texts), default=0)


def simulate_each(
    snapshot: ClusterSnapshot,
    script: Script,
    configurations: Sequence[NamedConfiguration],
    settings: SimulationSettings,
    progress: Mapping[str, Progress],
) -> list[Simulated]:
    """`progress`: what to call for each name."""
    prices = _prices(snapshot, configurations)
    went = [run(snapshot, script, one.config, one.others, settings, progress[one.name]) for one in configurations]
    end_ms = max(one.end_ms for one in went)
    return [
        Simulated(one.name, figures_of(each, prices, end_ms)) for one, each in zip(configurations, went, strict=True)
    ]


def _prices(snapshot: ClusterSnapshot, configurations: Sequence[NamedConfiguration]) -> Prices | None:
    """Of the first configuration that has prices, for all: the nodes are the same."""
    lists = [found for one in configurations if (found := price_list(one.profiles)) is not None]
    if not lists:
        return None
    return Prices(lists[0].currency, tuple(lists[0].of(node) for node in snapshot.nodes))
