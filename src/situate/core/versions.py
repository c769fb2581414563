"""What the versions of Kubernetes decide differently: a set of rules for each version that situate follows.

This is the only place that knows versions. Everything else gets a `KubernetesRules` with its configuration and reads
the rule that concerns it; nothing compares version numbers. A rule is named after what it does where it is true, and
1.36 and 1.37 are two values of the same class. docs/reference/versions.md explains the differences to users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """Dynamic resource allocation: the plugin DynamicResources, its allocator, and device selectors in CEL."""

    selector_error_names_device: bool
    """An error of a selector names the device, and hints at optional chaining if a key is missing."""
    reads_device_taint_rules: bool
    """DeviceTaintRules taint the devices that they select."""
    all_includes_used_up: bool
    """`allocationMode: All` includes devices whose remaining capacity is too small, and so fails on that node."""
    distinct_compares_every_device: bool
    """distinctAttribute compares with all devices taken so far, not with the last one of each request."""
    claim_limit_names_request: bool
    """A claim for too many devices is refused at the first request that exceeds the limit, which the text names."""
    counter_slices_obey_nodes: bool
    """A slice with shared counters counts only for the nodes that it names; missing ones are taken from the pool."""
    counters_charged_once: bool
    """A shared device without capacities is charged once for its counters, not once per share."""
    refuses_odd_capacities: bool
    """A capacity that is negative, or too large to compute with, is an error; otherwise the arithmetic wraps."""
    rounds_in_format_of_step: bool
    """A capacity that was rounded up has the format of its step, not always binary SI."""
    config_listed_once: bool
    """A configuration of a claim is listed once in the result, without requests if it covers all of them."""
    ignores_compatibility_groups: bool
    """A slice that uses compatibilityGroups is ignored, so its pool is incomplete."""
    list_attributes: bool
    """Selectors may read attributes that are lists; otherwise they are an error."""
    dynamic_attributes: bool
    """In selectors, attributes have the type `dyn`, and so may the result; otherwise `any`, and it may not."""
    includes_cost: int
    """What the function `includes` costs in addition to its arguments, relative to 1.37."""
    reports_fruitless_deallocation: bool
    """PostFilter leads with "no new claims to deallocate" or "still not schedulable"."""
    reserves_allocated_claims: bool
    """Reserve marks an allocation as in flight even if the claim is allocated already."""
    missing_extended_claim_fails: bool
    """That the claim for extended resources is gone already when it is deleted is an error."""
    deleted_claim_wakes: bool
    """The deletion of a claim that had an allocation wakes pods that wait for devices."""
    in_flight_until_pre_bound: bool
    """Allocations are in flight until all of PreBind is done; otherwise until each is written."""


@dataclass(frozen=True, slots=True)
class KubernetesRules:
    """The rules of one version of Kubernetes."""

    version: str
    """As users write it, such as "1.36"."""
    release: str
    """The release of kube-scheduler that situate was compared with, as its /version reports it."""

    # -- profiles ------------------------------------------------------------------------------------------------
    first_filters: tuple[str, ...]
    """The filters that run first by default, in order. A node is charged to the first filter that refuses it."""
    added_points: Mapping[str, frozenset[str]]
    """Plugin -> the extension points that it implements in this version only."""
    pod_group_post_filter: bool
    """The extension point podGroupPostFilter exists."""

    # -- plugins -------------------------------------------------------------------------------------------------
    node_name_narrows: bool
    """NodeName restricts the pod to its node before filtering; other nodes are not asked."""
    image_volumes_raise_threshold: bool
    """ImageLocality counts image volumes like containers when it caps the score."""
    scores_storage_capacity: bool
    """VolumeBinding scores nodes by the capacity of their volumes. 0 for pods without such volumes."""
    refuses_missing_csi_drivers: bool
    """NodeVolumeLimits refuses a node without a driver whose CSIDriver has preventPodSchedulingIfMissing."""
    namespace_selector_sees_no_labels: bool
    """InterPodAffinity evaluates a pending pod's namespaceSelector again, on no labels. One that matches none (NotIn,
    DoesNotExist) then matches every namespace."""
    resize_counts_by_container: bool
    """A resized pod counts for the sum over containers of each one's largest amount; otherwise for the largest of the
    sums: desired, allocated, actual."""

    # -- preemption ----------------------------------------------------------------------------------------------
    reports_preemption: bool
    """The message of a preemptor names its node and the number of victims."""
    budgets_stop_at_first: bool
    """Once a victim breaks a budget, later budgets are not charged for it."""
    unstarted_rank_by_position: bool
    """Pods without a start time keep their order on the node; otherwise each compares as older than the other."""

    # -- queue ---------------------------------------------------------------------------------------------------
    nominates_gated_pods: bool
    """A gated pod that is nominated for a node reserves its room there."""
    queue_events: Mapping[str, str]
    """Events that bring pods to the queue and have another name in this version's metrics than in 1.36's."""

    devices: DeviceRules


V1_36: Final = KubernetesRules(
    version="1.36",
    release="v1.36.4",
    first_filters=("NodeUnschedulable", "NodeName"),
    added_points=MappingProxyType({}),
    pod_group_post_filter=False,
    node_name_narrows=False,
    image_volumes_raise_threshold=False,
    scores_storage_capacity=False,
    refuses_missing_csi_drivers=False,
    namespace_selector_sees_no_labels=True,
    resize_counts_by_container=True,
    reports_preemption=False,
    budgets_stop_at_first=False,
    unstarted_rank_by_position=False,
    nominates_gated_pods=False,
    queue_events=MappingProxyType({}),
    devices=DeviceRules(
        selector_error_names_device=False,
        reads_device_taint_rules=False,
        all_includes_used_up=False,
        distinct_compares_every_device=False,
        claim_limit_names_request=False,
        counter_slices_obey_nodes=False,
        counters_charged_once=False,
        refuses_odd_capacities=False,
        rounds_in_format_of_step=False,
        config_listed_once=False,
        ignores_compatibility_groups=False,
        list_attributes=False,
        dynamic_attributes=False,
        includes_cost=1,
        reports_fruitless_deallocation=True,
        reserves_allocated_claims=True,
        missing_extended_claim_fails=True,
        deleted_claim_wakes=False,
        in_flight_until_pre_bound=False,
    ),
)

V1_37: Final = KubernetesRules(
    version="1.37",
    release="v1.37.1",
    first_filters=("NodeName", "NodeUnschedulable"),
    added_points=MappingProxyType(
        {
            "NodeName": frozenset({"preFilter"}),
            "NodeUnschedulable": frozenset({"preFilter"}),
            "TaintToleration": frozenset({"preFilter"}),
            "DynamicResources": frozenset({"podGroupPostFilter"}),
            "DefaultPreemption": frozenset({"podGroupPostFilter"}),
        }
    ),
    pod_group_post_filter=True,
    node_name_narrows=True,
    image_volumes_raise_threshold=True,
    scores_storage_capacity=True,
    refuses_missing_csi_drivers=True,
    namespace_selector_sees_no_labels=False,
    resize_counts_by_container=False,
    reports_preemption=True,
    budgets_stop_at_first=True,
    unstarted_rank_by_position=True,
    nominates_gated_pods=True,
    queue_events=MappingProxyType(
        {
            "UnschedulablePodAdd": "UnscheduledPodAdd",
            "UnschedulablePodUpdate": "TargetPodUpdate",
            "UnschedulablePodUpdatePodGeneratedResourceClaim": "TargetPodUpdatePodGeneratedResourceClaim",
            "UnschedulablePodUpdatePodSchedulingGatesEliminated": "TargetPodUpdatePodSchedulingGatesEliminated",
            "UnschedulablePodUpdatePodToleration": "TargetPodUpdatePodToleration",
        }
    ),
    devices=DeviceRules(
        selector_error_names_device=True,
        reads_device_taint_rules=True,
        all_includes_used_up=True,
        distinct_compares_every_device=True,
        claim_limit_names_request=True,
        counter_slices_obey_nodes=True,
        counters_charged_once=True,
        refuses_odd_capacities=True,
        rounds_in_format_of_step=True,
        config_listed_once=True,
        ignores_compatibility_groups=True,
        list_attributes=True,
        dynamic_attributes=True,
        includes_cost=0,
        reports_fruitless_deallocation=False,
        reserves_allocated_claims=False,
        missing_extended_claim_fails=False,
        deleted_claim_wakes=True,
        in_flight_until_pre_bound=True,
    ),
)

RULES: Final[Mapping[str, KubernetesRules]] = MappingProxyType({rules.version: rules for rules in (V1_36, V1_37)})
"""By version, oldest first."""
DEFAULT: Final = V1_36
"""The rules for files, where nothing tells the version."""

_MINOR: Final = re.compile(r"v?1\.(\d{1,6})")


def rules_of_server(git_version: str) -> KubernetesRules | None:
    """The rules for an API server, by the `gitVersion` of its /version; None if that is no version of Kubernetes 1.

    A server that is older or newer than every known version gets the rules of the nearest.
    """
    found = _MINOR.match(git_version)
    if found is None:
        return None
    known = {int(rules.version.partition(".")[2]): rules for rules in RULES.values()}
    older = [minor for minor in known if minor <= int(found[1])]
    return known[max(older) if older else min(known)]
