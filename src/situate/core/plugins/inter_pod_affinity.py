"""InterPodAffinity: affinity and anti-affinity between the pod and bound pods, in both directions.

Refuses nodes by the required terms of the pod itself and by the required anti-affinity of bound pods. Scores nodes by
the preferred terms of both, and by the required affinity of bound pods. It counts pods by domain of a topology key,
over all nodes, including pods that are being deleted.

It does not read matchLabelKeys and mismatchLabelKeys: the API server has written them into the term's selector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
from msgspec import Struct

from situate.core.contract import MAX_SCORE, Codes, DomainScores, Reason, Scores, Wake, WakeEvent
from situate.core.model.base import Int32
from situate.core.model.field_errors import child
from situate.core.plugins.support.affinity_hints import affinity_hint, for_pending_pod
from situate.core.plugins.support.arguments import PluginArgs, range_problems
from situate.core.plugins.support.domains import in_row_order
from situate.core.plugins.support.sparse_affinity import SparseSums, each_once
from situate.core.state.classes import AffinityTerm, PodClass, TermKind, compiled_once
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.matching import Matcher, PodTerm
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology_counts import carried_entries, carried_terms, count_pods, matching_classes
from situate.core.state.view import View
from situate.core.versions import KubernetesRules

EXISTING_ANTI_AFFINITY: Final = 1
ANTI_AFFINITY: Final = 2
AFFINITY: Final = 3
"""Kubernetes reports the first failure of affinity, anti-affinity, existing anti-affinity. Here that is the highest
code, so the maximum joins the codes of several terms."""

NAME: Final = "InterPodAffinity"

PREFERRED: Final = (TermKind.PREFERRED_AFFINITY, TermKind.PREFERRED_ANTI_AFFINITY)
SCORED: Final = (TermKind.REQUIRED_AFFINITY, *PREFERRED)


class InterPodAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def validate(self, path: str) -> list[str]:
        return range_problems(child(path, "hardPodAffinityWeight"), self.hard_pod_affinity_weight, 0, 100)


class OwnTerms(Struct, frozen=True):
    """The terms of a pending pod, compiled."""

    near: Matcher | None
    """Matches the pods that match every required affinity term; only those count for any of these terms."""
    near_keys: tuple[str, ...]
    """The topology keys of those terms, each once."""
    apart: tuple[tuple[str, Matcher], ...]
    """For each required anti-affinity term, the topology key and its matcher."""
    preferred: tuple[tuple[str, Matcher, int], ...]
    """For each preferred term, the topology key, its matcher and its weight: negative for anti-affinity."""


NO_TERMS: Final = OwnTerms(None, (), (), ())


@dataclass(frozen=True, slots=True)
class InterPodAffinity:
    hard_pod_affinity_weight: int = 1
    """The weight of a bound pod's required affinity term in the score."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Do not score a pod without preferences of its own. If it has some, bound pods' terms count too."""
    sees_no_labels: bool = True
    """A pending pod's namespaceSelector is evaluated again, on no labels: see `for_pending_pod`."""

    name: ClassVar[str] = NAME
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't satisfy existing pods anti-affinity rules", eviction_helps=True),
        Reason("node(s) didn't match pod anti-affinity rules", eviction_helps=True),
        Reason("node(s) didn't match pod affinity rules", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset(
        {
            Wake.POD_ADDED,
            Wake.POD_LABEL,
            Wake.POD_DELETED,
            Wake.NODE_ADDED,
            Wake.NODE_LABEL,
            Wake.NAMESPACE_LABEL,
        }
    )

    @classmethod
    def from_args(cls, args: InterPodAffinityArgs, points: frozenset[str]) -> InterPodAffinity:
        return cls(args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods)

    def with_rules(self, rules: KubernetesRules) -> InterPodAffinity:
        return replace(self, sees_no_labels=rules.namespace_selector_sees_no_labels)

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return affinity_hint(pod, event)

    def check(self, pod: PodClass, view: View) -> Codes | None:
        existing = carried_terms(view, pod, TermKind.REQUIRED_ANTI_AFFINITY)
        own = self._own_terms(pod)
        if not existing and not own.apart and own.near is None:
            return None
        codes: Codes | None = None
        for carried, counts in existing:
            codes = _refuse(codes, _at_rows(view, carried.term.topology_key, counts) > 0, EXISTING_ANTI_AFFINITY)
        for key, matcher in own.apart:
            counts = count_pods(view, matcher, key, counts_leaving=True)
            codes = _refuse(codes, _at_rows(view, key, counts) > 0, ANTI_AFFINITY)
        if own.near is not None:
            codes = _refuse(codes, _not_near(pod, view, own.near, own.near_keys), AFFINITY)
        return codes

    def score(self, pod: PodClass, view: View) -> Scores | None:
        scores = self.brief_scores(pod, view)
        return scores.by_node(view) if isinstance(scores, DomainScores) else scores

    def brief_scores(self, pod: PodClass, view: View) -> DomainScores | Scores | None:
        own = self._own_terms(pod)
        if self.ignore_preferred_terms_of_existing_pods and not own.preferred:
            return None
        if view.once and view.is_plain:
            carried_here = carried_entries(view, pod, *self._scored_kinds())
            if not carried_here and not own.preferred:
                return None
            few = self._sparse_sums(carried_here, own, view)
            if few is not None:
                return few.scores(view)
        weighed = [
            (key, count_pods(view, matcher, key, counts_leaving=True), weight) for key, matcher, weight in own.preferred
        ]
        for carried, counts in carried_terms(view, pod, *self._scored_kinds()):
            weighed.append((carried.term.topology_key, counts, self._weight(carried.term)))
        if not weighed:
            return None
        sums = _sums(view, weighed)
        low, high = _range(sums, view.feasible)
        if low < high:
            return _normalised(sums, low, high)
        # Kubernetes skips scoring only if no term matched any pod, which differs from a sum of 0.
        return np.zeros(view.size, np.int64) if any(counts.any() for _, counts, _ in weighed) else None

    def _sparse_sums(self, carried: Sequence[CarriedTerm], own: OwnTerms, view: View) -> SparseSums | None:
        """The sums, if few pods make them up and they need not be kept."""
        sums = SparseSums()
        for key, matcher, weight in own.preferred:
            classes = matching_classes(view, matcher)
            if classes is None or (classes and not sums.add(view, key, each_once(classes), weight)):
                return None
        for entry in carried:
            if not sums.add(view, entry.term.topology_key, entry.classes, self._weight(entry.term)):
                return None
        return sums

    def _own_terms(self, pod: PodClass) -> OwnTerms:
        return own_terms(pod, sees_no_labels=self.sees_no_labels) if pod.terms else NO_TERMS

    def _scored_kinds(self) -> tuple[TermKind, ...]:
        return SCORED if self.hard_pod_affinity_weight > 0 else PREFERRED

    def _weight(self, term: AffinityTerm) -> int:
        if term.kind is TermKind.REQUIRED_AFFINITY:
            return self.hard_pod_affinity_weight
        return _signed(term)


# -- the pod's own terms ---------------------------------------------------------------------------------------------


def own_terms(pod: PodClass, *, sees_no_labels: bool) -> OwnTerms:
    """The pod's own terms, compiled once for all pods of its class."""
    compile_terms = _compile_seeing_no_labels if sees_no_labels else _compile
    return compiled_once(pod, compile_terms, compile_terms)


def _compile_seeing_no_labels(pod: PodClass) -> OwnTerms:
    return _compile(pod, sees_no_labels=True)


def _compile(pod: PodClass, *, sees_no_labels: bool = False) -> OwnTerms:
    near: list[AffinityTerm] = []
    near_pods: list[PodTerm] = []
    apart: list[tuple[str, Matcher]] = []
    preferred: list[tuple[str, Matcher, int]] = []
    for term in pod.terms:
        pods = for_pending_pod(term.pods, sees_no_labels=sees_no_labels)
        if term.kind is TermKind.REQUIRED_AFFINITY:
            near.append(term)
            near_pods.append(pods)
        elif term.kind is TermKind.REQUIRED_ANTI_AFFINITY:
            apart.append((term.topology_key, Matcher((pods,))))
        else:
            preferred.append((term.topology_key, Matcher((pods,)), _signed(term)))
    return OwnTerms(
        near=Matcher(tuple(near_pods)) if near else None,
        near_keys=tuple(dict.fromkeys(term.topology_key for term in near)) if near else (),
        apart=tuple(apart),
        preferred=tuple(preferred),
    )


def _signed(term: AffinityTerm) -> int:
    return -term.weight if term.kind is TermKind.PREFERRED_ANTI_AFFINITY else term.weight


# -- by row ----------------------------------------------------------------------------------------------------------


def _at_rows(view: View, topology_key: str, table: IntColumn) -> IntColumn:
    """Index a table by domain with each row; rows without the label use the last slot."""
    if table.size == view.size + 1 and in_row_order(view, topology_key):
        return table[:-1]
    ids, _ = view.label(topology_key)
    return table.take(ids)


def _refuse(codes: Codes | None, refused: Mask, code: int) -> Codes:
    """Join the codes so far with one more reason. Overwrites `refused`."""
    found = refused.view(np.uint8)
    if code != 1:
        np.multiply(found, code, out=found)
    return found if codes is None else np.maximum(codes, found, out=codes)


def _not_near(pod: PodClass, view: View, near: Matcher, keys: tuple[str, ...]) -> Mask:
    """The rows where some key's domain has no matching pod, or that lack one of the labels."""
    tallies = [(key, count_pods(view, near, key, counts_leaving=True)) for key in keys]
    if not any(counts.any() for _, counts in tallies) and near.matches(
        pod.namespace, pod.labels, view.namespace_labels
    ):
        # The first pod of a group with affinity to itself may go anywhere that has all the labels.
        lacking = view.memo((NAME, "lacks a label", keys), lambda whole: _lacking(whole, keys))
        return lacking[view.rows].copy()
    alone = np.zeros(view.size, np.bool_)
    for key, counts in tallies:
        alone |= _at_rows(view, key, counts) <= 0
    return alone


def _lacking(whole: View, keys: tuple[str, ...]) -> Mask:
    """The rows without one of these labels."""
    lacking = np.zeros(whole.size, np.bool_)
    for key in keys:
        ids, _ = whole.label(key)
        lacking |= ids < 0
    return lacking


# -- scoring ---------------------------------------------------------------------------------------------------------


def _sums(view: View, weighed: list[tuple[str, IntColumn, int]]) -> IntColumn:
    """Weight times count, summed by row: first by domain, as there are often few, then over the topology keys."""
    tables: dict[str, IntColumn] = {}
    for key, counts, weight in weighed:
        worth = counts if weight == 1 else counts * weight
        tables[key] = tables[key] + worth if key in tables else worth
    sums: IntColumn | None = None
    for key, table in tables.items():
        here = _at_rows(view, key, table)
        sums = here if sums is None else sums + here
    if sums is None:
        raise ValueError("there is nothing to sum")
    return sums


def _range(sums: IntColumn, feasible: Mask) -> tuple[int, int]:
    """The lowest and highest sum of a feasible node; equal if no node is feasible."""
    if np.count_nonzero(feasible) < feasible.size:
        sums = sums[feasible]
    if not sums.size:
        return 0, 0
    return int(np.minimum.reduce(sums)), int(np.maximum.reduce(sums))


def _normalised(sums: IntColumn, low: int, high: int) -> Scores:
    """100 * ((sum - low) / (high - low)) in float64, in this order, truncated: as Kubernetes computes it."""
    share = (sums - low if low else sums).astype(np.float64)
    np.divide(share, float(high - low), out=share)
    np.multiply(share, float(MAX_SCORE), out=share)
    return share.astype(np.int64)
