"""Which pods a term matches: namespaces and labels together, as values that can be compared and indexed.

Equal terms are one value, so that all pods with the same term share the same counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from situate.core.model.labels import Selector
from situate.core.state.labelindex import Anchor

NamespaceLabels: TypeAlias = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods in any of these namespaces, or in a namespace that the namespace selector matches, with matching labels."""

    namespaces: tuple[str, ...]
    namespace_selector: Selector | None
    selector: Selector

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: NamespaceLabels) -> bool:
        if not self.selector.matches(labels):
            return False
        if namespace in self.namespaces:
            return True
        chooser = self.namespace_selector
        return chooser is not None and chooser.matches(namespace_labels.get(namespace, {}))

    @property
    def anchor(self) -> Anchor | None:
        """A label pair that every matching pod has, if the selector demands one."""
        for requirement in self.selector.requirements:
            if requirement.operator == "In" and len(requirement.values) == 1:
                return (requirement.key, requirement.values[0])
        return None


@dataclass(frozen=True, slots=True)
class Matcher:
    terms: tuple[PodTerm, ...]

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: NamespaceLabels) -> bool:
        return all(term.matches(namespace, labels, namespace_labels) for term in self.terms)

    @property
    def anchor(self) -> Anchor | None:
        for term in self.terms:
            if (found := term.anchor) is not None:
                return found
        return None


def pods_in(namespace: str, selector: Selector) -> Matcher:
    return Matcher((PodTerm((namespace,), None, selector),))
