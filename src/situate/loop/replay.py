"""Replays a history: whether every effect comes out as recorded, and what another configuration would have chosen.

Nothing is carried out. The engine gets the recorded changes, so the answers to its effects are the recorded ones, even
where its effects differ now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from situate.core.changes import PodRef
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.core.engine.framework import build_frameworks
from situate.core.engine.node_selection import NodeSelection
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.support.errors import PluginError
from situate.core.queue.queued_pod import QueuedPod
from situate.loop.history import History, Step
from situate.wire.journal import digest_of


@dataclass(frozen=True, slots=True)
class Difference:
    """The first effect of a step that is not as recorded. None stands for no effect where the other has one."""

    step: int
    effect: int
    """Its number among the step's effects, from 1; 0 if only a digest was recorded."""
    expected: Effect | None = None
    got: Effect | None = None


class Replay:
    """Steps an engine through a history. Iterate over it once; the counts are right when that is done."""

    def __init__(self, history: History, engine: Engine) -> None:
        self._history = history
        self._engine = engine
        self.step = 0
        """The number of the current step."""
        self.steps = self.effects = 0
        self.unrecorded = 0
        """How many steps have no recorded effects: the run ended, or failed, before they were written."""

    def __iter__(self) -> Iterator[Difference]:
        """A difference for each step that has one."""
        for step in self._history:
            self.step = step.number
            effects = self._engine.step(step.now, step.changes)
            self.steps += 1
            self.effects += len(effects)
            if step.decided is None:
                self.unrecorded += 1
            elif (found := _difference(step, effects)) is not None:
                yield found


def _difference(step: Step, effects: list[Effect]) -> Difference | None:
    if step.decided is None:
        return None
    if step.effects is None:
        return None if digest_of(effects) == step.decided.digest else Difference(step.number, 0)
    for at, (expected, got) in enumerate(zip_longest(step.effects, effects), 1):
        if expected != got:
            return Difference(step.number, at, expected, got)
    return None


# ── what another configuration would have chosen ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ChoiceDifference:
    """A pod for which another configuration would have chosen another node. An empty name is no node."""

    pod: PodRef
    step: int
    recorded: str
    other: str
    note: str = ""
    """Why the other configuration has no answer, if it has none; or its message, if only that differs."""
    recorded_note: str = ""
    """The engine's own message, if only that differs."""


class ChoiceComparison:
    """Compares every choice of an engine with that of another configuration, on the cluster of that very moment.

    Both choose on equal terms: the same pods on the same nodes, the same nominations, the same time. The other choice
    has no consequences; the next pod is compared on the cluster that the engine made. Pods that extenders decide on,
    and members of gangs, are not compared. With `messages`, a pod that fits nowhere is told of, too, if the messages
    about that differ.
    """

    def __init__(
        self,
        replay: Replay,
        engine: Engine,
        config: KubeSchedulerConfiguration,
        others: Mapping[str, type],
        *,
        messages: bool = False,
    ) -> None:
        self._replay = replay
        self._engine = engine
        self.messages = messages
        self._profiles = build_frameworks(config, others)
        self._selection = NodeSelection(engine.cluster, self._profiles, engine.state.nominations)
        self._compared: dict[str, None] = {}
        self._different: dict[str, ChoiceDifference] = {}
        engine.cycle.witness = self._compare

    @property
    def pods(self) -> int:
        """How many pods were compared."""
        return len(self._compared)

    @property
    def differences(self) -> list[ChoiceDifference]:
        """Each pod once, at the first choice in which the two differ."""
        return list(self._different.values())

    def _compare(self, entry: QueuedPod, row: int) -> None:
        pod = f"{entry.key} {entry.ref.uid}"
        self._compared[pod] = None
        other, note = self._chosen(entry)
        if other != row and pod not in self._different:
            names = self._node(row), self._node(other)
            self._different[pod] = ChoiceDifference(entry.ref, self._replay.step, *names, note)
        elif self.messages and row == NOWHERE and pod not in self._different:
            mine, others = (self._message(each, entry) for each in (self._engine.cycle.selection, self._selection))
            if mine != others:
                self._different[pod] = ChoiceDifference(entry.ref, self._replay.step, "", "", others, mine)

    def _message(self, selection: NodeSelection, entry: QueuedPod) -> str:
        return selection.fit_failure(entry, self._engine.state.evictions).message

    def _chosen(self, entry: QueuedPod) -> tuple[int, str]:
        name = entry.pod.spec.scheduler_name
        if name not in self._profiles:
            return NOWHERE, f"has no profile {name}"
        try:
            return self._selection.choose(entry), ""
        except PluginError as error:
            return NOWHERE, str(error)

    def _node(self, row: int) -> str:
        return "" if row == NOWHERE else self._selection.cluster.nodes.names[row]
