"""PodTopologySpread: spread matching pods over zones, nodes or any other topology.

Hard constraints refuse nodes where the pod would exceed maxSkew; soft constraints score nodes. A pod without
constraints gets the default ones, which count the pods that its services and its controller select.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from situate.core.contract import Codes, DomainChecker, DomainScores, Failure, Reason, Scores, Verdict, Wake, WakeEvent
from situate.core.model.base import INT32_MAX
from situate.core.model.field_errors import child, duplicate, forbidden, index, invalid, required, unsupported
from situate.core.model.labels import SelectorError
from situate.core.model.pod import TopologySpreadConstraint
from situate.core.plugins.support.arguments import PluginArgs, label_name_problems
from situate.core.plugins.support.default_selector import default_selector
from situate.core.plugins.support.spread_constraints import (
    DO_NOT_SCHEDULE,
    NAME,
    SCHEDULE_ANYWAY,
    Constraint,
    MatchCounter,
    counted,
    default_constraints,
    domains_among,
    keys_of,
    parse_constraints,
)
from situate.core.plugins.support.spread_hints import spread_hint
from situate.core.plugins.support.spread_scoring import HOSTNAME, SoftPlan, soft_plan, spread_scores
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, sealed
from situate.core.state.view import View

ZONE: Final = "topology.kubernetes.io/zone"
SYSTEM: Final = "System"
DEFAULTING_TYPES: Final = (SYSTEM, "List")
ACTIONS: Final = (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY)
SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)
SYSTEM_ACTIONS: Final = (SCHEDULE_ANYWAY,)

NOT_MATCHED: Final = Reason("node(s) didn't match pod topology spread constraints", eviction_helps=True)
NOT_LABELLED: Final = Reason(
    "node(s) didn't match pod topology spread constraints (missing required label)", eviction_helps=False
)
REASONS: Final = (NOT_MATCHED, NOT_LABELLED)
MISSING: Final = 1 + REASONS.index(NOT_LABELLED)
FEW_DOMAINS: Final = 7
"""With up to this many domains, including that of no label, at most 64 tables per key are cached."""


class PodTopologySpreadArgs(PluginArgs, frozen=True, kw_only=True):
    """`defaulting_type`: System (hostname and zone, preferred) or List (`default_constraints`)."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM

    omit_empty = ("default_constraints",)

    def with_defaults(self) -> PodTopologySpreadArgs:
        return replace(self, defaulting_type=self.defaulting_type or SYSTEM)

    def validate(self, path: str) -> list[str]:
        problems = []
        type_path = child(path, "defaultingType")
        if self.defaulting_type not in DEFAULTING_TYPES:
            problems.append(unsupported(type_path, self.defaulting_type, DEFAULTING_TYPES))
        elif self.defaulting_type == SYSTEM and self.default_constraints:
            problems.append(invalid(type_path, self.defaulting_type, "when .defaultConstraints are not empty"))
        seen: set[tuple[str, str]] = set()
        for i, constraint in enumerate(self.default_constraints):
            here = index(child(path, "defaultConstraints"), i)
            problems += _constraint_problems(here, constraint)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                problems.append(duplicate(here, f"{{{pair[0]}, {pair[1]}}}"))
            seen.add(pair)
        return problems


