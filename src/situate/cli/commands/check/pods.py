"""Checks of workloads by themselves, without nodes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from situate.cli.commands.check.input import CheckInput
from situate.cli.commands.check.rules import (
    IMPOSSIBLE,
    NO_LIMITS,
    NO_PRIORITY,
    NO_REQUESTS,
    NODE_NAME,
    TOGETHER,
    Finding,
    Row,
    findings,
)
from situate.cli.input.workloads import REPLICATED, PodWorkload
from situate.core.explain.formatting import requirement_text, term_text
from situate.core.explain.node_details import required_terms, selector_entries
from situate.core.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement
from situate.core.model.nodeselector import parse_terms
from situate.core.model.pod import Container
from situate.core.model.priority import priority_classes
from situate.core.state.classes import AffinityTerm, LabelGroup, TermKind, compile_class
from situate.core.state.vocab import Vocab

CPU_AND_MEMORY: Final = ("cpu", "memory")
FIXED: Final = ("cpu", "memory", "ephemeral-storage", "pods")


def check_pods(read: CheckInput) -> Iterator[Finding]:
    classes = priority_classes(read.priority_classes).by_name if read.priority_classes else None
    for one in read.workloads:
        rows = [*_resources(one), *_node_name(one), *_apart(one), *_contradictions(one), *_company(one, read)]
        yield from findings(one, [*rows, *_priority(one, classes)])


def _resources(one: PodWorkload) -> Iterator[Row]:
    spec = one.pod.spec
    pod_level = spec.resources.requests if spec.resources is not None else {}
    pod_limits = spec.resources.limits if spec.resources is not None else {}
    for container, where in _containers(one):
        requests, limits = container.resources.requests, container.resources.limits
        missing = [name for name in CPU_AND_MEMORY if name not in requests and name not in pod_level]
        if missing:
            yield (
                NO_REQUESTS,
                f"{where}.resources.requests",
                f"requests no {' and '.join(missing)}: the scheduler assumes next to nothing, whatever it uses",
                f"set {', '.join(f'requests.{name}' for name in missing)} to what it uses",
            )
        if "memory" not in limits and "memory" not in pod_limits:
            yield (
                NO_LIMITS,
                f"{where}.resources.limits",
                "has no memory limit: it can use up the memory of all other pods on its node",
                "set limits.memory",
            )


def _containers(one: PodWorkload) -> Iterator[tuple[Container, str]]:
    """Those that keep running: init containers end, unless they are sidecars."""
    for container in one.pod.spec.containers:
        yield container, f"containers[{container.name}]"
    for container in one.pod.spec.init_containers:
        if container.restart_policy == "Always":
            yield container, f"initContainers[{container.name}]"


def _node_name(one: PodWorkload) -> Iterator[Row]:
    name = one.pod.spec.node_name
    if name and not one.from_server:
        yield (
            NODE_NAME,
            "nodeName",
            f"is set to {name}: no scheduler checks whether it fits there",
            "remove it; to prefer or require nodes, use affinity.nodeAffinity",
        )


def terms_of(one: PodWorkload) -> tuple[AffinityTerm, ...]:
    """The (anti-)affinity terms of its pods, compiled."""
    group = LabelGroup(one.namespace, one.pod.metadata.labels)
    return compile_class(0, b"", one.pod, group, Vocab(FIXED)).terms


def _apart(one: PodWorkload) -> Iterator[Row]:
    if one.kind not in REPLICATED or one.replicas < 2 or one.pod.spec.topology_spread_constraints:
        return
    labels = one.pod.metadata.labels
    anti = (TermKind.REQUIRED_ANTI_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY)
    if any(term.kind in anti and term.pods.selector.matches(labels) for term in terms_of(one)):
        return
    yield (
        TOGETHER,
        "topologySpreadConstraints",
        f"nothing spreads its {one.replicas} replicas: all may be on one node, and fail with it",
        "add a topologySpreadConstraint by kubernetes.io/hostname or topology.kubernetes.io/zone for its own labels",
    )


def _contradictions(one: PodWorkload) -> Iterator[Row]:
    """Terms that no node of any cluster could match."""
    terms = required_terms(one.pod.spec)
    entries = selector_entries(one.pod.spec)
    if terms is None:
        return
    field = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    read = parse_terms(terms)
    clashes = [_clash((*entries, *term.labels)) for term in read]
    if not read:
        yield IMPOSSIBLE, field, "none of its terms can match a node", "correct or remove it"
    elif all(clashes):
        pairs = "; ".join(f"{requirement_text(a)} and {requirement_text(b)}" for a, b in filter(None, clashes))
        yield IMPOSSIBLE, field, f"contradicts itself: {pairs}", "remove one of each pair"


def _clash(requirements: Sequence[Requirement]) -> tuple[Requirement, Requirement] | None:
    """Two requirements that no set of labels satisfies."""
    for at, one in enumerate(requirements):
        for other in requirements[at + 1 :]:
            if one.key == other.key and _exclude(one, other):
                return one, other
    return None


def _exclude(one: Requirement, other: Requirement) -> bool:
    for left, right in ((one, other), (other, one)):
        match left.operator, right.operator:
            case (a, b) if a == IN and b == IN:
                return not [value for value in left.values if value in right.values]
            case (a, b) if a == IN and b == NOT_IN:
                return all(value in right.values for value in left.values)
            case (a, b) if b == DOES_NOT_EXIST and a in (IN, EXISTS):
                return True
            case _:
                continue
    return False


def _company(one: PodWorkload, read: CheckInput) -> Iterator[Row]:
    """Required affinity to pods that do not exist, and affinity and anti-affinity to the same pods."""
    spaces = {space.metadata.name: space.metadata.labels for space in read.namespaces}
    terms = terms_of(one)
    for number, term in enumerate(term for term in terms if term.kind is TermKind.REQUIRED_AFFINITY):
        field = f"affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[{number}]"
        matching = (term.pods.matches(other.namespace, other.pod.metadata.labels, spaces) for other in read.workloads)
        if not any(matching):
            yield (
                IMPOSSIBLE,
                field,
                f"requires {term_text(term.pods)} nearby, but no pod or template in the input matches",
                "correct the selector, or deploy those pods first",
            )
        for other in terms:
            same = (other.pods, other.topology_key) == (term.pods, term.topology_key)
            if other.kind is TermKind.REQUIRED_ANTI_AFFINITY and same:
                yield (
                    IMPOSSIBLE,
                    field,
                    f"requires {term_text(term.pods)} nearby by {term.topology_key}, and excludes the same",
                    "remove the affinity or the anti-affinity",
                )


def _priority(one: PodWorkload, classes: Iterable[str] | None) -> Iterator[Row]:
    name = one.pod.spec.priority_class_name
    if name and classes is not None and name not in classes:
        yield (
            NO_PRIORITY,
            "priorityClassName",
            f"no PriorityClass has the name {name}: the API server refuses its pods",
            f"create the PriorityClass {name}, or use one of {', '.join(sorted(classes))}",
        )
