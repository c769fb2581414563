"""Checks of workloads against nodes, as if all nodes were empty. The engine's own filters decide."""

from collections.abc import Iterator
from dataclasses import replace as replaced
from typing import Final

import numpy as np
from msgspec.structs import replace

from situate.cli.commands.check.input import CheckInput
from situate.cli.commands.check.pods import terms_of
from situate.cli.commands.check.rules import IMPOSSIBLE, NO_SPREAD, NOWHERE, ONE_NODE, TOO_LARGE, Finding, Row, findings
from situate.cli.input.workloads import REPLICATED, PodWorkload
from situate.core.explain.formatting import quantity, roughly
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import run_filters
from situate.core.place.profile import Profile
from situate.core.plugins.support.node_selectors import required_affinity_mask
from situate.core.state.classes import PODS, PodClass, TermKind
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

AFFINITY: Final = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
DO_NOT_SCHEDULE: Final = "DoNotSchedule"
JUDGED: Final = (
    "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodePorts", "NodeDeclaredFeatures",
)  # fmt: skip
"""Filters whose answer for an empty node does not depend on objects that may be missing from the input."""


def check_nodes(read: CheckInput, profile: Profile) -> Iterator[Finding]:
    """Could the pods of each workload be placed on these nodes if the nodes were empty?"""
    if not read.nodes:
        return
    cluster = Cluster()
    cluster.load(read.nodes, read.namespaces, ())
    judging = replaced(profile, filters=tuple(plugin for plugin in profile.filters if plugin.name in JUDGED))
    for one in read.workloads:
        rows = [*_too_large(one, cluster), *_where(one, cluster), *_apart(one, cluster), *_spread(one, cluster)]
        if not any(rule in (TOO_LARGE, IMPOSSIBLE) for rule, *_ in rows):
            rows += _nowhere(one, cluster, judging)
        yield from findings(one, rows)


def _kind(one: PodWorkload, cluster: Cluster) -> PodClass:
    return cluster.class_of(replace(one.pod, spec=replace(one.pod.spec, node_name="")))


def _too_large(one: PodWorkload, cluster: Cluster) -> Iterator[Row]:
    view = View(cluster)
    kind = _kind(one, cluster)
    for column, amount in kind.asks:
        room = View(cluster).allocatable(column)
        most = int(room[view.present].max(initial=0))
        if amount <= most:
            continue
        name = cluster.resources.names[column]
        field = "containers[*].resources.requests" if column != PODS else "containers"
        where = f" ({view.names[int(np.flatnonzero(view.present & (room == most))[0])]})" if most else ""
        yield (
            TOO_LARGE,
            f"{field}.{name}",
            f"requests {roughly(name, amount)} {name} in all; the largest node has {roughly(name, most)}{where}",
            f"request at most {quantity(name, most)}, or add a larger node",
        )


def _where(one: PodWorkload, cluster: Cluster) -> Iterator[Row]:
    """How many nodes match its selector and its required affinity."""
    view = View(cluster)
    mask = required_affinity_mask(_kind(one, cluster), view)
    if mask is None:
        return
    field = AFFINITY if one.pod.spec.affinity is not None and not one.pod.spec.node_selector else "nodeSelector"
    count = int(np.count_nonzero(mask & view.present))
    if count == 0:
        yield (IMPOSSIBLE, field, f"none of {view.node_count} nodes matches it", "correct it, or label nodes for it")
    elif count == 1 and view.node_count > 1 and one.kind != "DaemonSet":
        name = view.names[int(np.flatnonzero(mask & view.present)[0])]
        yield (
            ONE_NODE,
            field,
            f"of {view.node_count} nodes only {name} matches it: without that node, nothing runs",
            "label more nodes for it, or require less",
        )


def _apart(one: PodWorkload, cluster: Cluster) -> Iterator[Row]:
    """Replicas with required anti-affinity to each other need a domain each."""
    if one.kind not in REPLICATED or one.replicas < 2:
        return
    view = View(cluster)
    labels = one.pod.metadata.labels
    own = [term for term in terms_of(one) if term.kind is TermKind.REQUIRED_ANTI_AFFINITY]
    for number, term in enumerate(own):
        if not term.pods.matches(one.namespace, labels, view.namespace_labels):
            continue
        domains = _domains(one, view, term.topology_key)
        if domains < one.replicas:
            yield (
                IMPOSSIBLE,
                f"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[{number}]",
                f"keeps its {one.replicas} replicas apart by {term.topology_key}, of which there are {domains}",
                "prefer it instead of requiring it, run fewer replicas, or add nodes",
            )


def _domains(one: PodWorkload, view: View, key: str) -> int:
    """How many domains of a key have a node that matches its selector and its required affinity."""
    ids, _ = view.label(key)
    allowed = required_affinity_mask(_kind(one, view.cluster), view)
    rows = view.present if allowed is None else view.present & allowed
    return len(np.unique(ids[rows & (ids >= 0)]))


def _spread(one: PodWorkload, cluster: Cluster) -> Iterator[Row]:
    view = View(cluster)
    for number, constraint in enumerate(one.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable != DO_NOT_SCHEDULE:
            continue
        field, key = f"topologySpreadConstraints[{number}]", constraint.topology_key
        domains = _domains(one, view, key)
        if not domains:
            yield (
                NO_SPREAD,
                f"{field}.topologyKey",
                f"spreads by {key}, but no node that it may run on has that label",
                f"label the nodes, or spread by another key than {key}",
            )
        elif constraint.min_domains and domains < constraint.min_domains:
            most = constraint.max_skew * domains
            wants = f"wants {constraint.min_domains} domains of {key}, but there are {domains}"
            if one.replicas > most:
                yield (
                    NO_SPREAD,
                    f"{field}.minDomains",
                    f"{wants}: at most {most} of its {one.replicas} replicas can be placed",
                    f"set minDomains to {domains} or less, or add nodes in other domains",
                )


def _nowhere(one: PodWorkload, cluster: Cluster, profile: Profile) -> Iterator[Row]:
    view = View(cluster)
    kind = _kind(one, cluster)
    filtered = run_filters(profile, kind, view)
    if filtered.feasible.any() or filtered.failed is not None:
        return
    diagnosis = diagnose(profile, kind, view, filtered)
    change = "`situate why` explains each node, and what would help"
    if "TaintToleration" in diagnosis.plugins:
        change = "tolerate the taints of the nodes that it should run on"
    yield NOWHERE, "tolerations", f"even if all nodes were empty: {diagnosis.message()}", change
