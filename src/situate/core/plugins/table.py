"""The built-in plugins, a line each, in kube-scheduler's default order. Nothing is scanned for.

A line has all that the configuration and the engine need to know of a plugin: its name, its extension points, how to
make it, its arguments, its default weight and whether it is enabled by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from situate.core.contract import Versioned
from situate.core.plugins.bin_pack import BinPack, BinPackArgs
from situate.core.plugins.cost import Cost, CostArgs
from situate.core.plugins.default_preemption import DefaultPreemptionArgs
from situate.core.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from situate.core.plugins.foresight import Foresight, ForesightArgs
from situate.core.plugins.fragmentation import Fragmentation, FragmentationArgs
from situate.core.plugins.gpu_share import GpuShare, GpuShareArgs
from situate.core.plugins.image_locality import ImageLocality
from situate.core.plugins.inter_pod_affinity import InterPodAffinity, InterPodAffinityArgs
from situate.core.plugins.latency import Latency, LatencyArgs
from situate.core.plugins.node_affinity import NodeAffinity, NodeAffinityArgs
from situate.core.plugins.node_declared_features import NodeDeclaredFeatures
from situate.core.plugins.node_name import NodeName
from situate.core.plugins.node_ports import NodePorts
from situate.core.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
    NodeResourcesBalancedAllocationArgs,
)
from situate.core.plugins.node_resources_fit import NodeResourcesFit, NodeResourcesFitArgs
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.plugins.node_volume_limits import NodeVolumeLimits
from situate.core.plugins.pod_topology_spread import PodTopologySpread, PodTopologySpreadArgs
from situate.core.plugins.support.arguments import PluginArgs
from situate.core.plugins.taint_toleration import TaintToleration
from situate.core.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from situate.core.plugins.volume_restrictions import VolumeRestrictions
from situate.core.plugins.volume_zone import VolumeZone
from situate.core.versions import DEFAULT, KubernetesRules


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A built-in plugin. `points` are the extension points that it implements."""

    name: str
    points: tuple[str, ...]
    plugin: Any = None
    """Its class. None: the engine does the work of this plugin."""
    args: type[PluginArgs] | None = None
    """None: the plugin takes no arguments."""
    weight: int = 0
    """0: none is given, which counts as 1 where the plugin scores."""
    default: bool = True

    def build(self, args: PluginArgs | None, points: frozenset[str], rules: KubernetesRules = DEFAULT) -> Any:
        """The plugin for a profile that runs it at these points, by the rules of a version of Kubernetes."""
        if self.plugin is None:
            return None
        made = self.plugin() if self.args is None else self.plugin.from_args(args or self.args(), points)
        return made.with_rules(rules) if isinstance(made, Versioned) else made


FILTER: Final = ("preFilter", "filter")
SCORE: Final = ("preScore", "score")

_TABLE: Final = (
    PluginSpec("SchedulingGates", ("preEnqueue",)),
    PluginSpec("PrioritySort", ("queueSort",)),
    PluginSpec("NodeUnschedulable", ("filter",), NodeUnschedulable),
    PluginSpec("NodeName", ("filter",), NodeName),
    PluginSpec("TaintToleration", ("filter", *SCORE), TaintToleration, weight=3),
    PluginSpec("NodeAffinity", (*FILTER, *SCORE), NodeAffinity, NodeAffinityArgs, weight=2),
    PluginSpec("NodePorts", FILTER, NodePorts),
    PluginSpec(
        "NodeResourcesFit", (*FILTER, *SCORE, "placementScore"), NodeResourcesFit, NodeResourcesFitArgs, weight=1
    ),
    PluginSpec("VolumeRestrictions", FILTER, VolumeRestrictions),
    PluginSpec("NodeVolumeLimits", FILTER, NodeVolumeLimits),
    PluginSpec("VolumeBinding", (*FILTER, *SCORE, "reserve", "preBind"), VolumeBinding, VolumeBindingArgs),
    PluginSpec("VolumeZone", FILTER, VolumeZone),
    PluginSpec("PodTopologySpread", (*FILTER, *SCORE), PodTopologySpread, PodTopologySpreadArgs, weight=2),
    PluginSpec("InterPodAffinity", (*FILTER, *SCORE), InterPodAffinity, InterPodAffinityArgs, weight=2),
    PluginSpec(
        "DynamicResources",
        ("preEnqueue", *FILTER, "postFilter", "score", "reserve", "preBind"),
        DynamicResources,
        DynamicResourcesArgs,
        weight=2,
    ),
    PluginSpec("DefaultPreemption", ("preEnqueue", "postFilter"), args=DefaultPreemptionArgs),
    PluginSpec(
        "NodeResourcesBalancedAllocation",
        SCORE,
        NodeResourcesBalancedAllocation,
        NodeResourcesBalancedAllocationArgs,
        weight=1,
    ),
    PluginSpec("ImageLocality", ("score",), ImageLocality, weight=1),
    PluginSpec("DefaultBinder", ("bind",)),
    PluginSpec("NodeDeclaredFeatures", FILTER, NodeDeclaredFeatures),
    PluginSpec("GangScheduling", ("preEnqueue", "permit"), default=False),
    PluginSpec("TopologyPlacementGenerator", ("placementGenerate",), default=False),
    PluginSpec("PodGroupPodsCount", ("placementScore",), weight=1, default=False),
    # Ours.
    PluginSpec("BinPack", SCORE, BinPack, BinPackArgs, weight=1, default=False),
    PluginSpec("Cost", SCORE, Cost, CostArgs, weight=1, default=False),
    PluginSpec("GpuShare", (*FILTER, "reserve"), GpuShare, GpuShareArgs, default=False),
    PluginSpec("Fragmentation", (*SCORE, "reserve"), Fragmentation, FragmentationArgs, weight=1, default=False),
    PluginSpec("Foresight", (*SCORE, "reserve"), Foresight, ForesightArgs, weight=1, default=False),
    PluginSpec("Latency", (*FILTER, *SCORE), Latency, LatencyArgs, weight=1, default=False),
)

BUILT_IN: Final[Mapping[str, PluginSpec]] = MappingProxyType({spec.name: spec for spec in _TABLE})
ARGS: Final[Mapping[str, type[PluginArgs]]] = MappingProxyType(
    {spec.name: spec.args for spec in _TABLE if spec.args is not None}
)
