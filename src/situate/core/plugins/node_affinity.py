"""NodeAffinity: apply a pod's nodeSelector and node affinity.

The configuration may add an affinity that applies to every pod of the profile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import RULED_OUT, Codes, Reason, Refusal, Scores, Wake, WakeEvent
from situate.core.model.field_errors import child
from situate.core.model.labels import IN
from situate.core.model.node import Node
from situate.core.model.nodeselector import (
    METADATA_NAME,
    NodeSelector,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    parse_terms,
)
from situate.core.model.pod import NodeAffinitySpec as Rules
from situate.core.model.pod import PodSpec
from situate.core.plugins.support.affinity_validation import node_affinity_problems
from situate.core.plugins.support.arguments import PluginArgs
from situate.core.plugins.support.node_selectors import (
    constrains_nodes,
    node_selector_mask,
    required_affinity_mask,
    required_affinity_matches,
    selector_matches,
    term_mask,
)
from situate.core.plugins.support.normalize import Ranking, cached_scores, constant, ranked
from situate.core.state.classes import PodClass
from situate.core.state.columns import sealed
from situate.core.state.view import View

NOT_THE_PODS: Final = 1
NOT_ENFORCED: Final = 2
CONFLICT: Final = Refusal("pod affinity terms conflict")


class NodeAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    added_affinity: Rules | None = None

    def validate(self, path: str) -> list[str]:
        if self.added_affinity is None:
            return []
        return node_affinity_problems(child(path, "addedAffinity"), self.added_affinity)


@dataclass(frozen=True, slots=True)
class NodeAffinity:
    """Required terms refuse, preferred terms add their weight to the score."""

    added_affinity: Rules | None = None
    may_skip: bool = True
    """Whether a pod without preferences gets no score instead of 0. False where preScore is disabled."""
    rules_out: bool = True
    """Whether to rule out nodes that the pod does not name, not refuse them. False where preFilter is disabled."""

    name: ClassVar[str] = "NodeAffinity"
    reasons: ClassVar[tuple[Reason, ...]] = (
        Reason("node(s) didn't match Pod's node affinity/selector", eviction_helps=False),
        Reason("node(s) didn't match scheduler-enforced node affinity", eviction_helps=False),
    )
    wakes_on: ClassVar[frozenset[Wake]] = frozenset({Wake.NODE_ADDED, Wake.NODE_LABEL})

    @classmethod
    def from_args(cls, args: NodeAffinityArgs, points: frozenset[str]) -> NodeAffinity:
        return cls(args.added_affinity, may_skip="preScore" in points, rules_out="preFilter" in points)

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        """A node helps if it matches and did not match before."""
        if event.node is None:
            return True
        before = event.node_before
        return self._matches(pod, event.node) and (before is None or not self._matches(pod, before))

    def _matches(self, pod: PodClass, node: Node) -> bool:
        enforced = _required(self.added_affinity)
        return required_affinity_matches(pod.spec, node) and (enforced is None or selector_matches(enforced, node))

    def check(self, pod: PodClass, view: View) -> Codes | Refusal | None:
        enforced = _required(self.added_affinity)
        if enforced is None and not constrains_nodes(pod.spec):
            return None
        key = (self.name, "codes", enforced, self.rules_out, pod.affinity_key)
        verdict = view.memo(key, lambda whole: _verdict(pod, enforced, whole, rules_out=self.rules_out))
        return verdict[view.rows] if isinstance(verdict, np.ndarray) else verdict

    def score(self, pod: PodClass, view: View) -> Scores | None:
        weighted = _preferred(self.added_affinity) + _preferred(_rules(pod.spec))
        if not weighted:
            return None if self.may_skip else constant(0, view)
        return cached_scores((self.name, "weights", weighted), lambda whole: _weights(weighted, whole), view)


def _rules(spec: PodSpec) -> Rules | None:
    return None if spec.affinity is None else spec.affinity.node_affinity


def _required(rules: Rules | None) -> NodeSelector | None:
    return None if rules is None else rules.required_during_scheduling_ignored_during_execution


def _preferred(rules: Rules | None) -> tuple[PreferredSchedulingTerm, ...]:
    return () if rules is None else rules.preferred_during_scheduling_ignored_during_execution


def _verdict(pod: PodClass, enforced: NodeSelector | None, whole: View, *, rules_out: bool) -> Codes | Refusal | None:
    required = _required(_rules(pod.spec))
    names = None if required is None or not rules_out else named_nodes(required.node_selector_terms)
    if names is not None and not names:
        return CONFLICT
    mask = required_affinity_mask(pod, whole)
    codes: Codes = np.zeros(whole.size, np.uint8) if mask is None else np.multiply(~mask, NOT_THE_PODS, dtype=np.uint8)
    if enforced is not None:
        codes[~node_selector_mask(parse_terms(enforced.node_selector_terms), whole)] = NOT_ENFORCED
    if names is not None:
        _rule_out(codes, names, whole)
    # Empty rows must not count as refused nodes.
    np.multiply(codes, whole.present, out=codes)
    return sealed(codes) if codes.any() else None


def _rule_out(codes: Codes, names: tuple[str, ...], whole: View) -> None:
    rows = [row for row in map(whole.find, names) if row >= 0]
    kept = codes[rows]
    codes[:] = RULED_OUT
    codes[rows] = kept


def named_nodes(terms: tuple[NodeSelectorTerm, ...]) -> tuple[str, ...] | None:
    """The nodes that the terms name, if every term names some: no other node needs to be checked.

    None if some term names no node; empty if every term contradicts itself.
    """
    found: dict[str, None] = {}
    for term in terms:
        named = [one.values for one in term.match_fields if one.key == METADATA_NAME and one.operator == IN]
        if not named:
            return None
        found.update(dict.fromkeys(name for name in named[0] if all(name in values for values in named[1:])))
    return tuple(found) if terms else None


def _weights(weighted: tuple[PreferredSchedulingTerm, ...], whole: View) -> Ranking:
    """The sum, for each row, of the weights of the terms it matches."""
    weights = np.zeros(whole.size, np.int64)
    for preferred in weighted:
        if preferred.weight:
            for term in parse_terms((preferred.preference,)):
                weights += np.multiply(term_mask(term, whole), preferred.weight, dtype=np.int64)
    return ranked(weights, whole)
