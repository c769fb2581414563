"""Topology spread constraints, compiled: the parsed selector and the nodes that count.

The result depends only on the pod's class and on nodes; pods are counted each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from situate.core.model.base import Labels
from situate.core.model.labels import Selector, parse_selector, selector_of
from situate.core.model.pod import TopologySpreadConstraint
from situate.core.model.tolerations import NO_EXECUTE, NO_SCHEDULE, Taint, any_tolerates
from situate.core.plugins.support.default_selector import exactly
from situate.core.plugins.support.node_selectors import required_affinity_mask
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, IntColumn, Mask, sealed
from situate.core.state.matching import Matcher, pods_in
from situate.core.state.topology import Eligible
from situate.core.state.topology_counts import count_overlay, count_pods
from situate.core.state.view import View

NAME: Final = "PodTopologySpread"
HONOR: Final = "Honor"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"


class Constraint(Struct, frozen=True):
    """A parsed constraint."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honors_affinity: bool
    """Whether only nodes that the pod's nodeSelector and required node affinity allow count."""
    honors_taints: bool
    """Whether only nodes whose taints the pod tolerates count."""


def parse_constraints(
    constraints: Iterable[TopologySpreadConstraint], action: str, labels: Labels
) -> tuple[Constraint, ...]:
    """The constraints with this action of a pod with these labels, or SelectorError."""
    return tuple([_parsed(one, own_selector(one, labels)) for one in constraints if one.when_unsatisfiable == action])


def default_constraints(
    constraints: Iterable[TopologySpreadConstraint], action: str, selector: Selector
) -> tuple[Constraint, ...]:
    """The default constraints with this action, for this selector; their own selectors are ignored."""
    return tuple(_parsed(one, selector) for one in constraints if one.when_unsatisfiable == action)


def _parsed(constraint: TopologySpreadConstraint, selector: Selector) -> Constraint:
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy == HONOR,
        honors_taints=constraint.node_taints_policy == HONOR,
    )


def own_selector(constraint: TopologySpreadConstraint, labels: Labels) -> Selector:
    """The constraint's selector, narrowed to pods that agree with this one on the labels of `matchLabelKeys`."""
    selector = parse_selector(constraint.label_selector)
    if not constraint.match_label_keys:
        return selector
    agreed = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    if selector.nothing or not agreed:
        return selector
    return selector_of((*selector.requirements, *exactly(agreed)))


class MatchCounter(Struct, frozen=True):
    """The pods that a constraint counts, the topology key, and the nodes that count."""

    topology_key: str
    matcher: Matcher
    counts_nobody: bool
    """As in Kubernetes, an empty selector counts no pod."""
    eligible: Eligible | None

    def counts(self, view: View) -> IntColumn:
        """Matching pods by domain, over the eligible nodes."""
        if self.counts_nobody:
            # But it matches every pod, so Kubernetes subtracts evicted pods from a count that does not include them.
            return count_overlay(view, self.matcher, self.topology_key, self.eligible)
        return count_pods(view, self.matcher, self.topology_key, self.eligible, counts_leaving=False)

    def counts_by_row(self, view: View, eligible: Eligible | None) -> IntColumn:
        """Matching pods on each node of these."""
        if self.counts_nobody:
            return np.zeros(view.size, np.int64)
        return count_pods(view, self.matcher, None, eligible, counts_leaving=False)[:-1]


def counted(pod: PodClass, constraint: Constraint, keys: tuple[str, ...], view: View) -> MatchCounter:
    """`keys` are the labels without which a node does not count."""
    selector = constraint.selector
    return MatchCounter(
        topology_key=constraint.topology_key,
        matcher=pods_in(pod.namespace, selector),
        counts_nobody=not selector.requirements,
        eligible=_eligible(pod, constraint, keys, view),
    )


def keys_of(constraints: Sequence[Constraint]) -> tuple[str, ...]:
    if len(constraints) == 1:
        return (constraints[0].topology_key,)
    return tuple(sorted({constraint.topology_key for constraint in constraints}))


def keyed_nodes(keys: tuple[str, ...], view: View) -> Mask:
    """The nodes that have every one of these labels."""
    return view.memo((NAME, "keyed", keys), lambda whole: _keyed(keys, whole))


def _keyed(keys: tuple[str, ...], view: View) -> Mask:
    mask: Mask = view.present.copy()
    for key in keys:
        mask &= view.label(key)[0] >= 0
    return sealed(mask)


def _eligible(pod: PodClass, constraint: Constraint, keys: tuple[str, ...], view: View) -> Eligible | None:
    """The nodes that count; None if all candidates do, which is cheaper and widely shared."""
    allowed = required_affinity_mask(pod, view) if constraint.honors_affinity else None
    affinity_key = None if allowed is None else pod.affinity_key
    tolerations_key = pod.tolerations_key if constraint.honors_taints else None
    key = (NAME, "eligible", keys, affinity_key, tolerations_key)
    # Required keys include the constraint's own, and a count by that key skips nodes without it.
    might = (constraint.topology_key,) if keys else ()

    def among(whole: View) -> Eligible | None:
        mask = keyed_nodes(keys, whole).copy()
        if allowed is not None:
            mask &= allowed
        if constraint.honors_taints:
            mask &= _tolerated(pod, whole)
        return None if mask[keyed_nodes(might, whole)].all() else Eligible(key, sealed(mask))

    return view.memo((*key, "of", might), among)


def _tolerated(pod: PodClass, view: View) -> Mask:
    """The nodes without a taint that would keep the pod away."""
    tolerations = pod.spec.tolerations

    def stands(taints: tuple[Taint, ...]) -> bool:
        return all(any_tolerates(tolerations, taint) for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE))

    return np.array(view.by_taint_set(stands), np.bool_)[view.taint_set]


def domains_among(counts: MatchCounter, view: View) -> IdColumn:
    """The domains that have an eligible node."""
    topology_key, eligible = counts.topology_key, counts.eligible

    def find(whole: View) -> IdColumn:
        ids, values = whole.label(topology_key)
        domains = np.flatnonzero(seen_domains(ids, len(values), None if eligible is None else eligible.mask)[:-1])
        return sealed(domains)

    return view.memo((NAME, "domains", topology_key, None if eligible is None else eligible.key), find)


def seen_domains(ids: IdColumn, domains: int, rows: Mask | None) -> Mask:
    """The domains of these rows, by domain id; the last slot is for rows without the label."""
    seen = np.zeros(domains + 1, np.bool_)
    seen[ids if rows is None else ids[rows]] = True
    return seen
