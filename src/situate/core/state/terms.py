"""The (anti-)affinity terms that bound pods carry: for a new pod, which of them speak of it, and where.

Kubernetes asks every pod in the cluster about its terms. Here equal terms are one entry, with a count of its carriers
by topology domain, found by the labels they ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from situate.core.state.classes import AffinityTerm, LabelGroup, PodClass
from situate.core.state.columns import IdColumn, IntColumn
from situate.core.state.labelindex import LabelIndex
from situate.core.state.matching import NamespaceLabels


@dataclass(eq=False, slots=True)
class CarriedTerm:
    """A term and the classes of bound pods that carry it. A pod that lists a term twice carries it twice."""

    term: AffinityTerm
    classes: dict[PodClass, int] = field(default_factory=dict)
    domains: IdColumn | None = None
    counts: IntColumn | None = None
    """Carriers by domain of the term's topology key, with a last slot for no label; None until asked for."""
    version: int = 0

    def add(self, row: int, change: int) -> None:
        if self.counts is None or self.domains is None:
            return
        domain = self.domains[row]
        if domain >= 0:
            self.counts[domain] += change
            self.version += 1

    def forget_counts(self) -> None:
        self.counts = self.domains = None
        self.version += 1


class CarriedTerms:
    """Every distinct term that some bound pod carries."""

    __slots__ = ("_by_term", "_index", "version")

    def __init__(self) -> None:
        self._by_term: dict[AffinityTerm, CarriedTerm] = {}
        self._index: LabelIndex[CarriedTerm] = LabelIndex()
        self.version = 0
        """Moves when a term appears or disappears, not when its carriers move."""

    def __len__(self) -> int:
        return len(self._by_term)

    def values(self) -> list[CarriedTerm]:
        return list(self._by_term.values())

    def attach(self, pod_class: PodClass) -> None:
        """The class gets its first bound pod: from now on its terms are carried."""
        carried = []
        for term in pod_class.terms:
            entry = self._by_term.get(term)
            if entry is None:
                entry = self._by_term[term] = CarriedTerm(term)
                self._index.add(term.pods.anchor, entry)
                self.version += 1
            entry.classes[pod_class] = entry.classes.get(pod_class, 0) + 1
            carried.append(entry)
        pod_class.carried = tuple(carried)

    def detach(self, pod_class: PodClass) -> None:
        """The class lost its last bound pod."""
        for entry in pod_class.carried:
            entry.classes.pop(pod_class, None)
            if not entry.classes and self._by_term.get(entry.term) is entry:
                del self._by_term[entry.term]
                self._index.discard(entry.term.pods.anchor, entry)
                entry.forget_counts()
                self.version += 1
        pod_class.carried = ()

    def speaking_of(self, group: LabelGroup, namespaces: NamespaceLabels) -> Iterator[CarriedTerm]:
        """The carried terms that match pods of this group."""
        for entry in self._index.candidates(group.labels):
            if entry.term.pods.matches(group.namespace, group.labels, namespaces):
                yield entry

    def forget_counts(self) -> None:
        """Domains may have moved: count again when asked."""
        for entry in self._by_term.values():
            entry.forget_counts()


def counts_of(entry: CarriedTerm, domain_column: Callable[[str], tuple[IdColumn, int]]) -> IntColumn:
    """The carriers by domain, counted from the classes if that has not been done since domains moved."""
    if entry.counts is None:
        domains, size = domain_column(entry.term.topology_key)
        counts = np.zeros(size + 1, np.int64)
        for pod_class, times in entry.classes.items():
            rows = np.fromiter(pod_class.placed.keys(), np.intp, len(pod_class.placed))
            amounts = np.fromiter(pod_class.placed.values(), np.int64, len(pod_class.placed)) * times
            here = domains[rows]
            np.add.at(counts, here[here >= 0], amounts[here >= 0])
        entry.domains, entry.counts = domains, counts
    return entry.counts
