"""The scheduler configuration of a world, drawn from a seed; half of the worlds use the defaults.

Every world checks resources: a scheduler that is configured to ignore them could not be blamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, TypeAlias

from msgspec.structs import replace

from situate.core.config.defaults import with_defaults
from situate.core.config.types import (
    Extender,
    ExtenderManagedResource,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.model.duration import SECOND
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import DEFAULT_SCHEDULER, NodeAffinitySpec, TopologySpreadConstraint
from situate.core.plugins.default_preemption import DefaultPreemptionArgs
from situate.core.plugins.inter_pod_affinity import InterPodAffinityArgs
from situate.core.plugins.node_affinity import NodeAffinityArgs
from situate.core.plugins.node_resources_fit import NodeResourcesFitArgs, RequestedToCapacityRatio, ScoringStrategy
from situate.core.plugins.pod_topology_spread import PodTopologySpreadArgs
from situate.core.plugins.support.arguments import CPU_AND_MEMORY, UtilizationShapePoint
from situate.core.plugins.volume_binding import VolumeBindingArgs
from situate.sim.workload import FOREIGN, GPU, HOSTNAME, ZONE, ZONES

SECOND_NAME: Final = "batch-scheduler"
"""The name of the second profile."""
PLAIN: Final = 0.5
"""The probability of the default configuration."""
SPARED: Final = (
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeUnschedulable",
    "PodTopologySpread",
    "InterPodAffinity",
    "VolumeBinding",
    "DefaultPreemption",
    "NodeResourcesBalancedAllocation",
)
"""Plugins that a world may disable."""
SHAPE: Final = (
    UtilizationShapePoint(utilization=0, score=0),
    UtilizationShapePoint(utilization=70, score=10),
    UtilizationShapePoint(utilization=100, score=2),
)
BACKOFFS: Final = ((1, 1), (1, 3), (1, 10), (2, 7), (4, 12))

SecondKind: TypeAlias = Literal["none", "its own pods", "the same pods"]
SECONDS: Final[tuple[SecondKind, ...]] = ("none", "its own pods", "the same pods")


@dataclass(frozen=True, slots=True)
class SchedulerSet:
    """Our scheduler, and sometimes another one, for its own pods or for the same."""

    ours: KubeSchedulerConfiguration
    other: KubeSchedulerConfiguration | None
    kind: SecondKind

    @property
    def names(self) -> tuple[str, ...]:
        """The scheduler names of our pods."""
        return tuple(profile.scheduler_name or DEFAULT_SCHEDULER for profile in self.ours.profiles)

    def said(self) -> str:
        extenders = [
            "/".join(verb for verb in (one.filter_verb, one.prioritize_verb, one.preempt_verb, one.bind_verb) if verb)
            + ("?" if one.ignorable else "")
            for one in self.ours.extenders
        ]
        other = "" if self.other is None else f"; another scheduler for {self.kind}"
        asked = f"; extenders: {', '.join(extenders)}" if extenders else ""
        return f"schedulers: {', '.join(self.names)}{asked}{other}"


def draw_schedulers(rng: Random) -> SchedulerSet:
    ours = draw_settings(rng)
    kind: SecondKind = rng.choices(SECONDS, (0.76, 0.12, 0.12))[0]
    if kind == "none":
        return SchedulerSet(ours, None, kind)
    names = (FOREIGN,) if kind == "its own pods" else tuple(one.scheduler_name or "" for one in ours.profiles)
    profiles = tuple(_profile(rng, name, plain=rng.random() < PLAIN) for name in names)
    return SchedulerSet(ours, with_defaults(KubeSchedulerConfiguration(profiles=profiles)), kind)


def draw_settings(rng: Random) -> KubeSchedulerConfiguration:
    extenders = draw_extenders(rng)
    if rng.random() < PLAIN:
        return with_defaults(KubeSchedulerConfiguration(extenders=extenders))
    names = (DEFAULT_SCHEDULER, SECOND_NAME) if rng.random() < 0.4 else (DEFAULT_SCHEDULER,)
    initial, longest = rng.choice(BACKOFFS)
    return with_defaults(
        KubeSchedulerConfiguration(
            pod_initial_backoff_seconds=initial,
            pod_max_backoff_seconds=longest,
            percentage_of_nodes_to_score=rng.choice((0, 0, 5, 50, 100)),
            profiles=tuple(_profile(rng, name, plain=False) for name in names),
            extenders=extenders,
        )
    )


def _profile(rng: Random, name: str, *, plain: bool) -> KubeSchedulerProfile:
    if plain:
        return KubeSchedulerProfile(scheduler_name=name)
    spared = tuple(PluginRef(name=one) for one in rng.sample(SPARED, rng.choice((0, 1, 1, 3))))
    plugins = Plugins(multi_point=PluginSet(disabled=spared))
    if rng.random() < 0.15:
        plugins = Plugins(multi_point=PluginSet(disabled=spared), score=PluginSet(disabled=(PluginRef(name="*"),)))
    return KubeSchedulerProfile(
        scheduler_name=name,
        node_sample=rng.choice((None, None, None, 1, 2, 5)),
        plugins=plugins,
        plugin_config=tuple(_arguments(rng)),
    )


def _arguments(rng: Random) -> list[PluginConfig]:
    drawn: tuple[tuple[str, Any], ...] = (
        ("NodeResourcesFit", NodeResourcesFitArgs(scoring_strategy=_strategy(rng))),
        ("PodTopologySpread", _spreading(rng)),
        ("NodeAffinity", NodeAffinityArgs(added_affinity=_added(rng))),
        ("InterPodAffinity", InterPodAffinityArgs(hard_pod_affinity_weight=rng.choice((0, 1, 100)))),
        ("VolumeBinding", VolumeBindingArgs(bind_timeout_seconds=rng.choice((1, 5, 600)))),
        (
            "DefaultPreemption",
            DefaultPreemptionArgs(
                min_candidate_nodes_percentage=rng.choice((10, 100)),
                min_candidate_nodes_absolute=rng.choice((1, 100)),
                never_break_budgets=rng.random() < 0.3,
            ),
        ),
    )
    return [PluginConfig(name=name, args=args) for name, args in drawn if rng.random() < 0.4]


def _strategy(rng: Random) -> ScoringStrategy:
    if rng.random() < 0.6:
        return ScoringStrategy(type="MostAllocated", resources=CPU_AND_MEMORY)
    ratio = RequestedToCapacityRatio(shape=SHAPE)
    return ScoringStrategy(type="RequestedToCapacityRatio", resources=CPU_AND_MEMORY, requested_to_capacity_ratio=ratio)


def _spreading(rng: Random) -> PodTopologySpreadArgs:
    """No default constraints, or one that may be hard."""
    if rng.random() < 0.3:
        return PodTopologySpreadArgs(defaulting_type="List")
    constraint = TopologySpreadConstraint(
        max_skew=rng.randint(1, 3),
        topology_key=rng.choice((ZONE, HOSTNAME)),
        when_unsatisfiable=rng.choice(("DoNotSchedule", "ScheduleAnyway")),
    )
    return PodTopologySpreadArgs(defaulting_type="List", default_constraints=(constraint,))


def _added(rng: Random) -> NodeAffinitySpec:
    """Restrict all pods to two zones."""
    wanted = tuple(rng.sample(ZONES, 2))
    terms = (NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=ZONE, operator="In", values=wanted),)),)
    return NodeAffinitySpec(required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms))


def draw_extenders(rng: Random) -> tuple[Extender, ...]:
    """None in most worlds; otherwise one or two, at most one of which binds."""
    if rng.random() < 0.7:
        return ()
    made = tuple(_extender(rng, at) for at in range(rng.choice((1, 1, 2))))
    binder = rng.randrange(len(made)) if rng.random() < 0.35 else None
    return tuple(replace(one, bind_verb="bind" if at == binder else "") for at, one in enumerate(made))


def _extender(rng: Random, at: int) -> Extender:
    managed = (ExtenderManagedResource(name=GPU, ignored_by_scheduler=rng.random() < 0.4),)
    return Extender(
        url_prefix=f"http://extender-{at}",
        filter_verb="filter" if rng.random() < 0.8 else "",
        prioritize_verb="prioritize" if rng.random() < 0.6 else "",
        preempt_verb="preempt" if rng.random() < 0.5 else "",
        weight=rng.choice((1, 5)),
        http_timeout=rng.choice((SECOND // 5, SECOND, 3 * SECOND)),
        managed_resources=managed if rng.random() < 0.4 and at == 0 else (),  # one extender for one resource
        ignorable=rng.random() < 0.4,
    )