def _constraint_problems(path: str, constraint: TopologySpreadConstraint) -> list[str]:
    problems = []
    if constraint.max_skew <= 0:
        problems.append(invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)"))
    key_path = child(path, "topologyKey")
    if constraint.topology_key:
        problems += label_name_problems(key_path, constraint.topology_key)
    else:
        problems.append(required(key_path, "can not be empty"))
    action, action_path = constraint.when_unsatisfiable, child(path, "whenUnsatisfiable")
    if not action:
        problems.append(required(action_path, "can not be empty"))
    elif action not in ACTIONS:
        problems.append(unsupported(action_path, action, ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        problems.append(forbidden(child(path, "labelSelector"), detail))
    return problems


class HardConstraint(Struct, frozen=True):
    """One constraint, with all that depends on nodes alone."""

    counted: MatchCounter
    slack: int
    """How many more matching pods than the emptiest domain a domain may hold before this pod."""
    domains: IdColumn
    """The domains that have an eligible node."""
    least: int | None
    """The count of the emptiest domain, if it does not depend on pods."""

    def codes(self, view: View) -> Codes:
        return codes_by_row(self.codes_by_domain(view), self.counted.topology_key, view)

    def codes_by_domain(self, view: View) -> Codes:
        counts = self.counted.counts(view)
        least = int(counts.take(self.domains).min()) if self.least is None else self.least
        table: Codes = (counts > self.slack + least).view(np.uint8)
        table[-1] = MISSING
        return table


def codes_by_row(table: Codes, topology_key: str, view: View) -> Codes:
    """The code of each row's domain. Few domains have few tables, so results are cached until a node changes."""
    if len(table) > FEW_DOMAINS:
        return table.take(view.label(topology_key)[0])
    key = (NAME, "codes", topology_key, table.tobytes())
    codes: Codes = view.memo(key, lambda whole: sealed(table.take(whole.label(topology_key)[0])))
    return codes[view.rows]


class SpreadPlan(Struct, frozen=True):
    """A pod's constraints, with all that can be computed before pods are counted."""

    hard: tuple[HardConstraint, ...] = ()
    soft: SoftPlan | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class PodTopologySpread:
    """The defaults are the system's or the listed ones."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    system_defaulted: bool = True

    name: ClassVar[str] = NAME
    reasons: ClassVar[tuple[Reason, ...]] = REASONS
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.POD_ADDED,
            Wake.POD_LEAVING,
            Wake.POD_DELETED,
            Wake.POD_LABEL,
            Wake.POD_TOLERATION,
            Wake.NODE_ADDED,
            Wake.NODE_DELETED,
            Wake.NODE_LABEL,
            Wake.NODE_TAINT,
            Wake.WORKLOAD_CHANGED,
        }
    )

    @classmethod
    def from_args(cls, args: PodTopologySpreadArgs, points: frozenset[str]) -> PodTopologySpread:
        return cls(args.default_constraints, args.defaulting_type == SYSTEM)

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return spread_hint(pod, event, self._defaults)

    @property
    def _defaults(self) -> tuple[TopologySpreadConstraint, ...]:
        return SYSTEM_DEFAULTS if self.system_defaulted else self.default_constraints

    def check(self, pod: PodClass, view: View) -> Verdict:
        plan = self._plan(pod, view, DO_NOT_SCHEDULE)
        if plan is None:
            return None
        if plan.failure is not None:
            return plan.failure
        if not plan.hard:
            return None
        codes = plan.hard[0].codes(view)
        for constraint in plan.hard[1:]:
            # The first constraint that refuses a node gives the reason.
            codes = np.where(codes, codes, constraint.codes(view))
        return codes

    def domain_checker(self, pod: PodClass, view: View) -> DomainChecker | None:
        plan = self._plan(pod, view, DO_NOT_SCHEDULE)
        if plan is None or len(plan.hard) != 1:
            return None
        constraint = plan.hard[0]
        return DomainChecker(constraint.counted.topology_key, constraint.codes_by_domain)

    def score(self, pod: PodClass, view: View) -> Scores | None:
        scores = self.brief_scores(pod, view)
        return scores.by_node(view) if isinstance(scores, DomainScores) else scores

    def brief_scores(self, pod: PodClass, view: View) -> DomainScores | Scores | None:
        plan = self._plan(pod, view, SCHEDULE_ANYWAY)
        return None if plan is None or plan.soft is None else spread_scores(plan.soft, view)

    def _plan(self, pod: PodClass, view: View, action: str) -> SpreadPlan | None:
        """The plan for the pod, None if it has no constraint of this kind."""
        if pod.spec.topology_spread_constraints:
            return view.memo((NAME, pod.signature), lambda whole: own_plan(pod, whole))
        defaults = self._defaults
        if action not in (SYSTEM_ACTIONS if self.system_defaulted else _actions(defaults)):
            return None
        workloads = view.workloads
        if pod.owner is None and pod.namespace not in workloads.services:
            return None
        key = (NAME, pod.signature, defaults, self.system_defaulted, workloads.version)
        return view.memo(key, lambda whole: self._default_plan(pod, defaults, whole))

    def _default_plan(
        self, pod: PodClass, defaults: tuple[TopologySpreadConstraint, ...], view: View
    ) -> SpreadPlan | None:
        selector = default_selector(pod, view.workloads)
        if not selector.requirements:
            return None
        hard = default_constraints(defaults, DO_NOT_SCHEDULE, selector)
        soft = default_constraints(defaults, SCHEDULE_ANYWAY, selector)
        # With the system's defaults, a node without a zone still counts for hostname.
        needs_keys = not self.system_defaulted
        return SpreadPlan(hard_constraints(pod, hard, view), soft_plan(pod, soft, view, needs_keys=needs_keys))


def _actions(constraints: tuple[TopologySpreadConstraint, ...]) -> tuple[str, ...]:
    return tuple([constraint.when_unsatisfiable for constraint in constraints])


def own_plan(pod: PodClass, view: View) -> SpreadPlan:
    """The plan for the pod's own constraints."""
    own = pod.spec.topology_spread_constraints
    try:
        hard = parse_constraints(own, DO_NOT_SCHEDULE, pod.labels)
    except SelectorError as error:
        return SpreadPlan(
            failure=Failure(f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}")
        )
    try:
        soft = parse_constraints(own, SCHEDULE_ANYWAY, pod.labels)
    except SelectorError as error:
        # Kubernetes notices only when it scores; the outcome is the same.
        return SpreadPlan(
            failure=Failure(
                f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}", "PreScore"
            )
        )
    return SpreadPlan(hard_constraints(pod, hard, view), soft_plan(pod, soft, view, needs_keys=True))


def hard_constraints(pod: PodClass, constraints: tuple[Constraint, ...], view: View) -> tuple[HardConstraint, ...]:
    if not constraints:
        return ()
    keys = keys_of(constraints)
    return tuple(_hard(pod, one, counted(pod, one, keys, view), view) for one in constraints)


def _hard(pod: PodClass, constraint: Constraint, counts: MatchCounter, view: View) -> HardConstraint:
    domains = domains_among(counts, view)
    least = None if len(domains) else INT32_MAX
    if len(domains) < constraint.min_domains:
        # As if there were an empty domain.
        least = 0
    slack = constraint.max_skew - constraint.selector.matches(pod.labels)
    return HardConstraint(counts, slack, domains, least)
