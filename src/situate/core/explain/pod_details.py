"""Details about other pods: affinity, anti-affinity, spread and ports, by domain and by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from situate.core.explain.detail import DETAILS, NAMED, VerdictDetail, detail, most_first
from situate.core.explain.formatting import counted, matcher_text, term_text
from situate.core.plugins.inter_pod_affinity import AFFINITY, ANTI_AFFINITY, InterPodAffinity, own_terms
from situate.core.plugins.pod_topology_spread import HardConstraint, own_plan
from situate.core.state.classes import PodClass, TermKind
from situate.core.state.columns import IdColumn, IntColumn
from situate.core.state.holders import port_holders
from situate.core.state.matching import Matcher
from situate.core.state.ports import conflicts
from situate.core.state.topology_counts import carried_terms, count_pods
from situate.core.state.view import View

LOOKED_AT: Final = 2_000
"""How many pods of a domain to check for names: thousands may not match."""


def hard_constraints_of(pod: PodClass, view: View) -> tuple[HardConstraint, ...]:
    """The pod's own hard constraints, without those of the configuration."""
    return own_plan(pod, view).hard if pod.spec.topology_spread_constraints else ()


def limit_of(constraint: HardConstraint, view: View) -> tuple[IntColumn, int]:
    """The number of matching pods by domain, and the maximum for the pod to be accepted."""
    counts = constraint.counted.counts(view)
    least = int(counts.take(constraint.domains).min()) if constraint.least is None else constraint.least
    return counts, constraint.slack + least


def spread_details(pod: PodClass, view: View, rows: IdColumn) -> list[VerdictDetail]:
    """By constraint and domain: the number of matching pods, and the limit."""
    found = []
    own = [one for one in pod.spec.topology_spread_constraints if one.when_unsatisfiable == "DoNotSchedule"]
    for own_constraint, constraint in zip(own, hard_constraints_of(pod, view), strict=False):
        key = constraint.counted.topology_key
        ids, values = view.label(key)
        counts, most = limit_of(constraint, view)
        whom = matcher_text(constraint.counted.matcher)
        domains = {values.names[at]: int(counts[at]) for at in constraint.domains.tolist()}
        least = min(domains.values(), default=0)
        here = ids[rows]
        if (here < 0).any():
            found.append(detail(view, rows[here < 0], f"no label {key}, which the spread counts by", topologyKey=key))
        for at in widest(here[counts.take(here) > most]):
            text = (
                f"{key}={values.names[at]} holds {counted(int(counts[at]), 'pod')} with {whom}, "
                f"the emptiest domain {least}: one more would exceed maxSkew {own_constraint.max_skew}"
            )
            values_shown = {
                "topologyKey": key,
                "domain": values.names[at],
                "pods": int(counts[at]),
                "maxSkew": own_constraint.max_skew,
            }
            found.append(detail(view, rows[here == at], text, **values_shown, domains=domains))
    return most_first(found)


def affinity_details(pod: PodClass, view: View, rows: IdColumn, text: str) -> list[VerdictDetail]:
    """By term and domain: the pods that conflict, or that are missing."""
    own = own_terms(pod, sees_no_labels=view.cluster.rules.namespace_selector_sees_no_labels)
    found: list[VerdictDetail] = []
    if text == InterPodAffinity.reasons[ANTI_AFFINITY - 1].text:
        for key, matcher in own.apart:
            counts = count_pods(view, matcher, key, counts_leaving=True)
            found += _crowded(view, rows, key, counts, f"anti-affinity to {matcher_text(matcher)}", _matching(matcher))
    elif text == InterPodAffinity.reasons[AFFINITY - 1].text:
        for key in own.near_keys if own.near is not None else ():
            found += _lonely(view, rows, key, own.near)
    else:
        for carried, counts in carried_terms(view, pod, TermKind.REQUIRED_ANTI_AFFINITY):
            term = carried.term
            who = f"pods there have anti-affinity to {term_text(term.pods)}, which this pod matches"
            found += _crowded(view, rows, term.topology_key, counts, who, _one_of(carried.classes))
    return most_first(found)


PodPredicate = Callable[[View, PodClass], bool]


def _matching(matcher: Matcher) -> PodPredicate:
    return lambda view, kind: matcher.matches(kind.namespace, kind.labels, view.namespace_labels)


def _one_of(classes: Mapping[PodClass, int]) -> PodPredicate:
    return lambda _, kind: kind in classes


def _crowded(
    view: View, rows: IdColumn, key: str, counts: IntColumn, what: str, matches: PodPredicate
) -> list[VerdictDetail]:
    ids, values = view.label(key)
    here = ids[rows]
    found = []
    for at in widest(here[counts.take(here) > 0]):
        names = _named(view, np.flatnonzero(ids == at), matches)
        text = f"{key}={values.names[at]}: {what}: {_some(names, int(counts[at]))}"
        values_shown = {"topologyKey": key, "domain": values.names[at], "pods": int(counts[at]), "named": names}
        found.append(detail(view, rows[here == at], text, **values_shown))
    return found


def widest(domains: IdColumn) -> list[int]:
    """The domains with the most of these rows, at most DETAILS."""
    counts = np.bincount(domains[domains >= 0])
    return [int(at) for at in np.argsort(-counts, kind="stable")[:DETAILS] if counts[at]]


def _lonely(view: View, rows: IdColumn, key: str, near: Matcher | None) -> list[VerdictDetail]:
    if near is None:
        return []
    ids, values = view.label(key)
    counts = count_pods(view, near, key, counts_leaving=True)
    alone = rows[counts.take(ids[rows]) <= 0]
    if not len(alone):
        return []
    where = {values.names[at]: int(counts[at]) for at in np.flatnonzero(counts[:-1]).tolist()}
    elsewhere = ", ".join(f"{key}={name} has {count}" for name, count in list(where.items())[:NAMED])
    text = f"affinity to {matcher_text(near)} by {key}: none there; {elsewhere or 'none anywhere'}"
    return [detail(view, alone, text, topologyKey=key, domains=where)]


def _named(view: View, rows: IdColumn, matches: PodPredicate) -> list[str]:
    """Some of the pods on these rows that a term matches."""
    pods, names, looked = view.cluster.pods, [], 0
    for row in rows.tolist():
        for pod in view.pod_rows_on(row):
            looked += 1
            if matches(view, pods.kind(pod)):
                names.append(pods.keys[pod])
            if len(names) >= NAMED or looked >= LOOKED_AT:
                return names
    return names


def _some(names: list[str], count: int) -> str:
    more = count - len(names)
    if not names:
        return counted(count, "pod")
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def port_details(pod: PodClass, view: View, rows: IdColumn) -> list[VerdictDetail]:
    """By port: the nodes where it is in use, and the pods that use it on the first."""
    found = []
    for port in pod.host_ports:
        holders = port_holders(view, port)
        taken = np.array([row for row in rows.tolist() if conflicts(port.ip, holders.get(row, ()))], np.intp)
        if not len(taken):
            continue
        first = int(taken[0])
        pods = view.cluster.pods
        who = [
            pods.keys[one]
            for one in view.pod_rows_on(first)
            if any(
                (held.protocol, held.port) == (port.protocol, port.port) and conflicts(port.ip, (held.ip,))
                for held in pods.kind(one).host_ports
            )
        ]
        text = f"port {port.port}/{port.protocol} is taken: on {view.names[first]} by {_some(who[:NAMED], len(who))}"
        found.append(detail(view, taken, text, port=port.port, protocol=port.protocol, holders=who))
    return most_first(found)
