"""Scheduling constraints of a pod: affinity, tolerations, spread, gates."""

from collections.abc import Iterator

from situate.core.model.names import label_value_problems
from situate.core.model.pod import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    TopologySpreadConstraint,
)
from situate.core.model.tolerations import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Toleration
from situate.core.model.validate.meta import key_problems
from situate.core.model.validate.problem import Problem, Problems, duplicate, invalid, required, unsupported
from situate.core.model.validate.selectors import label_selector_problems, node_selector_problems, term_problems

TAINT_EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
BAD_WEIGHT = "must be in the range 1-100"
NOT_POSITIVE = "must be greater than zero"
EMPTY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
SECONDS_WITHOUT_EXECUTE = "effect must be 'NoExecute' when `tolerationSeconds` is set"
EXISTS_WITH_VALUE = "value must be empty when `operator` is 'Exists'"
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
POLICIES = ("Honor", "Ignore")


def affinity_problems(path: str, affinity: Affinity) -> Problems:
    node = affinity.node_affinity
    if node is not None:
        required_path = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        preferred_path = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
        yield from node_selector_problems(required_path, node.required_during_scheduling_ignored_during_execution)
        for index, one in enumerate(node.preferred_during_scheduling_ignored_during_execution):
            yield from _weight_problems(f"{preferred_path}[{index}].weight", one.weight)
            yield from term_problems(f"{preferred_path}[{index}].preference", one.preference, check_values=False)
    yield from _pod_affinity_problems(f"{path}.podAffinity", affinity.pod_affinity)
    yield from _pod_affinity_problems(f"{path}.podAntiAffinity", affinity.pod_anti_affinity)


def _pod_affinity_problems(path: str, affinity: PodAffinity | None) -> Problems:
    if affinity is None:
        return
    for index, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        yield from _pod_term_problems(f"{path}.requiredDuringSchedulingIgnoredDuringExecution[{index}]", term)
    for index, one in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        here = f"{path}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        yield from _weight_problems(f"{here}.weight", one.weight)
        yield from _pod_term_problems(f"{here}.podAffinityTerm", one.pod_affinity_term)


def _pod_term_problems(path: str, term: PodAffinityTerm) -> Problems:
    yield from label_selector_problems(f"{path}.labelSelector", term.label_selector)
    yield from label_selector_problems(f"{path}.namespaceSelector", term.namespace_selector)
    if not term.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from key_problems(f"{path}.topologyKey", term.topology_key)


def _weight_problems(path: str, weight: int) -> Problems:
    if not 1 <= weight <= 100:
        yield invalid(path, weight, BAD_WEIGHT)


def toleration_problems(path: str, one: Toleration) -> Problems:
    if one.key:
        yield from key_problems(f"{path}.key", one.key)
    elif one.operator != "Exists":
        yield invalid(f"{path}.operator", one.operator, EMPTY_KEY)
    if one.toleration_seconds is not None and one.effect != NO_EXECUTE:
        yield invalid(f"{path}.effect", one.effect, SECONDS_WITHOUT_EXECUTE)
    if one.operator in ("", "Equal"):
        for text in label_value_problems(one.value):
            yield invalid(f"{path}.operator", one.value, text)
    elif one.operator == "Exists":
        if one.value:
            yield invalid(f"{path}.operator", one.value, EXISTS_WITH_VALUE)
    elif one.operator not in ("Lt", "Gt"):
        yield unsupported(f"{path}.operator", one.operator, ("Equal", "Exists"))
    if one.effect and one.effect not in TAINT_EFFECTS:
        yield unsupported(f"{path}.effect", one.effect, TAINT_EFFECTS)


def spread_problems(path: str, constraints: tuple[TopologySpreadConstraint, ...]) -> Problems:
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(constraints):
        here = f"{path}[{index}]"
        yield from _constraint_problems(here, one)
        kind = (one.topology_key, one.when_unsatisfiable)
        if kind in seen:
            yield duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{kind[0]}, {kind[1]}}}")
        seen.add(kind)


def _constraint_problems(path: str, one: TopologySpreadConstraint) -> Iterator[Problem]:
    if one.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", one.max_skew, NOT_POSITIVE)
    if not one.topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    if one.when_unsatisfiable not in ACTIONS:
        yield unsupported(f"{path}.whenUnsatisfiable", one.when_unsatisfiable, ACTIONS)
    if one.min_domains is not None:
        if one.min_domains <= 0:
            yield invalid(f"{path}.minDomains", one.min_domains, NOT_POSITIVE)
        if one.when_unsatisfiable != ACTIONS[0]:
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {one.when_unsatisfiable}"
            yield invalid(f"{path}.minDomains", one.min_domains, text)
    if one.node_affinity_policy not in POLICIES:
        yield unsupported(f"{path}.nodeAffinityPolicy", one.node_affinity_policy, POLICIES)
    if one.node_taints_policy not in POLICIES:
        yield unsupported(f"{path}.nodeTaintsPolicy", one.node_taints_policy, POLICIES)
    yield from label_selector_problems(f"{path}.labelSelector", one.label_selector)


def gate_problems(path: str, gates: tuple[PodSchedulingGate, ...]) -> Problems:
    for index, gate in enumerate(gates):
        yield from key_problems(f"{path}[{index}]", gate.name)
