"""What is wrong with a plugin's arguments: kube-scheduler v1.36's checks, with its feature gates at their defaults."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from situate.core.config.affinity import node_affinity_problems
from situate.core.config.duration import SECOND, format_duration
from situate.core.config.problems import child, distinct, duplicate, forbidden, index, invalid, required, unsupported
from situate.core.config.types import (
    BinPackArgs,
    CostArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
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
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from situate.core.config.validate_gpu import gpu_problems
from situate.core.model.latency import PlaceLatencies
from situate.core.model.names import qualified_name_problems
from situate.core.model.pod import TopologySpreadConstraint

__all__ = ["args_problems", "latency_problems"]

SCORING_STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
DEFAULTING_TYPES: Final = ("System", "List")
UNSATISFIABLE_ACTIONS: Final = ("DoNotSchedule", "ScheduleAnyway")

_SHAPE_GATE_OFF: Final = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"


def args_problems(path: str, args: Any) -> list[str]:
    """Nothing for arguments of plugins of others: nobody here knows what they mean."""
    match args:
        case DefaultPreemptionArgs():
            problems = _preemption(path, args)
        case DynamicResourcesArgs():
            problems = _dynamic_resources(path, args)
        case InterPodAffinityArgs():
            problems = _inter_pod_affinity(path, args)
        case NodeAffinityArgs(added_affinity=affinity):
            problems = [] if affinity is None else node_affinity_problems(child(path, "addedAffinity"), affinity)
        case NodeResourcesBalancedAllocationArgs():
            problems = _balanced_allocation(path, args)
        case NodeResourcesFitArgs():
            problems = _fit(path, args)
        case PodTopologySpreadArgs():
            problems = _topology_spread(path, args)
        case VolumeBindingArgs():
            problems = _volume_binding(path, args)
        case BinPackArgs():
            problems = _bin_pack(path, args)
        case CostArgs():
            problems = _cost(path, args)
        case ForesightArgs() | FragmentationArgs() | GpuShareArgs():
            problems = gpu_problems(path, args)
        case LatencyArgs():
            problems = _latency(path, args)
        case _:
            problems = []
    return distinct(problems)


def _preemption(path: str, args: DefaultPreemptionArgs) -> list[str]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    problems = []
    if not 0 <= percentage <= 100:
        problems.append(invalid(percentage_path, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        problems.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == absolute == 0:
        both = "cannot be zero at the same time as "
        problems.append(invalid(percentage_path, percentage, f"{both}minCandidateNodesAbsolute"))
        problems.append(invalid(absolute_path, absolute, f"{both}minCandidateNodesPercentage"))
    return problems


def _dynamic_resources(path: str, args: DynamicResourcesArgs) -> list[str]:
    problems = []
    if args.filter_timeout < 0:
        shown = format_duration(args.filter_timeout)
        problems.append(invalid(child(path, "filterTimeout"), shown, "must be zero or positive"))
    if args.binding_timeout < SECOND:
        shown = format_duration(args.binding_timeout)
        problems.append(invalid(child(path, "bindingTimeout"), shown, "must be at least 1 second"))
    return problems


def _inter_pod_affinity(path: str, args: InterPodAffinityArgs) -> list[str]:
    weight = args.hard_pod_affinity_weight
    if 0 <= weight <= 100:
        return []
    return [invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def _balanced_allocation(path: str, args: NodeResourcesBalancedAllocationArgs) -> list[str]:
    problems = []
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        here = index(child(path, "resources"), i)
        if resource.name in seen:
            problems.append(duplicate(child(here, "name"), resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            problems.append(invalid(child(here, "weight"), resource.weight, "must be 1"))
    return problems


# ── NodeResourcesFit ────────────────────────────────────────────────────────────────────────────────────────────────


def _fit(path: str, args: NodeResourcesFitArgs) -> list[str]:
    problems: list[str] = []
    for i, resource in enumerate(args.ignored_resources):
        problems += _label_name(index(child(path, "ignoredResources"), i), resource)
    for i, group in enumerate(args.ignored_resource_groups):
        here = index(child(path, "ignoredResourceGroups"), i)
        if "/" in group:
            problems.append(invalid(here, group, "resource group name can't contain '/'"))
        problems += _label_name(here, group)
    return problems + _scoring_strategy(child(path, "scoringStrategy"), args.scoring_strategy)


def _scoring_strategy(path: str, strategy: ScoringStrategy) -> list[str]:
    problems = []
    if strategy.type not in SCORING_STRATEGIES:
        problems.append(unsupported(child(path, "type"), strategy.type, SCORING_STRATEGIES))
    problems += _resource_weights(child(path, "resources"), strategy.resources)
    ratio, ratio_path = strategy.requested_to_capacity_ratio, child(path, "requestedToCapacityRatio")
    if strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            problems.append(forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio"))
    elif ratio is None:
        problems.append(required(ratio_path, "must be specified when type is RequestedToCapacityRatio"))
    else:
        problems += _shape(child(ratio_path, "shape"), ratio.shape)
    return problems


def _resource_weights(path: str, resources: Sequence[ResourceSpec]) -> list[str]:
    return [
        invalid(
            child(index(path, i), "weight"),
            resource.weight,
            f"resource weight of {resource.name} not in valid range (0, 100]",
        )
        for i, resource in enumerate(resources)
        if not 0 < resource.weight <= 100
    ]


def _shape(path: str, shape: Sequence[UtilizationShapePoint]) -> list[str]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    problems = []
    for i, (last, point) in enumerate(pairwise(shape), start=1):
        if last.utilization >= point.utilization:
            here = child(index(path, i), "utilization")
            problems.append(invalid(here, point.utilization, "values must be sorted in increasing order"))
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            here = child(index(path, i), "utilization")
            problems.append(invalid(here, point.utilization, "not in valid range [0, 100]"))
        if not 0 <= point.score <= 10:
            problems.append(invalid(child(index(path, i), "score"), point.score, "not in valid range [0, 10]"))
    return problems


# ── PodTopologySpread, VolumeBinding ────────────────────────────────────────────────────────────────────────────────


def _topology_spread(path: str, args: PodTopologySpreadArgs) -> list[str]:
    problems = []
    type_path = child(path, "defaultingType")
    if args.defaulting_type not in DEFAULTING_TYPES:
        problems.append(unsupported(type_path, args.defaulting_type, DEFAULTING_TYPES))
    elif args.defaulting_type == "System" and args.default_constraints:
        problems.append(invalid(type_path, args.defaulting_type, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        here = index(child(path, "defaultConstraints"), i)
        problems += _constraint(here, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            problems.append(duplicate(here, f"{{{pair[0]}, {pair[1]}}}"))
        seen.add(pair)
    return problems


def _constraint(path: str, constraint: TopologySpreadConstraint) -> list[str]:
    problems = []
    if constraint.max_skew <= 0:
        problems.append(invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)"))
    key_path = child(path, "topologyKey")
    if constraint.topology_key:
        problems += _label_name(key_path, constraint.topology_key)
    else:
        problems.append(required(key_path, "can not be empty"))
    action, action_path = constraint.when_unsatisfiable, child(path, "whenUnsatisfiable")
    if not action:
        problems.append(required(action_path, "can not be empty"))
    elif action not in UNSATISFIABLE_ACTIONS:
        problems.append(unsupported(action_path, action, UNSATISFIABLE_ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        problems.append(forbidden(child(path, "labelSelector"), detail))
    return problems


def _volume_binding(path: str, args: VolumeBindingArgs) -> list[str]:
    problems = []
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        problems.append(invalid(child(path, "bindTimeoutSeconds"), args.bind_timeout_seconds, detail))
    if args.shape is not None:
        shown = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        problems.append(invalid(child(path, "shape"), shown, _SHAPE_GATE_OFF))
    return problems


# ── plugins of ours ─────────────────────────────────────────────────────────────────────────────────────────────────


MOST_MONEY: Final = 1_000_000_000
MOST_MS: Final = 1_000_000_000
"""So that a sum of millionths, or of millionths of a second, fits a column."""


def _bin_pack(path: str, args: BinPackArgs) -> list[str]:
    here = child(path, "resources")
    problems = _resource_weights(here, args.resources)
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        name = child(index(here, i), "name")
        if resource.name in seen:
            problems.append(duplicate(name, resource.name))
        seen.add(resource.name)
        problems += _label_name(name, resource.name)
    return problems


def _cost(path: str, args: CostArgs) -> list[str]:
    problems: list[str] = []
    if not args.price_label and not args.prices:
        problems.append(required(child(path, "prices"), "or priceLabel: without either no node has a price"))
    if args.price_label:
        problems += _label_name(child(path, "priceLabel"), args.price_label)
    for i, spec in enumerate(args.prices):
        problems += _price(index(child(path, "prices"), i), spec)
    if not 0 <= args.in_use_percent <= 100:
        problems.append(invalid(child(path, "inUsePercent"), args.in_use_percent, "not in valid range [0, 100]"))
    return problems


def _price(path: str, spec: PriceSpec) -> list[str]:
    problems = []
    named = [name for name in (spec.node, spec.instance_type, spec.label) if name]
    if len(named) != 1:
        problems.append(required(path, "exactly one of node, instanceType and label says what the price is of"))
    if spec.label:
        problems += _label_name(child(path, "label"), spec.label)
    elif spec.value:
        problems.append(forbidden(child(path, "value"), "may only be given together with label"))
    if spec.price is None:
        problems.append(required(child(path, "price")))
    elif not 0 <= spec.price <= MOST_MONEY:
        problems.append(invalid(child(path, "price"), spec.price, f"not in valid range [0, {MOST_MONEY}]"))
    return problems


def _latency(path: str, args: LatencyArgs) -> list[str]:
    if not args.table_file and not args.places:
        return [required(child(path, "tableFile"), "or places: without either nothing is known of any place")]
    return latency_problems(child(path, "places"), args.places)


def latency_problems(path: str, places: Mapping[str, PlaceLatencies]) -> list[str]:
    """Of a latency table, in the arguments or in a file of its own."""
    return [
        invalid(f"{path}[{place}].{by}[{name}]", ms, f"not in valid range [0, {MOST_MS}]")
        for place, latencies in places.items()
        for by, table in (("nodes", latencies.nodes), ("zones", latencies.zones), ("regions", latencies.regions))
        for name, ms in table.items()
        if not (isfinite(ms) and 0 <= ms <= MOST_MS)
    ]


def _label_name(path: str, name: str) -> list[str]:
    return [invalid(path, name, fault) for fault in qualified_name_problems(name)]
