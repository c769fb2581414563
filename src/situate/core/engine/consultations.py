"""What HTTP extenders are being asked: whom, in which order, and what their answers leave.

Filters are asked one after another, each about the nodes that the ones before it left; then all that score, at once.
Who has a say on evictions is asked one after another, too. Extenders that may be ignored come last.

An answer may only narrow. A node that was not asked about is passed over, a score out of range counts for nothing, and
nobody is evicted who was not chosen here. An extender that fails costs its pods a retry, unless it may be ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from situate.core.changes import ExtenderSaid, Millis
from situate.core.config.resolve import EXTENDER_TIMEOUT
from situate.core.config.types import Extender
from situate.core.contract import MAX_SCORE
from situate.core.effects import AskExtender, Victims
from situate.core.model.pod import Pod
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.classes import PodClass

MOST_SCORE: Final = 10
"""Extenders score 0..10."""
SCORE_SCALE: Final = MAX_SCORE // MOST_SCORE
MOST_WEIGHT: Final = (1 << 31) - 1
"""A larger weight counts as this: sums of scores must fit their column."""
ANSWER_LIMIT_MS: Final = 1_000
"""How long after an extender's own timeout its silence is taken for a failure."""
NANOS_PER_MS: Final = 1_000_000
LEFT_OUT: Final = "node(s) were left out by an extender"
"""Said of a node that an extender does not take, and of which it does not say why."""

Verb: TypeAlias = Literal["filter", "prioritize", "preempt"]


@dataclass(frozen=True, slots=True)
class NodeRefused:
    """An extender refused a node."""

    text: str
    eviction_helps: bool


@dataclass(eq=False, slots=True)
class Consultation:
    """A pod about which extenders are being asked."""

    entry: QueuedPod
    pod: Pod
    """As it was when the asking began."""
    stage: Verb
    nodes: tuple[str, ...]
    """The nodes that are left, in node order; when it is about evictions, the least harmful first."""
    nominated: bool = False
    """It is about the one node that is held for the pod; the others are looked at if that is refused."""
    refused: dict[str, NodeRefused] = field(default_factory=dict)
    """The nodes that extenders refused to filter through."""
    scores: dict[str, int] = field(default_factory=dict)
    """What extenders add to a node's score."""
    victims: dict[str, Victims] = field(default_factory=dict)
    """By node, who would be evicted."""
    to_ask: list[int] = field(default_factory=list)
    """The extenders that are still to be asked, one after another."""
    open_asks: dict[int, int] = field(default_factory=dict)
    """The number of an ask that is not answered -> the extender."""

    @property
    def is_current(self) -> bool:
        """Whether the pod still waits for this, and is still what was asked about."""
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


class Outcome(Protocol):
    """What an asking comes to, carried out by whoever began it."""

    def settled(self, asking: Consultation) -> None:
        """These nodes are left, at least one. Of evictions: this is what extenders agree to, maybe nothing."""

    def refused(self, asking: Consultation) -> None:
        """Extenders left no node."""

    def failed(self, asking: Consultation, problem: str) -> None:
        """An extender that may not be ignored failed."""

    def outdated(self, asking: Consultation) -> None:
        """The pod is not what was asked about any more."""

    def ask(self, effect: AskExtender, within_ms: Millis) -> None:
        """Have an extender asked, and say `timed_out` if no answer has come within this time."""


