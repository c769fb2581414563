"""Node selectors: terms over a node's labels and fields, and whether a node matches them.

A selector matches if any of its terms does; a term matches if all of its requirements do. An empty term matches
nothing, and so does one that Kubernetes cannot parse (an unknown operator, `Gt` of a word).
"""

from collections.abc import Iterable, Mapping

import msgspec

from situate.core.model.base import Int32, Model
from situate.core.model.labels import IN, NOT_IN, Requirement, SelectorError, requirement

METADATA_NAME = "metadata.name"  # the only field that matchFields may name


class NodeSelectorRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Model, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Model, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Model, frozen=True, kw_only=True):
    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class Term(msgspec.Struct, frozen=True, gc=False, order=True, cache_hash=True):
    """A parsed term: requirements on labels, and on fields (`In` or `NotIn`, one value each). Canonical order."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node with these labels and this name matches. An empty name skips the fields."""
        if not all(one.matches(labels) for one in self.labels):
            return False
        return not name or all(_field_matches(one, name) for one in self.fields)


def _field_matches(one: Requirement, name: str) -> bool:
    """A field that nodes do not have is empty."""
    value = name if one.key == METADATA_NAME else ""
    return (value == one.values[0]) == (one.operator == IN)


def parse_term(term: NodeSelectorTerm) -> Term | None:
    """The parsed term; None for an empty one, which matches nothing. SelectorError if Kubernetes cannot parse it."""
    if not term.match_expressions and not term.match_fields:
        return None
    labels = [requirement(one.key, one.operator, one.values) for one in term.match_expressions]
    fields = [_field_requirement(one) for one in term.match_fields]
    return Term(tuple(sorted(set(labels))), tuple(sorted(set(fields))))


def _field_requirement(one: NodeSelectorRequirement) -> Requirement:
    if one.operator not in (IN, NOT_IN):
        raise SelectorError(f'operator: Unsupported value: "{one.operator}": supported values: "In", "NotIn"')
    if len(one.values) != 1:
        raise SelectorError("values: Invalid value: must have one element")
    return Requirement(one.key, one.operator, one.values)


def parse_terms(terms: Iterable[NodeSelectorTerm]) -> tuple[Term, ...]:
    """The terms that can match something, in order, without empty and invalid ones."""
    found = []
    for term in terms:
        try:
            parsed = parse_term(term)
        except SelectorError:
            continue
        if parsed is not None:
            found.append(parsed)
    return tuple(found)


def matches(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Whether a node with these labels and this name matches; a selector without terms matches nothing."""
    return any(term.matches(labels, name) for term in parse_terms(selector.node_selector_terms))
