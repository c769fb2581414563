"""The (anti-)affinity terms that bound pods carry: which of them match a new pod, and where.

Kubernetes checks the terms of every pod in the cluster. Here equal terms are one entry, with a count of its carriers by
topology domain, indexed by the labels that they demand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from situate.core.state.classes import AffinityTerm, LabelGroup, PodClass, TermKind
from situate.core.state.columns import IdColumn, IntColumn, sealed
from situate.core.state.labelindex import LabelIndex
from situate.core.state.matching import NamespaceLabels
from situate.core.state.topology import add_up

COUNTED_BYTES: Final = 64 << 20
"""How many bytes of counts are kept at most. Those counted first go first, and are counted again when asked for."""

DomainsOf = Callable[[str], tuple[IdColumn, int]]
"""Topology key -> the domain of each row, and how many domains there are."""


@dataclass(eq=False, slots=True)
class CarriedTerm:
    """A term and the classes of bound pods that carry it. A pod that lists a term twice carries it twice."""

    term: AffinityTerm
    classes: dict[PodClass, int] = field(default_factory=dict)
    domains: IdColumn | None = None
    counts: IntColumn | None = None
    """Carriers by domain of the term's topology key, with a last slot for no label; None until asked for."""
    version: int = 0
    anchored_in: tuple[str, ...] = ()
    """Namespaces in which every pod with the anchor's label matches, and no other pod anywhere; empty if it is not that
    simple."""

    def add(self, row: int, change: int) -> None:
        # The version moves even where nothing is counted: a reader may hold earlier counts.
        if self.counts is None or self.domains is None:
            self.version += 1
            return
        domain = self.domains[row]
        if domain >= 0:
            self.counts[domain] += change
            self.version += 1

    def forget_counts(self) -> None:
        self.counts = self.domains = None
        self.version += 1


class CarriedTerms:
    __slots__ = ("_by_term", "_bytes", "_counted", "_index", "version")

    def __init__(self) -> None:
        self._by_term: dict[AffinityTerm, CarriedTerm] = {}
        self._index: dict[TermKind, LabelIndex[CarriedTerm]] = {}
        self._counted: dict[CarriedTerm, int] = {}
        """The terms that have counts, and how many bytes they take."""
        self._bytes = 0
        self.version = 0
        """Moves when a term appears or disappears, not when its carriers move."""

    def __len__(self) -> int:
        return len(self._by_term)

    def has_any(self, kinds: tuple[TermKind, ...]) -> bool:
        """Whether a term of one of these kinds may be carried."""
        for kind in kinds:  # noqa: SIM110 - a generator costs more than the question
            if kind in self._index:
                return True
        return False

    def values(self) -> list[CarriedTerm]:
        return list(self._by_term.values())

    def attach(self, pod_class: PodClass) -> None:
        """The class gets its first bound pod: from now on its terms are carried."""
        carried = []
        for term in pod_class.terms:
            entry = self._by_term.get(term)
            if entry is None:
                entry = self._by_term[term] = CarriedTerm(term, anchored_in=term.pods.anchored_namespaces)
                self._index.setdefault(term.kind, LabelIndex()).add(term.pods.anchor, entry)
                self.version += 1
            entry.classes[pod_class] = entry.classes.get(pod_class, 0) + 1
            carried.append(entry)
        pod_class.carried = tuple(carried)

    def detach(self, pod_class: PodClass) -> None:
        for entry in pod_class.carried:
            entry.classes.pop(pod_class, None)
            if not entry.classes and self._by_term.get(entry.term) is entry:
                del self._by_term[entry.term]
                self._index[entry.term.kind].discard(entry.term.pods.anchor, entry)
                self._uncount(entry)
                self.version += 1
        pod_class.carried = ()

    def speaking_of(
        self, group: LabelGroup, kinds: tuple[TermKind, ...], namespaces: NamespaceLabels
    ) -> list[CarriedTerm]:
        """The carried terms of these kinds that match pods of this group."""
        found: list[CarriedTerm] = []
        for kind in kinds:
            index = self._index.get(kind)
            if index is None:
                continue
            for entry in index.candidates(group.labels):
                if simple := entry.anchored_in:
                    if group.namespace in simple:
                        found.append(entry)
                elif entry.term.pods.matches(group.namespace, group.labels, namespaces):
                    found.append(entry)
        return found

    def counts(self, entry: CarriedTerm, domains_of: DomainsOf) -> IntColumn:
        """The carriers by domain, counted from the classes if domains changed since the last time."""
        if entry.counts is None:
            domains, size = domains_of(entry.term.topology_key)
            counts = np.zeros(size + 1, np.int64)
            for pod_class, times in entry.classes.items():
                add_up(counts, domains, pod_class.placed, times)
            entry.domains, entry.counts = domains, counts
            self._counted[entry] = counts.nbytes
            self._bytes += counts.nbytes
            while self._bytes > COUNTED_BYTES and len(self._counted) > 1:
                self._uncount(next(iter(self._counted)))
        return sealed(entry.counts)

    def forget_counts(self) -> None:
        """Domains may have changed: count again when asked."""
        for entry in list(self._counted):
            self._uncount(entry)

    def _uncount(self, entry: CarriedTerm) -> None:
        self._bytes -= self._counted.pop(entry, 0)
        entry.forget_counts()
