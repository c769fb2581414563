"""The table of the plugins that situate carries, one file each. It is explicit: nothing is scanned for.

Order, weights and extension points are in `situate.core.config.defaults`; here is only who answers under which name,
made from the arguments in the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from situate.core.config.resolve import ResolvedProfile
from situate.core.config.types import (
    BinPackArgs,
    CostArgs,
    ForesightArgs,
    FragmentationArgs,
    GpuShareArgs,
    InterPodAffinityArgs,
    LatencyArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    PriceSpec,
    ResourceSpec,
    TypicalPod,
)
from situate.core.contract import MAX_SCORE
from situate.core.model.gpu import DEVICE_MILLI
from situate.core.model.quantity import milli_value, value
from situate.core.plugins.bin_pack import BinPack
from situate.core.plugins.cost import Cost
from situate.core.plugins.dynamic_resources import DynamicResources
from situate.core.plugins.foresight import Foresight
from situate.core.plugins.fragmentation import Fragmentation
from situate.core.plugins.gpu_share import GpuShare
from situate.core.plugins.image_locality import ImageLocality
from situate.core.plugins.inter_pod_affinity import InterPodAffinity
from situate.core.plugins.latency import Latency
from situate.core.plugins.node_affinity import NodeAffinity
from situate.core.plugins.node_declared_features import NodeDeclaredFeatures
from situate.core.plugins.node_name import NodeName
from situate.core.plugins.node_ports import NodePorts
from situate.core.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.node_unschedulable import NodeUnschedulable
from situate.core.plugins.node_volume_limits import NodeVolumeLimits
from situate.core.plugins.pod_topology_spread import PodTopologySpread
from situate.core.plugins.support.gpu_mix import Typical
from situate.core.plugins.support.prices import INSTANCE_TYPE, MILLIONTHS, Price, PriceList
from situate.core.plugins.support.resource_scoring import ResourceWeight, Scoring, ShapePoint
from situate.core.plugins.taint_toleration import TaintToleration
from situate.core.plugins.volume_binding import NeverSitsOut, VolumeBinding
from situate.core.plugins.volume_restrictions import VolumeRestrictions
from situate.core.plugins.volume_zone import VolumeZone

SHAPE_SCALE: Final = MAX_SCORE // 10
"""The configuration gives the scores of a shape as 0..10."""


def _fit(profile: ResolvedProfile) -> object:
    args = profile.args_of(NodeResourcesFitArgs)
    given = args.scoring_strategy
    points = given.requested_to_capacity_ratio.shape if given.requested_to_capacity_ratio is not None else ()
    shape = tuple(ShapePoint(point.utilization, point.score * SHAPE_SCALE) for point in points)
    scoring = Scoring(given.type, _weights(given.resources), shape)  # type: ignore[arg-type]
    return NodeResourcesFit(frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups), scoring)


def _weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceWeight, ...]:
    return tuple(ResourceWeight(resource.name, resource.weight) for resource in resources)


def _balanced(profile: ResolvedProfile) -> object:
    weights = _weights(profile.args_of(NodeResourcesBalancedAllocationArgs).resources)
    return NodeResourcesBalancedAllocation(weights, _may_sit_out(NodeResourcesBalancedAllocation.name, profile))


def _affinity(profile: ResolvedProfile) -> object:
    name = NodeAffinity.name
    return NodeAffinity(
        profile.args_of(NodeAffinityArgs).added_affinity,
        may_sit_out=_may_sit_out(name, profile),
        rules_out=name in profile.points["preFilter"],
    )


def _may_sit_out(name: str, profile: ResolvedProfile) -> bool:
    """It is at preScore that a plugin says that it has nothing to score."""
    return name in profile.points["preScore"]


def _inter_pod(profile: ResolvedProfile) -> object:
    args = profile.args_of(InterPodAffinityArgs)
    return InterPodAffinity(args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods)


def _spread(profile: ResolvedProfile) -> object:
    args = profile.args_of(PodTopologySpreadArgs)
    return PodTopologySpread(args.default_constraints, args.defaulting_type == "System")


def _cost(profile: ResolvedProfile) -> object:
    args = profile.args_of(CostArgs)
    prices = PriceList(args.currency, args.price_label, tuple(_price(spec) for spec in args.prices))
    return Cost(prices, args.in_use_percent)


def _price(spec: PriceSpec) -> Price:
    price = round((spec.price or 0) * MILLIONTHS)
    if spec.instance_type:
        return Price(price, label=INSTANCE_TYPE, value=spec.instance_type)
    return Price(price, spec.node, spec.label, spec.value)


def _latency(profile: ResolvedProfile) -> object:
    args = profile.args_of(LatencyArgs)
    return Latency(args.table_file, args.places)


def _gpu_share(profile: ResolvedProfile) -> object:
    args = profile.args_of(GpuShareArgs)
    return GpuShare(args.resource, args.device)  # type: ignore[arg-type]


def _fragmentation(profile: ResolvedProfile) -> object:
    args = profile.args_of(FragmentationArgs)
    return Fragmentation(args.resource, _mix(args.typical_pods), args.weight_exponent, args.quantum, args.packing)


def _foresight(profile: ResolvedProfile) -> object:
    args = profile.args_of(ForesightArgs)
    near = Fragmentation(args.resource, _mix(args.typical_pods), args.weight_exponent, packing=args.packing)
    return Foresight(near, args.futures, args.pods_per_device, args.now)


def _mix(typical_pods: tuple[TypicalPod, ...]) -> tuple[Typical, ...]:
    """Who needs no GPU can use none of what is free, wherever a pod goes."""
    return tuple(_typical(pod) for pod in typical_pods if pod.gpu or pod.gpu_milli)


def _typical(pod: TypicalPod) -> Typical:
    devices, milli = (1, pod.gpu_milli) if pod.gpu_milli else (pod.gpu, DEVICE_MILLI)
    nodes = tuple((key, tuple(values)) for key, values in pod.nodes.items())
    return Typical(pod.weight, milli_value(pod.cpu), value(pod.memory), devices, milli, nodes)


BUILDERS: Final[Mapping[str, Callable[[ResolvedProfile], object]]] = MappingProxyType(
    {
        "NodeUnschedulable": lambda _: NodeUnschedulable(),
        "NodeName": lambda _: NodeName(),
        "TaintToleration": lambda _: TaintToleration(),
        "NodeAffinity": _affinity,
        "NodePorts": lambda _: NodePorts(),
        "NodeResourcesFit": _fit,
        "VolumeRestrictions": lambda _: VolumeRestrictions(),
        "NodeVolumeLimits": lambda _: NodeVolumeLimits(),
        "VolumeBinding": lambda it: VolumeBinding() if _may_sit_out(VolumeBinding.name, it) else NeverSitsOut(),
        "VolumeZone": lambda _: VolumeZone(),
        "PodTopologySpread": _spread,
        "InterPodAffinity": _inter_pod,
        "DynamicResources": lambda _: DynamicResources(),
        "NodeResourcesBalancedAllocation": _balanced,
        "ImageLocality": lambda _: ImageLocality(),
        "NodeDeclaredFeatures": lambda _: NodeDeclaredFeatures(),
        "BinPack": lambda it: BinPack(_weights(it.args_of(BinPackArgs).resources)),
        "Cost": _cost,
        "GpuShare": _gpu_share,
        "Fragmentation": _fragmentation,
        "Foresight": _foresight,
        "Latency": _latency,
    }
)
