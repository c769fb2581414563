"""The calls of a scheduler to its extenders and their answers, tracked independently to check the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from situate.core.changes import ExtenderSaid, Millis, PodRef
from situate.core.config.types import Extender
from situate.core.effects import AskExtender
from situate.core.engine.consultations import ANSWER_LIMIT_MS
from situate.core.engine.extender_interest import Verb, timeout_ms, verb_of
from situate.core.model.pod import Pod

Takes: TypeAlias = Callable[[Pod, str, Sequence[int]], bool]
"""Whether these extenders, by index in the configuration, would take a node for a pod."""


@dataclass(slots=True)
class _About:
    """The answers about one pod so far."""

    nodes: tuple[str, ...]
    """The nodes that are left."""
    victims: dict[str, dict[str, None]] = field(default_factory=dict)
    """The uids of the possible victims, by node."""


class ExtenderCalls:
    """By the pod's uid. An extender's answer may only narrow the candidates."""

    def __init__(self, extenders: Sequence[Extender], takes: Takes) -> None:
        self._extenders = extenders
        self._takes = takes
        self._managed = [frozenset(one.name for one in extender.managed_resources) for extender in extenders]
        self._open: dict[int, tuple[AskExtender, Millis]] = {}
        self._last = 0
        self._nodes: dict[str, _About] = {}
        self._evictions: dict[str, _About] = {}
        self.unwatched = frozenset(
            one.name for extender in extenders for one in extender.managed_resources if one.ignored_by_scheduler
        )
        """Resources that the scheduler leaves to extenders."""

    # -- which extenders care ------------------------------------------------------------------------------------

    def concerned(self, pod: Pod, verb: Verb) -> list[int]:
        """The extenders to call about a pod, the ignorable ones last."""
        asked = [at for at, one in enumerate(self._extenders) if verb_of(one, verb) and self._interested(at, pod)]
        return sorted(asked, key=lambda at: self._extenders[at].ignorable)

    def has_say(self, pod: Pod) -> bool:
        return bool(self._extenders) and bool(self.concerned(pod, "filter") or self.concerned(pod, "prioritize"))

    def would_take(self, pod: Pod, node: str) -> bool:
        return not self._extenders or self._takes(pod, node, self.concerned(pod, "filter"))

    def is_ignorable(self, extender: int | None) -> bool:
        return extender is not None and self._extenders[extender].ignorable

    def _interested(self, at: int, pod: Pod) -> bool:
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        asked = (name for one in containers for name in (*one.resources.requests, *one.resources.limits))
        return not self._managed[at] or any(name in self._managed[at] for name in asked)

    # -- calls and answers ---------------------------------------------------------------------------------------

    def ask(self, ask: AskExtender, pod: Pod, there: Container[str], now: Millis) -> Iterator[str]:
        """A call must go to an extender that cares, about the nodes that the calls before it left."""
        if ask.ask <= self._last:
            yield f"extender: ask {ask.ask} comes after {self._last}"
        self._last = ask.ask
        order = self.concerned(pod, ask.verb)
        if ask.extender not in order:
            yield f"extender: {ask.extender} is called about {ask.pod.key}, which it does not handle: {ask.verb}"
            return
        if not ask.nodes:
            yield f"extender: called without a node: {ask}"
        about = self._evictions if ask.verb == "preempt" else self._nodes
        known = about.get(ask.pod.uid)
        first = not self.concerned(pod, "filter") if ask.verb == "prioritize" else ask.extender == order[0]
        if first:
            if strange := [node for node in ask.nodes if node not in there]:
                yield f"extender: asked about {strange}, which do not exist"
            victims = {one.node: dict.fromkeys(pod.uid for pod in one.pods) for one in ask.victims}
            about[ask.pod.uid] = _About(ask.nodes, victims)
        elif known is None or known.nodes != ask.nodes:
            yield f"extender: {ask.pod.key}: asked about {ask.nodes}, where {known and known.nodes} were left"
        until = now + timeout_ms(self._extenders[ask.extender]) + ANSWER_LIMIT_MS
        self._open[ask.ask] = (ask, until)

    def hear(self, said: ExtenderSaid) -> None:
        """Apply an answer. A late or repeated one has no effect."""
        found = self._open.pop(said.ask, None)
        if found is None:
            return
        ask = found[0]
        if said.problem:
            self._failed(ask)
            return
        about = (self._evictions if ask.verb == "preempt" else self._nodes).get(ask.pod.uid)
        if about is None or ask.verb == "prioritize":
            return
        if ask.verb == "filter":
            refused = {node for node, _ in (*said.refused, *said.refused_for_good)}
            left = about.nodes if said.nodes is None else [node for node in about.nodes if node in said.nodes]
            about.nodes = tuple(node for node in left if node not in refused)
        else:
            agreed = {node: frozenset(uids) for node, uids in said.victims}
            about.nodes = tuple(
                node
                for node in about.nodes
                if node in agreed and all(uid in agreed[node] for uid in about.victims[node])
            )

    def give_up_waiting(self, now: Millis) -> None:
        """A call without an answer fails."""
        for number, (ask, until) in list(self._open.items()):
            if until <= now:
                del self._open[number]
                self._failed(ask)

    def _failed(self, ask: AskExtender) -> None:
        """After a failure no node is left, unless the extender is ignorable or only scores."""
        if not self._extenders[ask.extender].ignorable and ask.verb != "prioritize":
            (self._evictions if ask.verb == "preempt" else self._nodes).pop(ask.pod.uid, None)

    def forget(self, uid: str) -> None:
        self._nodes.pop(uid, None)
        self._evictions.pop(uid, None)
        for number, (ask, _) in list(self._open.items()):
            if ask.pod.uid == uid:
                del self._open[number]

    # -- reading -------------------------------------------------------------------------------------------------

    def is_open(self, uid: str) -> bool:
        """Whether a call about the pod is pending."""
        return any(ask.pod.uid == uid for ask, _ in self._open.values())

    def placed(self, ref: PodRef, pod: Pod, node: str) -> Iterator[str]:
        """The pod's node must be one that the extenders left."""
        if self._extenders and self.concerned(pod, "filter"):
            known = self._nodes.get(ref.uid)
            if known is None:
                yield f"extender: {ref.key} on {node}, and no extender was called"
            elif node not in known.nodes:
                yield f"extender: {ref.key} on {node}, but the extenders left {known.nodes}"

    def evicts(self, preemptor: PodRef, pod: Pod, node: str, victim: PodRef) -> Iterator[str]:
        """The extenders must have agreed to the eviction."""
        if not self._extenders or not self.concerned(pod, "preempt"):
            return
        known = self._evictions.get(preemptor.uid)
        if known is None:
            yield f"extender: {victim.key} is evicted for {preemptor.key}, and no extender was called"
        elif node not in known.nodes or victim.uid not in known.victims[node]:
            yield f"extender: {victim.key} is evicted from {node} for {preemptor.key}, and the extenders did not agree"
