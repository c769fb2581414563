"""After every step, no parked pod would find a node: whatever happens, in whatever order.

Things of a small cluster come, change and go at random, pods wait, are bound, fail to be bound and leave; many changes
may fall in one step. A parked pod that could be placed has missed its wake-up, and is found at once: not after the five
minutes after which the flush would cover it up.
"""

from collections.abc import Iterator
from random import Random

import msgspec
import pytest

from situate.core.changes import (
    BindDone,
    BindFailed,
    Change,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    PodGone,
    PodRef,
    PodSeen,
    VolumesBound,
    VolumesFailed,
)
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, BindVolumes, Effect, Evict
from situate.core.engine.engine import Engine
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.place.selecting import NOWHERE
from situate.core.queue.queued_pod import QueueState
from worlds import SHAPES, WAITING, Thing, some_world

WALKS = 60
STEPS = 40
WAITERS = ("w", "x", "y", "z")


def ref_of(pod: Pod) -> PodRef:
    return PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)


def told(before: Thing | None, after: Thing | None) -> Iterator[Change]:
    """How the engine hears of a thing that came, changed or went. In another namespace it is another thing."""
    if before is not None and (after is None or before.metadata.namespace != after.metadata.namespace):
        match before:
            case Node():
                yield NodeGone(before.metadata.name)
            case Pod():
                yield PodGone(ref_of(before))
            case _:
                yield ObjectGone(before)
    match after:
        case None:
            pass
        case Node():
            yield NodeSeen(after)
        case Pod():
            yield PodSeen(after)
        case _:
            yield ObjectSeen(after)


class Walk:
    """An engine, and the world around it: it carries out binds, or fails to, and goes its own way otherwise."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.engine = Engine(default_configuration())
        self.world = some_world(self.dice)
        self.waiters: dict[str, Pod] = {}
        self.under_way: list[Bind | BindVolumes | Evict] = []
        self.uids = 0
        self.now = 0

    def start(self) -> list[Change]:
        things = [thing for thing in self.world.values() if thing is not None]
        self.dice.shuffle(things)
        return [change for thing in things for change in told(None, thing)]

    def something(self) -> list[Change]:
        happens = self.dice.random()
        if happens < 0.5:
            key = self.dice.choice(list(SHAPES))
            before, self.world[key] = self.world[key], self.dice.choice(SHAPES[key])
            return list(told(before, self.world[key]))
        if happens < 0.75:
            return self.a_waiter_comes_or_changes(self.dice.choice(WAITERS))
        if happens < 0.85 and self.waiters:
            return [PodGone(ref_of(self.waiters.pop(self.dice.choice(list(self.waiters)))))]
        return self.an_effect_is_carried_out()

    def a_waiter_comes_or_changes(self, name: str) -> list[Change]:
        shape, known = self.dice.choice(list(WAITING.values())), self.waiters.get(name)
        if known is not None and known.spec.node_name:
            return []
        self.uids += known is None
        uid = known.metadata.uid if known is not None else name if name == "w" else f"{name}{self.uids}"
        metadata = msgspec.structs.replace(shape.metadata, name=name, uid=uid)
        priority = self.dice.choice((0, 0, 5)) if known is None else known.spec.priority
        spec = msgspec.structs.replace(shape.spec, priority=priority)
        self.waiters[name] = msgspec.structs.replace(shape, metadata=metadata, spec=spec)
        return [PodSeen(self.waiters[name])]

    def an_effect_is_carried_out(self) -> list[Change]:
        if not self.under_way:
            return []
        effect = self.under_way.pop(self.dice.randrange(len(self.under_way)))
        if isinstance(effect, Evict):
            return self.a_victim_goes(effect.victim)
        known = self.waiters.get(effect.pod.name)
        if known is None or known.metadata.uid != effect.pod.uid or known.spec.node_name:
            return []
        fails = self.dice.random() < 0.3
        if isinstance(effect, BindVolumes):
            if fails:
                return [VolumesFailed(effect.pod, effect.attempt, "no")]
            return [VolumesBound(effect.pod, effect.attempt)]
        if fails:
            return [BindFailed(effect.pod, effect.attempt, "no", final=self.dice.random() < 0.7)]
        spec = msgspec.structs.replace(known.spec, node_name=effect.node)
        self.waiters[effect.pod.name] = msgspec.structs.replace(known, spec=spec)
        changes: list[Change] = [BindDone(effect.pod, effect.attempt), PodSeen(self.waiters[effect.pod.name])]
        self.dice.shuffle(changes)
        return changes

    def a_victim_goes(self, victim: PodRef) -> list[Change]:
        for key, thing in self.world.items():
            if isinstance(thing, Pod) and ref_of(thing) == victim:
                self.world[key] = None
                return [PodGone(victim)]
        known = self.waiters.get(victim.name)
        if known is not None and ref_of(known) == victim:
            del self.waiters[victim.name]
            return [PodGone(victim)]
        return []

    def step(self, changes: list[Change]) -> list[Effect]:
        effects = self.engine.step(self.now, changes)
        self.under_way += [one for one in effects if isinstance(one, Bind | BindVolumes | Evict)]
        return effects


def nobody_is_stranded(engine: Engine) -> None:
    for entry in engine.queue.unschedulable():
        row = engine.cycle.selection.choose(entry)
        place = "" if row == NOWHERE else engine.cluster.nodes.names[row]
        assert row == NOWHERE, f"{entry.key} would fit on {place} and was parked: {entry.message}"


@pytest.mark.parametrize("seed", range(WALKS))
def test_no_parked_pod_would_find_a_node(seed: int) -> None:
    walk = Walk(seed)
    walk.step(walk.start())
    for _ in range(STEPS):
        walk.now += walk.dice.choice((1, 100, 700, 3_000))
        walk.step([change for _ in range(walk.dice.choice((1, 1, 1, 3, 8))) for change in walk.something()])
        nobody_is_stranded(walk.engine)
    assert walk.engine.queue.flushed == 0
    assert not [entry for entry in walk.engine.queue.values() if entry.state is QueueState.ACTIVE]
