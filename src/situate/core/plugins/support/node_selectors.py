"""Which nodes a node selector matches, over all rows at once.

A requirement is evaluated once for each value of the label, and the results are indexed by row. NodeAffinity,
PodTopologySpread and the volume plugins use this.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from situate.core.model.labels import DOES_NOT_EXIST, EXISTS, IN, NOT_IN, Requirement
from situate.core.model.node import Node
from situate.core.model.nodeselector import METADATA_NAME, NodeSelector, Term, parse_terms
from situate.core.model.pod import PodSpec
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask, sealed
from situate.core.state.view import View

REQUIRED_AFFINITY: Final = "NodeAffinity/required"

PARSED_SELECTORS: Final = 4_096
"""How many parsed node selectors are cached, to evaluate them on single nodes."""


def node_selector_mask(terms: tuple[Term, ...], view: View) -> Mask:
    """The rows that match any of the terms; none if there are no terms."""
    if not terms:
        return np.zeros(view.size, np.bool_)
    mask = term_mask(terms[0], view)
    for term in terms[1:]:
        mask |= term_mask(term, view)
    return mask


def required_affinity_mask(pod: PodClass, view: View) -> Mask | None:
    """The rows that the pod's nodeSelector and required node affinity allow; None if it has neither.

    Over all rows of the cluster, even where the view is narrowed: `mask[view.rows]` is the part it shows.
    """
    if not constrains_nodes(pod.spec):
        return None
    return view.memo((REQUIRED_AFFINITY, pod.affinity_key), lambda whole: sealed(_required(pod.spec, whole)))


def constrains_nodes(spec: PodSpec) -> bool:
    """Whether the pod has a nodeSelector or a required node affinity."""
    if spec.node_selector:
        return True
    affinity = spec.affinity
    return (
        affinity is not None
        and affinity.node_affinity is not None
        and affinity.node_affinity.required_during_scheduling_ignored_during_execution is not None
    )


def required_affinity_matches(spec: PodSpec, node: Node) -> bool:
    """Whether the pod's nodeSelector and required node affinity allow this node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or selector_matches(required, node)


def selector_matches(selector: NodeSelector, node: Node) -> bool:
    """Whether a node matches any of the terms."""
    return any(term.matches(node.metadata.labels, node.metadata.name) for term in _parsed(selector))


@lru_cache(maxsize=PARSED_SELECTORS)
def _parsed(selector: NodeSelector) -> tuple[Term, ...]:
    return parse_terms(selector.node_selector_terms)


def _required(spec: PodSpec, view: View) -> Mask:
    # The API server has validated the labels of a nodeSelector; kube-scheduler does not check them again.
    chosen = Term(tuple(Requirement(key, IN, (value,)) for key, value in spec.node_selector.items()))
    mask = term_mask(chosen, view)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is not None and affinity.required_during_scheduling_ignored_during_execution is not None:
        terms = affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
        mask &= node_selector_mask(parse_terms(terms), view)
    return mask


def term_mask(term: Term, view: View) -> Mask:
    """The rows that meet every requirement of a term. The caller may write to the array."""
    mask: Mask | None = None
    for requirement in term.labels:
        met = _label_mask(requirement, view)
        mask = met if mask is None else np.logical_and(mask, met, out=mask)
    for requirement in term.fields:
        met = _field_mask(requirement, view)
        mask = met if mask is None else np.logical_and(mask, met, out=mask)
    return np.ones(view.size, np.bool_) if mask is None else mask


def _label_mask(requirement: Requirement, view: View) -> Mask:
    ids, values = view.label(requirement.key)
    operator = requirement.operator
    if operator == EXISTS:
        return ids >= 0
    if operator == DOES_NOT_EXIST:
        return ids < 0
    if operator in (IN, NOT_IN):
        wanted = [at for at in map(values.find, requirement.values) if at >= 0]
        if len(wanted) == 1:
            return np.equal(ids, wanted[0]) if operator == IN else np.not_equal(ids, wanted[0])
        met = np.full(len(values) + 1, operator == NOT_IN)
        met[wanted] = operator == IN
        return met.take(ids)
    key = requirement.key
    met = np.array([*(requirement.matches({key: value}) for value in values.names), False])
    return met.take(ids)


def _field_mask(requirement: Requirement, view: View) -> Mask:
    """A node has one field, its name; any other is empty."""
    wanted = requirement.operator == IN
    value = requirement.values[0]
    if requirement.key != METADATA_NAME:
        return np.full(view.size, (value == "") == wanted)
    mask = np.full(view.size, not wanted)
    row = view.find(value)
    if row >= 0:
        mask[row] = wanted
    return mask
