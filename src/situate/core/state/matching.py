"""Which pods a term matches: namespaces and labels together, as values that can be compared and indexed.

Equal terms are one value, so that all pods with the same term share the same counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from situate.core.model.labels import Selector
from situate.core.state.labelindex import Anchor

NamespaceLabels: TypeAlias = Mapping[str, Mapping[str, str]]


class PodTerm(Struct, frozen=True, cache_hash=True):
    """Pods in any of these namespaces, or in a namespace that the namespace selector matches, with matching labels."""

    namespaces: tuple[str, ...]
    namespace_selector: Selector | None
    selector: Selector
    only_existing: bool = False
    """The namespace selector matches no namespace that does not exist. Otherwise that has no labels."""

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: NamespaceLabels) -> bool:
        if not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        chooser = self.namespace_selector
        if chooser is None or (self.only_existing and namespace not in namespace_labels):
            return False
        return chooser.matches(namespace_labels.get(namespace, {}))

    @property
    def anchor(self) -> Anchor | None:
        """A label pair that every matching pod has, if the selector demands one."""
        for requirement in self.selector.requirements:
            if requirement.operator == "In" and len(requirement.values) == 1:
                return (requirement.key, requirement.values[0])
        return None

    @property
    def anchored_namespaces(self) -> tuple[str, ...]:
        """Namespaces in which every pod with the anchor's label matches, and no other pod anywhere; empty if it is not
        that simple."""
        requirements = self.selector.requirements
        if len(requirements) != 1 or self.namespace_selector is not None or self.selector.nothing:
            return ()
        return self.namespaces if self.anchor is not None else ()


class Matcher(Struct, frozen=True, cache_hash=True):
    terms: tuple[PodTerm, ...]

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: NamespaceLabels) -> bool:
        # A loop, not all(...): it runs for every pod, and a generator costs more than the comparison.
        for term in self.terms:  # noqa: SIM110
            if not term.matches(namespace, labels, namespace_labels):
                return False
        return True

    @property
    def anchor(self) -> Anchor | None:
        for term in self.terms:
            if (found := term.anchor) is not None:
                return found
        return None

    @property
    def anchored_namespaces(self) -> tuple[str, ...]:
        """As of its only term; empty if it has several."""
        return self.terms[0].anchored_namespaces if len(self.terms) == 1 else ()


def pods_in(namespace: str, selector: Selector) -> Matcher:
    return Matcher((PodTerm((namespace,), None, selector),))
