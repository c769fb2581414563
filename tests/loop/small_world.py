"""A world small enough to read: it carries effects out badly, and makes things happen, all drawn from a seed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from builders import node, pod, taint
from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    EvictDone,
    EvictFailed,
    NodeGone,
    NodeSeen,
    ObjectSeen,
    PodGone,
    PodRef,
    PodSeen,
    VolumesBound,
)
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.effects import Bind, BindVolumes, Effect, Evict
from situate.core.engine.engine import Engine
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace
from situate.loop.journal import Journal, Keep
from situate.loop.run import turn


@dataclass
class SmallWorld:
    """Performs effects with losses, failures and delays. `happens` is what the engine hears next."""

    seed: int
    now: int = 0
    sent: list[list[Effect]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.later: list[tuple[int, Change]] = []
        self.made = 0

    def perform(self, effects: Sequence[Effect]) -> None:
        self.sent.append(list(effects))
        for effect in effects:
            match effect:
                case Bind():
                    self._bind(effect)
                case BindVolumes(ref, _, attempt):
                    self._answer(VolumesBound(ref, attempt))
                case Evict(victim):
                    if self.dice.random() < 0.2:
                        self._answer(EvictFailed(victim, "try again"))
                    else:
                        self._answer(EvictDone(victim), PodGone(victim))
                        self.pods.pop(victim.uid, None)
                case _:
                    pass

    def _bind(self, bind: Bind) -> None:
        known = self.pods.get(bind.pod.uid)
        luck = self.dice.random()
        if known is None or bind.node not in self.nodes or luck < 0.1:
            self._answer(BindFailed(bind.pod, bind.attempt, "conflict", final=luck < 0.05))
            return
        bound = self.pods[bind.pod.uid] = replace(known, spec=replace(known.spec, node_name=bind.node))
        answers: list[Change] = [BindDone(bind.pod, bind.attempt), PodSeen(bound)]
        self.dice.shuffle(answers)
        self._answer(*answers[: 2 if luck < 0.9 else 1])

    def _answer(self, *answers: Change) -> None:
        due = self.now + self.dice.randrange(1, 800)
        self.later += [(due + at, answer) for at, answer in enumerate(answers)]

    def happens(self) -> list[Change]:
        self.now += self.dice.randrange(1, 700)
        self.later.sort(key=lambda one: one[0])
        due = [change for at, change in self.later if at <= self.now]
        self.later = [one for one in self.later if one[0] > self.now]
        return due + [self._something() for _ in range(self.dice.randrange(4))]

    def _something(self) -> Change:
        self.made += 1
        luck = self.dice.random()
        if luck < 0.2 or not self.nodes:
            name = f"n{self.dice.randrange(12)}"
            taints = (taint(),) if self.dice.random() < 0.2 else ()
            zone = {"topology.kubernetes.io/zone": f"z{self.dice.randrange(3)}"}
            self.nodes[name] = node(name, cpu=str(self.dice.choice((2, 4, 8))), pods=20, taints=taints, labels=zone)
            return NodeSeen(self.nodes[name])
        if luck < 0.23:
            name = self.dice.choice(list(self.nodes))
            del self.nodes[name]
            return NodeGone(name)
        if luck < 0.33 and self.pods:
            gone = self.pods.pop(self.dice.choice(list(self.pods)))
            return PodGone(PodRef("default", gone.metadata.name, gone.metadata.uid))
        if luck < 0.36:
            return ObjectSeen(Namespace(metadata=ObjectMeta(name=f"ns{self.made}")))
        uid = f"u{self.made}"
        self.pods[uid] = pod(
            f"p{self.made}",
            uid=uid,
            cpu=self.dice.choice(("100m", "1", "3")),
            priority=self.dice.choice((0, 0, 100)),
            labels={"app": self.dice.choice("ab")},
        )
        return PodSeen(self.pods[uid])


def record(
    folder: Path,
    config: KubeSchedulerConfiguration,
    *,
    seed: int = 1,
    steps: int = 60,
    batch: int = 8,
    keep: Keep = Keep.EFFECTS,
    segment_bytes: int = 1 << 20,
) -> SmallWorld:
    """A run of a small world, in a journal."""
    world = SmallWorld(seed)
    engine = Engine(config, batch=batch)
    with Journal(folder, config, batch=batch, keep=keep, segment_bytes=segment_bytes) as journal:
        for _ in range(steps):
            changes = world.happens()
            turn(engine, world.now, changes, world, journal)
    return world
