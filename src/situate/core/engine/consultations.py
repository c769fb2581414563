"""What HTTP extenders are being asked, in which order, and what their answers leave.

The extenders that filter are asked one after another, each about the nodes that those before it left; then all that
score, at once. Extenders with a preemptVerb are asked one after another, too. Ignorable extenders come last.

An answer may only narrow. A node that an extender was not asked about is ignored, a score out of range counts for
nothing, and no pod is evicted that was not chosen here. If an extender fails, the pod is retried, unless the extender
is ignorable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from msgspec import Struct

from situate.core.changes import ExtenderSaid
from situate.core.config.types import Extender
from situate.core.contract import MAX_SCORE
from situate.core.effects import AskExtender, Victims
from situate.core.engine.actions import Ask
from situate.core.engine.extender_interest import ExtenderInterest, Verb, name_of, timeout_ms
from situate.core.model.pod import Pod
from situate.core.queue.queued_pod import QueuedPod, QueueState

MOST_SCORE: Final = 10
"""Extenders score 0..10."""
SCORE_SCALE: Final = MAX_SCORE // MOST_SCORE
MOST_WEIGHT: Final = (1 << 31) - 1
"""A larger weight counts as this: sums of scores must fit their column."""
ANSWER_LIMIT_MS: Final = 1_000
"""How long after an extender's own timeout a missing answer counts as a failure."""
LEFT_OUT: Final = "node(s) were left out by an extender"
"""The reason for a node that an extender leaves out without giving one."""


@dataclass(frozen=True, slots=True)
class NodeRefused:
    text: str
    eviction_helps: bool


@dataclass(eq=False, slots=True)
class Consultation:
    """A pod about which extenders are being asked."""

    entry: QueuedPod
    pod: Pod
    """As it was when the consultation began."""
    stage: Verb
    nodes: tuple[str, ...]
    """The nodes that are left, in node order; for evictions, the least harmful first."""
    asked_at: int
    """The event count when extenders were first asked about the pod: later events must not be missed."""
    nominated: bool = False
    """It is about the nominated node alone. If extenders refuse that, they are asked about the others."""
    refused: dict[str, NodeRefused] = field(default_factory=dict)
    """The nodes that extenders filtered out."""
    scores: dict[str, int] = field(default_factory=dict)
    """What extenders add to a node's score."""
    victims: dict[str, Victims] = field(default_factory=dict)
    """By node, the pods that would be evicted."""
    to_ask: list[int] = field(default_factory=list)
    """The extenders that are still to be asked, one after another."""
    open_asks: dict[int, int] = field(default_factory=dict)
    """The number of an unanswered question -> the extender."""

    @property
    def is_current(self) -> bool:
        """Whether the pod still waits for this, and is still what extenders were asked about."""
        entry, now, then = self.entry, self.entry.pod, self.pod
        return entry.state is QueueState.IN_FLIGHT and (
            now is then
            or (
                now.spec == then.spec
                and now.metadata.labels == then.metadata.labels
                and now.metadata.annotations == then.metadata.annotations
                and now.metadata.deletion_timestamp == then.metadata.deletion_timestamp
            )
        )


class Outcome(Struct, frozen=True):
    """How far a consultation has come.

    `asked`: these questions come next. `settled`: the nodes that are left, at least one; for evictions, what extenders
    agree to, maybe nothing. `refused`: no node is left. `failed`: an extender that is not ignorable failed. `outdated`:
    the pod is not what extenders were asked about any more.
    """

    consultation: Consultation
    kind: Literal["asked", "settled", "refused", "failed", "outdated"]
    asks: tuple[Ask, ...] = ()
    problem: str = ""


