"""Pods and terms counted by topology domain, as a view shows them, overlays included."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from situate.core.state.classes import LabelGroup, PodClass, TermKind
from situate.core.state.columns import IdColumn, IntColumn, sealed
from situate.core.state.matching import Matcher
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import Eligible, TopologyTally
from situate.core.state.view import OVERLAY, TERMS, View

FEW_GROUPS: Final = 32
"""Up to this many groups of equal labels are counted one by one, for an answer that nobody keeps."""
NO_GROUPS: Final[Mapping[LabelGroup, None]] = {}


def count_pods(
    view: View, matcher: Matcher, topology_key: str | None, eligible: Eligible | None = None, *, counts_leaving: bool
) -> IntColumn:
    """Matching pods by domain of a topology key, over all eligible nodes, with a last slot for nodes without it.

    `eligible` is a mask over all rows (`memo` makes it), None for all nodes. The domains are the ids of
    `label(topology_key)`, so `tally[ids]` is the count at each row. Without a key each row is its own domain.
    """
    if view.once and view.is_plain:
        counts = _count_once(view, matcher, topology_key, eligible, counts_leaving)
        if counts is not None:
            return counts
    tally = _tally(view, matcher, topology_key, eligible, counts_leaving)
    view.tallies_read.append(tally)
    view.versions_read.append(tally.version)
    if not (view.removed or view.added):
        return sealed(tally.counts)
    return tally.counts + count_overlay(view, matcher, topology_key, eligible, counted=tally.groups)


def _count_once(
    view: View, matcher: Matcher, topology_key: str | None, eligible: Eligible | None, leaving: bool
) -> IntColumn | None:
    """The counts of a tally that is not kept; None if there is one, or if it is worth keeping."""
    cluster = view.cluster
    if (matcher, topology_key, None if eligible is None else eligible.key, leaving) in cluster.tallies:
        return None
    classes = matching_classes(view, matcher)
    if classes is None:
        return None
    domains, size = _domains(view, topology_key)
    counts = np.zeros(size + 1, np.int64)
    cells, domain_at = counts.data, domains.data  # single numbers are read and written faster through these
    mask = None if eligible is None else eligible.mask.data
    for pod_class in classes:
        for row, amount in pod_class.placed.items():
            domain = domain_at[row]
            if domain >= 0 and (mask is None or mask[row]):
                cells[domain] += amount
        if pod_class.leaving and not leaving:
            for row, amount in pod_class.leaving.items():
                domain = domain_at[row]
                if domain >= 0 and (mask is None or mask[row]):
                    cells[domain] -= amount
    return counts


def matching_classes(view: View, matcher: Matcher) -> list[PodClass] | None:
    """The classes of the pods that match; None if too many might to look at each."""
    table = view.cluster.classes
    anchor = matcher.anchor
    groups = table.group_table.values() if anchor is None else table.groups_by_label.get(anchor, NO_GROUPS)
    if len(groups) > FEW_GROUPS:
        return None
    if simple := matcher.anchored_namespaces:
        return [
            pod_class for group in groups if group.namespace in simple for pod_class in group.classes if pod_class.total
        ]
    names = view.cluster.objects.namespace_labels
    return [
        pod_class
        for group in groups
        if matcher.matches(group.namespace, group.labels, names)
        for pod_class in group.classes
        if pod_class.total
    ]


def count_overlay(
    view: View,
    matcher: Matcher,
    topology_key: str | None,
    eligible: Eligible | None = None,
    counted: Mapping[LabelGroup, None] | None = None,
) -> IntColumn:
    """What an overlay adds to a tally and subtracts from it, by domain; zeros without an overlay.

    `counted` are the groups of bound pods that match, where that is known.
    """
    view.reads |= OVERLAY
    domains, size = _domains(view, topology_key)
    counts = np.zeros(size + 1, np.int64)
    names = view.cluster.objects.namespace_labels
    for kind, row, sign, _ in view.delta():
        # Kubernetes takes a removed pod off the count even if it was leaving and so had not been counted.
        domain = domains[row]
        if domain < 0 or not (eligible is None or eligible.mask[row]):
            continue
        if counted is not None and sign < 0:
            matches = kind.group in counted
        else:
            matches = matcher.matches(kind.namespace, kind.labels, names)
        if matches:
            counts[domain] += sign
    return counts


def _tally(
    view: View, matcher: Matcher, topology_key: str | None, eligible: Eligible | None, leaving: bool
) -> TopologyTally:
    cluster = view.cluster
    key = (matcher, topology_key, None if eligible is None else eligible.key, leaving)
    tally = cluster.tallies.get(key)
    if tally is None:
        domains, size = _domains(view, topology_key)
        tally = TopologyTally(matcher, topology_key, domains, eligible, leaving, np.zeros(size + 1, np.int64))
        cluster.tallies.add(key, tally, cluster.classes, cluster.objects.namespace_labels)
    return tally


def carried_terms(view: View, pod: PodClass, *kinds: TermKind) -> list[tuple[CarriedTerm, IntColumn]]:
    """The terms that bound pods carry and that match this pod; each with its carriers by domain, as in `count_pods`."""
    view.reads |= TERMS
    found: list[tuple[CarriedTerm, IntColumn]] = []
    terms = view.cluster.terms
    if terms.has_any(kinds):
        for entry in terms.speaking_of(pod.group, kinds, view.cluster.objects.namespace_labels):
            found.append((entry, terms.counts(entry, partial(_domains, view))))
            view.tallies_read.append(entry)
            view.versions_read.append(entry.version)
    if not (view.removed or view.added):
        return found
    return _carried_overlay(view, pod, kinds, found)


def carried_entries(view: View, pod: PodClass, *kinds: TermKind) -> list[CarriedTerm]:
    """The same without counts, on a plain view."""
    view.reads |= TERMS
    cluster = view.cluster
    found = cluster.terms.speaking_of(pod.group, kinds, cluster.objects.namespace_labels)
    if found and not view.once:
        view.tallies_read += found
        view.versions_read += [entry.version for entry in found]
    return found


def _carried_overlay(
    view: View, pod: PodClass, kinds: tuple[TermKind, ...], found: list[tuple[CarriedTerm, IntColumn]]
) -> list[tuple[CarriedTerm, IntColumn]]:
    copies = {entry.term: (entry, counts.copy()) for entry, counts in found}
    names = view.cluster.objects.namespace_labels
    for kind, row, sign, _ in view.delta():
        for term in kind.terms:
            if term.kind not in kinds or not term.pods.matches(pod.namespace, pod.labels, names):
                continue
            domains, size = _domains(view, term.topology_key)
            if term not in copies:
                copies[term] = (CarriedTerm(term), np.zeros(size + 1, np.int64))
            if domains[row] >= 0:
                copies[term][1][domains[row]] += sign
    return list(copies.values())


def _domains(view: View, topology_key: str | None) -> tuple[IdColumn, int]:
    if topology_key is None:
        return view.memo(("rows",), lambda whole: np.arange(whole.size)), view.cluster.nodes.size
    column = view.cluster.nodes.label(topology_key)
    return column.ids, len(column.values)