class Consultations:
    """All askings under way. The pods concerned are neither ready nor parked meanwhile."""

    def __init__(self, extenders: Sequence[Extender], outcome: Outcome) -> None:
        self._extenders = extenders
        self._order = sorted(range(len(extenders)), key=lambda at: extenders[at].ignorable)
        self._managed = [{resource.name: None for resource in one.managed_resources} for one in extenders]
        self._outcome = outcome
        self._by_pod: dict[str, Consultation] = {}
        self._by_ask: dict[int, Consultation] = {}
        self._asks = 0
        self._last_nodes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._by_pod)

    # -- who has a say -------------------------------------------------------------------------------------------

    def concerned(self, pod: PodClass, verb: Verb) -> list[int]:
        """The extenders that have a say on a pod, in the order in which they are asked."""
        return [at for at in self._order if verb_of(self._extenders[at], verb) and self._interested(at, pod)]

    def has_say(self, pod: PodClass) -> bool:
        """Whether any extender has a say on nodes for a pod."""
        return bool(self._order) and any(
            (self._extenders[at].filter_verb or self._extenders[at].prioritize_verb) and self._interested(at, pod)
            for at in self._order
        )

    def binder(self, pod: PodClass) -> int | None:
        """The extender that binds a pod, if one does."""
        if not self._order:
            return None
        return next((at for at in self._order if self._extenders[at].bind_verb and self._interested(at, pod)), None)

    def _interested(self, at: int, pod: PodClass) -> bool:
        """An extender that manages resources is asked only about pods that ask for one of them."""
        managed = self._managed[at]
        return not managed or any(
            name in managed
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for name in (*container.resources.requests, *container.resources.limits)
        )

    # -- asking --------------------------------------------------------------------------------------------------

    def begin(self, entry: QueuedPod, nodes: Sequence[str], *, nominated: bool = False) -> None:
        """Ask about the nodes that a pod fits."""
        asked_about = tuple(nodes)
        if asked_about == self._last_nodes:
            asked_about = self._last_nodes  # thousands of names, and thousands of pods that wait for an answer
        self._last_nodes = asked_about
        asking = Consultation(entry, entry.pod, "filter", asked_about, nominated)
        asking.to_ask = self.concerned(entry.kind, "filter")
        self._start(asking)

    def begin_evictions(self, entry: QueuedPod, victims: Sequence[Victims], refused: dict[str, NodeRefused]) -> None:
        """Ask about the nodes where room could be made, and who would have to leave; the least harmful first."""
        asking = Consultation(entry, entry.pod, "preempt", tuple(one.node for one in victims), refused=refused)
        asking.victims = {one.node: one for one in victims}
        asking.to_ask = self.concerned(entry.kind, "preempt")
        self._start(asking)

    def _start(self, asking: Consultation) -> None:
        self.forget(asking.entry.key)
        self._by_pod[asking.entry.key] = asking
        self._go_on(asking)

    def forget(self, key: str) -> None:
        """Answers about this pod are old news."""
        asking = self._by_pod.pop(key, None)
        if asking is not None:
            for ask in asking.open_asks:
                self._by_ask.pop(ask, None)

    def _ask(self, asking: Consultation, extender: int) -> None:
        self._asks += 1
        asking.open_asks[self._asks] = extender
        self._by_ask[self._asks] = asking
        victims = tuple(asking.victims[node] for node in asking.nodes) if asking.stage == "preempt" else ()
        effect = AskExtender(self._asks, extender, asking.stage, asking.entry.ref, asking.nodes, victims)
        self._outcome.ask(effect, timeout_ms(self._extenders[extender]) + ANSWER_LIMIT_MS)

    # -- hearing -------------------------------------------------------------------------------------------------

    def timed_out(self, ask: int) -> None:
        asking = self._by_ask.get(ask)
        if asking is not None:
            name = name_of(self._extenders[asking.open_asks[ask]])
            self.answered(ExtenderSaid(ask, problem=f'extender "{name}" did not answer in time'))

    def answered(self, answer: ExtenderSaid) -> None:
        asking = self._by_ask.pop(answer.ask, None)
        if asking is None:
            return  # answered already, timed out, or about a pod that is gone
        extender = self._extenders[asking.open_asks.pop(answer.ask)]
        if not asking.is_current:
            self.forget(asking.entry.key)
            self._outcome.outdated(asking)
            return
        if answer.problem:
            # As upstream: scores that do not come do not count.
            if asking.stage != "prioritize" and not extender.ignorable:
                self.forget(asking.entry.key)
                self._outcome.failed(asking, answer.problem)
                return
        elif asking.stage == "filter":
            _narrow(asking, answer)
        elif asking.stage == "prioritize":
            _add_scores(asking, extender, answer)
        else:
            _narrow_evictions(asking, answer)
        self._go_on(asking)

    def _go_on(self, asking: Consultation) -> None:
        """Ask whoever is next; when nobody is, say what it came to."""
        if asking.open_asks:
            return
        if asking.nodes and asking.to_ask:
            self._ask(asking, asking.to_ask.pop(0))
            return
        if asking.stage == "filter" and len(asking.nodes) > 1:
            # Among one there is nothing to choose.
            asking.stage = "prioritize"
            for extender in self.concerned(asking.entry.kind, "prioritize"):
                self._ask(asking, extender)
            if asking.open_asks:
                return
        self.forget(asking.entry.key)
        if asking.nodes or asking.stage == "preempt":
            self._outcome.settled(asking)
        else:
            self._outcome.refused(asking)


def _narrow(asking: Consultation, answer: ExtenderSaid) -> None:
    """A node stays if it is among those that the extender left, and it did not say why it refuses it."""
    why = {node: NodeRefused(text, eviction_helps=True) for node, text in answer.refused}
    why |= {node: NodeRefused(text, eviction_helps=False) for node, text in answer.refused_for_good}
    left = None if answer.nodes is None else dict.fromkeys(answer.nodes)
    kept = []
    for node in asking.nodes:
        if node in why:
            asking.refused[node] = why[node]
        elif left is not None and node not in left:
            asking.refused[node] = NodeRefused(LEFT_OUT, eviction_helps=False)
        else:
            kept.append(node)
    asking.nodes = tuple(kept)


def _add_scores(asking: Consultation, extender: Extender, answer: ExtenderSaid) -> None:
    """What is said of a node twice counts once."""
    weight = min(extender.weight, MOST_WEIGHT) * SCORE_SCALE
    scores = dict(answer.scores)
    for node in asking.nodes:
        score = scores.get(node, 0)
        if 0 < score <= MOST_SCORE:
            asking.scores[node] = asking.scores.get(node, 0) + score * weight


def _narrow_evictions(asking: Consultation, answer: ExtenderSaid) -> None:
    """A node stays if the extender lets all go that must: without one of them there is no room."""
    agreed = {node: dict.fromkeys(uids) for node, uids in answer.victims}
    asking.nodes = tuple(
        node
        for node in asking.nodes
        if node in agreed and all(pod.uid in agreed[node] for pod in asking.victims[node].pods)
    )


def verb_of(extender: Extender, verb: Verb) -> str:
    """What is added to the extender's address to ask this; empty if it has no say."""
    match verb:
        case "filter":
            return extender.filter_verb
        case "prioritize":
            return extender.prioritize_verb
        case "preempt":
            return extender.preempt_verb


def name_of(extender: Extender) -> str:
    """Its address, without what should not be shown."""
    scheme, separator, rest = extender.url_prefix.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def timeout_ms(extender: Extender) -> Millis:
    """How long one call may take."""
    timeout = extender.http_timeout if extender.http_timeout > 0 else EXTENDER_TIMEOUT
    return max(1, timeout // NANOS_PER_MS)
