"""What kube-scheduler v1.36 does when the file does not say: the default plugins, and the rules for filling in.

The table of plugins is data: order, weights and extension points. It also lists the plugins that exist and are not
enabled unless the file does so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from situate.core.config.merge import merge_plugins
from situate.core.config.types import (
    ARGS,
    CPU_AND_MEMORY,
    BinPackArgs,
    ClientConnection,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
)
from situate.core.model.pod import DEFAULT_SCHEDULER

__all__ = [
    "BUILT_IN",
    "DEFAULT_PLUGINS",
    "KNOWN",
    "OTHERS_POINTS",
    "BuiltIn",
    "default_configuration",
    "enabled_names",
    "with_defaults",
]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A plugin of kube-scheduler's own. Weight 0 means that none is given, which counts as 1 where it scores."""

    name: str
    points: tuple[str, ...]
    weight: int = 0
    default: bool = True


_FILTERS: Final = ("preFilter", "filter")
_SCORES: Final = ("preScore", "score")

# In default order.
BUILT_IN: Final = (
    BuiltIn("SchedulingGates", ("preEnqueue",)),
    BuiltIn("PrioritySort", ("queueSort",)),
    BuiltIn("NodeUnschedulable", ("filter",)),
    BuiltIn("NodeName", ("filter",)),
    BuiltIn("TaintToleration", ("filter", *_SCORES), weight=3),
    BuiltIn("NodeAffinity", (*_FILTERS, *_SCORES), weight=2),
    BuiltIn("NodePorts", _FILTERS),
    BuiltIn("NodeResourcesFit", (*_FILTERS, *_SCORES, "placementScore"), weight=1),
    BuiltIn("VolumeRestrictions", _FILTERS),
    BuiltIn("NodeVolumeLimits", _FILTERS),
    BuiltIn("VolumeBinding", (*_FILTERS, *_SCORES, "reserve", "preBind")),
    BuiltIn("VolumeZone", _FILTERS),
    BuiltIn("PodTopologySpread", (*_FILTERS, *_SCORES), weight=2),
    BuiltIn("InterPodAffinity", (*_FILTERS, *_SCORES), weight=2),
    BuiltIn("DynamicResources", ("preEnqueue", *_FILTERS, "postFilter", "score", "reserve", "preBind"), weight=2),
    BuiltIn("DefaultPreemption", ("preEnqueue", "postFilter")),
    BuiltIn("NodeResourcesBalancedAllocation", _SCORES, weight=1),
    BuiltIn("ImageLocality", ("score",), weight=1),
    BuiltIn("DefaultBinder", ("bind",)),
    BuiltIn("NodeDeclaredFeatures", _FILTERS),
    BuiltIn("GangScheduling", ("preEnqueue", "permit"), default=False),
    BuiltIn("TopologyPlacementGenerator", ("placementGenerate",), default=False),
    BuiltIn("PodGroupPodsCount", ("placementScore",), weight=1, default=False),
    # Ours.
    BuiltIn("BinPack", _SCORES, weight=1, default=False),
    BuiltIn("Cost", _SCORES, weight=1, default=False),
    BuiltIn("GpuShare", (*_FILTERS, "reserve"), default=False),
    BuiltIn("Fragmentation", (*_SCORES, "reserve"), weight=1, default=False),
    BuiltIn("Foresight", (*_SCORES, "reserve"), weight=1, default=False),
    BuiltIn("Latency", (*_FILTERS, *_SCORES), weight=1, default=False),
)

# What `resolve` has to know of each: the extension points that it implements.
KNOWN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {plugin.name: frozenset(plugin.points) for plugin in BUILT_IN}
)

# All that a plugin of others can implement: it checks nodes, scores them, writes on pods as they are bound.
OTHERS_POINTS: Final = frozenset((*_FILTERS, *_SCORES, "reserve"))

DEFAULT_PLUGINS: Final = Plugins(
    multi_point=PluginSet(
        enabled=tuple(PluginRef(name=plugin.name, weight=plugin.weight) for plugin in BUILT_IN if plugin.default)
    )
)


def default_configuration() -> KubeSchedulerConfiguration:
    """The configuration of a scheduler that was given none."""
    return with_defaults(KubeSchedulerConfiguration())


def with_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Everything that the file left open, filled in as kube-scheduler fills it in."""
    contention = config.enable_contention_profiling
    return replace(
        config,
        leader_election=_leader_election(config.leader_election),
        client_connection=_client_connection(config.client_connection),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
        profiles=tuple(_profile(profile) for profile in _named(config.profiles)),
    )


def _leader_election(given: LeaderElection) -> LeaderElection:
    """Zero and empty count as not given."""
    default = LeaderElection()
    return replace(
        given,
        lease_duration=given.lease_duration or default.lease_duration,
        renew_deadline=given.renew_deadline or default.renew_deadline,
        retry_period=given.retry_period or default.retry_period,
        resource_lock=given.resource_lock or default.resource_lock,
        resource_name=given.resource_name or default.resource_name,
        resource_namespace=given.resource_namespace or default.resource_namespace,
    )


def _client_connection(given: ClientConnection) -> ClientConnection:
    default = ClientConnection()
    return replace(
        given,
        content_type=given.content_type or default.content_type,
        qps=given.qps or default.qps,
        burst=given.burst or default.burst,
    )


def _named(profiles: Sequence[KubeSchedulerProfile]) -> Sequence[KubeSchedulerProfile]:
    """No profile means one; a lone profile needs no name of its own. Of several, each must say its own."""
    if not profiles:
        profiles = (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        return (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    return profiles


def _profile(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    plugins = merge_plugins(DEFAULT_PLUGINS, profile.plugins)
    given = [replace(entry, args=_filled(entry.args)) for entry in profile.plugin_config]
    named = {entry.name for entry in given}
    enabled = enabled_names(plugins)
    missing = [
        PluginConfig(name=name, args=ARGS[name]()) for name in sorted(ARGS) if name in enabled and name not in named
    ]
    return replace(profile, plugins=plugins, plugin_config=(*given, *missing))


def enabled_names(plugins: Plugins) -> dict[str, None]:
    """Every plugin that is enabled anywhere, once."""
    sets = (getattr(plugins, field) for field in Plugins.__struct_fields__)
    return {ref.name: None for plugin_set in sets for ref in plugin_set.enabled}


def _filled(args: Any) -> Any:
    """Arguments whose defaults depend on what else is given."""
    match args:
        case BinPackArgs() | NodeResourcesBalancedAllocationArgs():
            return replace(args, resources=_weighted(args.resources))
        case NodeResourcesFitArgs():
            return replace(args, scoring_strategy=_strategy(args.scoring_strategy))
        case PodTopologySpreadArgs(defaulting_type=""):
            return replace(args, defaulting_type=PodTopologySpreadArgs().defaulting_type)
        case _:
            return args


def _strategy(given: ScoringStrategy) -> ScoringStrategy:
    return replace(given, resources=_weighted(given.resources))


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    if not resources:
        return CPU_AND_MEMORY
    return tuple(replace(resource, weight=resource.weight or 1) for resource in resources)