class Consultations:
    """All consultations. Their pods are in flight: neither active nor unschedulable."""

    def __init__(self, interest: ExtenderInterest) -> None:
        self._interest = interest
        self._by_pod: dict[str, Consultation] = {}
        self._by_ask: dict[int, Consultation] = {}
        self._asks = 0
        self._last_nodes: tuple[str, ...] = ()

    def begin(self, entry: QueuedPod, nodes: Sequence[str], asked_at: int, *, nominated: bool = False) -> Outcome:
        """Ask about the nodes that a pod fits."""
        asked_about = tuple(nodes)
        if asked_about == self._last_nodes:
            asked_about = self._last_nodes  # thousands of names, and thousands of pods that wait for an answer
        self._last_nodes = asked_about
        one = Consultation(entry, entry.pod, "filter", asked_about, asked_at, nominated)
        return self._start(one)

    def begin_evictions(
        self, entry: QueuedPod, victims: Sequence[Victims], asked_at: int, refused: dict[str, NodeRefused]
    ) -> Outcome:
        """Ask about nodes where evictions would make room, and their victims; the least harmful first."""
        nodes = tuple(one.node for one in victims)
        one = Consultation(entry, entry.pod, "preempt", nodes, asked_at, refused=refused)
        one.victims = {each.node: each for each in victims}
        return self._start(one)

    def _start(self, one: Consultation) -> Outcome:
        one.to_ask = self._interest.concerned(one.entry.kind, one.stage)
        self.forget(one.entry.key)
        self._by_pod[one.entry.key] = one
        return self._unless_over(self._go_on(one))

    def _unless_over(self, outcome: Outcome) -> Outcome:
        """Free the memory of a consultation that is over."""
        if outcome.kind != "asked":
            self.forget(outcome.consultation.entry.key)
        return outcome

    def forget(self, key: str) -> None:
        """Ignore the answers about this pod that are still to come."""
        one = self._by_pod.pop(key, None)
        if one is not None:
            for ask in one.open_asks:
                self._by_ask.pop(ask, None)

    def _ask(self, one: Consultation, extender: int) -> Ask:
        self._asks += 1
        one.open_asks[self._asks] = extender
        self._by_ask[self._asks] = one
        victims = tuple(one.victims[node] for node in one.nodes) if one.stage == "preempt" else ()
        effect = AskExtender(self._asks, extender, one.stage, one.entry.ref, one.nodes, victims)
        return Ask(one.entry, effect, timeout_ms(self._interest.extenders[extender]) + ANSWER_LIMIT_MS)

    def timed_out(self, ask: int) -> Outcome | None:
        one = self._by_ask.get(ask)
        if one is None:
            return None
        name = name_of(self._interest.extenders[one.open_asks[ask]])
        return self.answered(ExtenderSaid(ask, problem=f'extender "{name}" did not answer in time'))

    def answered(self, answer: ExtenderSaid) -> Outcome | None:
        """None if the question was answered already, timed out, or was about a pod that is gone."""
        one = self._by_ask.pop(answer.ask, None)
        if one is None:
            return None
        return self._unless_over(self._take_in(one, answer))

    def _take_in(self, one: Consultation, answer: ExtenderSaid) -> Outcome:
        extender = self._interest.extenders[one.open_asks.pop(answer.ask)]
        if not one.is_current:
            return Outcome(one, "outdated")
        if answer.problem:
            # As upstream: scores that do not come do not count.
            if one.stage != "prioritize" and not extender.ignorable:
                return Outcome(one, "failed", problem=answer.problem)
        elif one.stage == "filter":
            _narrow(one, answer)
        elif one.stage == "prioritize":
            _add_scores(one, extender, answer)
        else:
            _narrow_evictions(one, answer)
        return self._go_on(one)

    def _go_on(self, one: Consultation) -> Outcome:
        """Ask the next extender; if there is none, say what the answers leave."""
        if one.open_asks:
            return Outcome(one, "asked")
        if one.nodes and one.to_ask:
            return Outcome(one, "asked", (self._ask(one, one.to_ask.pop(0)),))
        if one.stage == "filter" and len(one.nodes) > 1:  # among one there is nothing to choose
            one.stage = "prioritize"
            scoring = self._interest.concerned(one.entry.kind, "prioritize")
            if scoring:
                return Outcome(one, "asked", tuple([self._ask(one, extender) for extender in scoring]))
        return Outcome(one, "settled" if one.nodes or one.stage == "preempt" else "refused")


def _narrow(one: Consultation, answer: ExtenderSaid) -> None:
    """A node stays if the extender left it, and gave no reason to refuse it."""
    why = {node: NodeRefused(text, eviction_helps=True) for node, text in answer.refused}
    why |= {node: NodeRefused(text, eviction_helps=False) for node, text in answer.refused_for_good}
    left = None if answer.nodes is None else dict.fromkeys(answer.nodes)
    kept = []
    for node in one.nodes:
        if node in why:
            one.refused[node] = why[node]
        elif left is not None and node not in left:
            one.refused[node] = NodeRefused(LEFT_OUT, eviction_helps=False)
        else:
            kept.append(node)
    one.nodes = tuple(kept)


def _add_scores(one: Consultation, extender: Extender, answer: ExtenderSaid) -> None:
    """A node that is scored twice counts once."""
    weight = min(extender.weight, MOST_WEIGHT) * SCORE_SCALE
    scores = dict(answer.scores)
    for node in one.nodes:
        score = scores.get(node, 0)
        if 0 < score <= MOST_SCORE:
            one.scores[node] = one.scores.get(node, 0) + score * weight


def _narrow_evictions(one: Consultation, answer: ExtenderSaid) -> None:
    """A node stays if the extender agrees to all victims there: without one of them there is no room."""
    agreed = {node: dict.fromkeys(uids) for node, uids in answer.victims}
    one.nodes = tuple(
        node for node in one.nodes if node in agreed and all(pod.uid in agreed[node] for pod in one.victims[node].pods)
    )
