"""Simulated extenders: their opinions are data, and their faults are drawn from a seed.

An extender's opinion of a pod and a node never changes. A lying extender returns nodes that it was not asked about,
scores out of range, and extra victims. It does not refuse what it would take at another time, because no event would
report the change of mind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Final

from situate.core.changes import Change, ExtenderSaid
from situate.core.config.types import Extender
from situate.core.effects import AskExtender, Bind
from situate.core.model.pod import Pod
from situate.sim.faults import Faults
from situate.sim.timeline import Timeline

ANSWER_MS: Final = (1, 60)
LATE_MS: Final = (100, 9_000)
"""A late answer may still be in time, or after the timeout."""
BROKEN: Final = "500 Internal Server Error"
NOT_HERE: Final = "node(s) have no license"
FOR_GOOD: Final = "node(s) are out of support"
STRANGER: Final = "no-such-node"
SCALE: Final = 100


@dataclass(frozen=True, slots=True)
class ExtenderPolicy:
    """The opinions of one extender, in percent."""

    salt: str
    openness: int
    """The share of nodes that it takes."""
    kindness: int
    """The share of nodes on which it agrees to evictions."""

    def takes(self, uid: str, node: str) -> bool:
        return _number(self.salt, "filter", uid, node) < self.openness

    def would_take(self, uid: str, node: str) -> bool:
        """Of a node that it does not take: whether evictions might help."""
        return _number(self.salt, "evictions help", uid, node) < SCALE // 3

    def score(self, uid: str, node: str) -> int:
        return _number(self.salt, "score", uid, node) % 11

    def lets_go(self, uid: str, node: str) -> bool:
        return _number(self.salt, "preempt", uid, node) < self.kindness


def _number(*words: str) -> int:
    return int.from_bytes(blake2b("\0".join(words).encode(), digest_size=4).digest(), "big") % SCALE


def draw_policy(rng: Random) -> ExtenderPolicy:
    return ExtenderPolicy(str(rng.random()), rng.choice((30, 60, 90, 100)), rng.choice((50, 100)))


class SimulatedExtenders:
    def __init__(
        self, timeline: Timeline, rng: Random, extenders: Sequence[Extender], answer: Callable[[str, Change], None]
    ) -> None:
        self.faults = Faults()
        self._timeline = timeline
        self._rng = rng
        self._extenders = extenders
        self._policies = [draw_policy(rng) for _ in extenders]
        self._answer = answer
        self._generation = 0

    def restart(self) -> None:
        """The calling scheduler died."""
        self._generation += 1

    def takes(self, pod: Pod, node: str, asked: Sequence[int]) -> bool:
        """Whether all these extenders, without faults, would take a node for a pod."""
        return all(self._policies[at].takes(pod.metadata.uid, node) for at in asked)

    def ask(self, ask: AskExtender) -> None:
        """Answer soon, late, never, or with an error."""
        rng, faults = self._rng, self.faults
        if rng.random() < faults.extender_is_silent:
            return
        late = rng.random() < faults.extender_is_late
        said = self._said(ask)
        if rng.random() < faults.extender_fails:
            said = ExtenderSaid(ask.ask, problem=BROKEN)
        elif rng.random() < faults.extender_lies:
            said = self._lie(ask, said)
        delay = rng.randint(*(LATE_MS if late else ANSWER_MS))
        self._timeline.after(delay, self._deliver, said, self._generation)
        if rng.random() < faults.answer_comes_twice:
            self._timeline.after(delay + rng.randint(*LATE_MS), self._deliver, said, self._generation)

    def fails_to_bind(self, bind: Bind) -> bool:
        """Whether the binding extender fails."""
        return bind.extender is not None and self._rng.random() < self.faults.extender_fails

    def _said(self, ask: AskExtender) -> ExtenderSaid:
        policy, uid = self._policies[ask.extender], ask.pod.uid
        match ask.verb:
            case "filter":
                left = tuple(node for node in ask.nodes if policy.takes(uid, node))
                others = [node for node in ask.nodes if not policy.takes(uid, node)]
                helped = tuple((node, NOT_HERE) for node in others if policy.would_take(uid, node))
                for_good = tuple((node, FOR_GOOD) for node in others[::2] if not policy.would_take(uid, node))
                return ExtenderSaid(ask.ask, nodes=left, refused=helped, refused_for_good=for_good)
            case "prioritize":
                return ExtenderSaid(ask.ask, scores=tuple((node, policy.score(uid, node)) for node in ask.nodes))
            case "preempt":
                agreed = tuple(
                    (one.node, tuple(pod.uid for pod in one.pods))
                    for one in ask.victims
                    if policy.lets_go(uid, one.node)
                )
                return ExtenderSaid(ask.ask, victims=agreed)

    def _lie(self, ask: AskExtender, said: ExtenderSaid) -> ExtenderSaid:
        nodes = None if said.nodes is None else (STRANGER, *said.nodes, *said.nodes[:1])
        return ExtenderSaid(
            ask.ask,
            nodes=nodes,
            refused=(*said.refused, (STRANGER, NOT_HERE)),
            refused_for_good=said.refused_for_good,
            scores=(*((node, score * 1_000 - 50) for node, score in said.scores), (STRANGER, 10)),
            victims=(*((node, (*uids, "nobody")) for node, uids in said.victims), (STRANGER, ("nobody",))),
        )

    def _deliver(self, said: ExtenderSaid, generation: int) -> None:
        if generation == self._generation:
            what = said.problem or f"{said.nodes} {said.scores} {said.victims}"
            self._answer(f"ExtenderSaid #{said.ask}: {what}", said)
