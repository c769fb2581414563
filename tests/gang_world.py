"""A small world for gangs: it carries out what the engine asks for, at once; and random histories in it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from builders import node, pod
from situate.core.changes import BindDone, BindFailed, Change, EvictDone, NodeSeen, PodGone, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Effect, Evict
from situate.core.engine.engine import Engine
from situate.core.engine.framework import default_framework
from situate.core.gang.members import demands_of, gang_status, why_held
from situate.core.gang.plan import Member, Planner, plan_enough
from situate.core.model.pod import Pod, PodCondition
from situate.core.model.refs import PodRef
from situate.core.place.bind_annotations import with_annotations
from situate.core.queue.queued_pod import QueueState
from situate.core.state.audit import audit

__all__ = ["RACK", "World", "bound", "member", "nodes", "of", "random_history", "ref_of", "team"]

RACK = "rack"


class World:
    """Carries out what the engine asks for, at once, unless told not to."""

    def __init__(self, *nodes: Any, engine: Engine | None = None) -> None:
        self.engine = engine or Engine(default_configuration())
        self.pods: dict[str, Pod] = {}
        self.now = 0
        self.refuse_binds_of: set[str] = set()
        self.slow_to_leave = False
        self.dice: random.Random | None = None
        """Where there is one, things go wrong: binds fail, and answers come late."""
        self._late: list[Change] = []
        self._asked: set[tuple[str, int]] = set()
        self.step(*(NodeSeen(one) for one in nodes))

    def step(self, *changes: Change, after_ms: int = 1_000) -> list[Effect]:
        """One step of the engine; nothing of it is carried out."""
        self.now += after_ms
        for change in changes:
            if isinstance(change, PodSeen):
                self.pods[change.pod.metadata.name] = change.pod
            elif isinstance(change, PodGone):
                self.pods.pop(change.pod.name, None)
        return self.engine.step(self.now, changes)

    def arrive(self, *pods: Pod) -> list[Effect]:
        return self.step(*(PodSeen(one) for one in pods))

    def is_new(self, bind: Bind) -> bool:
        """Whether this bind is asked for the first time, and not again."""
        key = (bind.pod.uid, bind.attempt)
        known = key in self._asked
        self._asked.add(key)
        return not known

    def carry_out(self, effects: Sequence[Effect]) -> list[Effect]:
        """Do it, and hand back what the engine asked for when it heard."""
        changes, self._late = self._late, []
        for effect in effects:
            if isinstance(effect, Bind):
                changes.extend(self._bind(effect))
            elif isinstance(effect, Evict):
                changes.extend(self._evict(effect))
        return self.step(*changes)

    def delete(self, name: str) -> list[Effect]:
        """Of one pod, nothing is seen after it is gone."""
        changes, self._late = [*self._late, PodGone(ref_of(self.pods[name]))], []
        return self.step(*changes, after_ms=1)

    def _bind(self, effect: Bind) -> list[Change]:
        roll = 1.0 if self.dice is None else self.dice.random()
        if effect.pod.name in self.refuse_binds_of or roll < 0.25:
            return [BindFailed(effect.pod, effect.attempt, "no", final=roll > 0.15)]
        known = self.pods.get(effect.pod.name)
        if known is None or known.spec.node_name or known.metadata.uid != effect.pod.uid:
            return [BindFailed(effect.pod, effect.attempt, "gone, or bound already", final=True)]
        known = with_annotations(replace(known, spec=replace(known.spec, node_name=effect.node)), effect.annotations)
        self.pods[effect.pod.name] = known
        done: list[Change] = [BindDone(effect.pod, effect.attempt), PodSeen(known)]
        if roll < 0.4:
            self._late.extend(done)
            return []
        return done[::-1] if roll < 0.6 else done

    def _evict(self, effect: Evict) -> list[Change]:
        if effect.victim.name not in self.pods:
            return [EvictDone(effect.victim)]
        leaving = self.leaving(effect.victim.name)
        seen, self._late = self._late, []  # what was seen before is heard before
        if self.slow_to_leave:
            return [*seen, EvictDone(effect.victim), PodSeen(leaving)]
        del self.pods[effect.victim.name]
        return [*seen, EvictDone(effect.victim), PodSeen(leaving), PodGone(effect.victim)]

    def leaving(self, name: str) -> Pod:
        known = self.pods[name]
        condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
        return replace(
            known,
            metadata=replace(known.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
            status=replace(known.status, conditions=(condition,)),
        )

    def run(self, *pods: Pod, steps: int = 12) -> list[Effect]:
        """Let pods arrive, and go on until nothing more happens; everything that was asked for."""
        found = effects = self.arrive(*pods)
        for _ in range(steps):
            effects = self.carry_out(effects)
            found = [*found, *effects]
        return found

    def place(self, name: str) -> QueueState | None:
        entry = self.engine.queue.get(f"default/{name}")
        return None if entry is None else entry.state

    def message(self, name: str) -> str:
        entry = self.engine.queue.get(f"default/{name}")
        return "" if entry is None else entry.message


def member(name: str, size: int = 3, gang: str = "train", **fields: Any) -> Pod:
    labels = {"situate.dev/gang": gang, "situate.dev/gang-size": str(size), **fields.pop("labels", {})}
    fields.setdefault("cpu", "2")
    return pod(name, uid=f"uid-{name}", labels=labels, **fields)


def team(count: int, size: int | None = None, **fields: Any) -> list[Pod]:
    return [member(f"t{at}", size or count, **fields) for at in range(count)]


def nodes(count: int, cpu: str = "4", **labels: list[str]) -> list[Any]:
    return [
        node(f"n{at}", cpu=cpu, memory="64Gi", pods="20", labels={key: values[at] for key, values in labels.items()})
        for at in range(count)
    ]


def of(kind: type[Any], effects: Sequence[Effect]) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def bound(effects: Sequence[Effect]) -> list[str]:
    return [effect.pod.name for effect in of(Bind, effects)]


def ref_of(known: Pod) -> PodRef:
    return PodRef(known.metadata.namespace, known.metadata.name, known.metadata.uid)


def random_history(seed: int, *, faults: bool = False) -> tuple[list[list[Effect]], list[str]]:
    """A random cluster, random gangs and single pods; what was asked for in each step, and what was wrong.

    With faults, binds fail or are answered late, and pods are deleted at any moment.
    """
    dice = random.Random(seed)
    world = World(*nodes(dice.randint(1, 5), cpu=str(dice.randint(2, 8)), rack=[dice.choice("ab") for _ in range(5)]))
    sizes: dict[str, int] = {}
    waiting: list[Pod] = []
    for at in range(dice.randint(1, 4)):
        gang, size = f"g{at}", dice.randint(1, 6)
        sizes[gang] = size
        label = {"situate.dev/gang-topology": RACK} if dice.random() < 0.3 else {}
        if dice.random() < 0.3:
            label["situate.dev/gang-disruption"] = "all"
        for number in range(size + dice.randint(-1, 2)):
            cpu, priority = dice.choice(["500m", "1", "2"]), dice.choice([0, 0, 10]) if dice.random() < 0.5 else at
            waiting.append(member(f"{gang}-{number}", size, gang, cpu=cpu, priority=priority, labels=dict(label)))
    waiting += [pod(f"s{at}", uid=f"s{at}", cpu="1", priority=dice.choice([0, 5])) for at in range(dice.randint(0, 6))]
    dice.shuffle(waiting)
    history: list[list[Effect]] = []
    wrong: list[str] = []
    effects: list[Effect] = []
    world.dice = dice if faults else None
    for _ in range(30):
        if faults and world.pods and dice.random() < 0.3:
            effects = [*effects, *world.delete(dice.choice(list(world.pods)))]
            wrong += _what_is_wrong(world, [], sizes, {})
        arriving = [waiting.pop() for _ in range(min(len(waiting), dice.randint(0, 4)))]
        before = _placed_by_gang(world)
        effects = [*world.carry_out(effects), *world.arrive(*arriving)]
        history.append(effects)
        wrong += _what_is_wrong(world, effects, sizes, before)
        world.now += dice.choice([0, 500, 2_000, 12_000])
    world.dice = None
    for _ in range(12):
        effects = world.carry_out(effects)
        history.append(effects)
        world.now += 5_000
    return history, wrong + _who_waits_in_vain(world)


def _who_waits_in_vain(world: World) -> list[str]:
    """Once everything has settled: gangs that would fit and are not bound, and whoever the flush had to rescue."""
    engine = world.engine
    found = ["the flush rescued somebody"] if engine.queue.flushed else []
    for gang in engine.state.gangs.values():
        demands = demands_of(gang, engine.cluster.objects)
        roll = gang_status(gang, engine.queue, engine.cluster)
        if not roll.waiting or why_held(gang, demands, roll) or demands.topology_key:
            continue
        if engine.state.evictions or len(engine.state.nominations):
            continue  # not settled: somebody is being waited for
        planner = Planner(default_framework().profile, engine.cluster)
        members = [Member(entry.key, entry.kind) for entry in roll.waiting]
        needed = max(1, demands.min_count - len(roll.placed))
        if plan_enough(planner, members, needed)[0].count >= needed:
            found.append(f"gang {gang.name} fits, and waits")
    return found


def _placed_by_gang(world: World) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in world.engine.cluster.pods.rows:
        known = world.pods.get(key.partition("/")[2])
        gang = "" if known is None else known.metadata.labels.get("situate.dev/gang", "")
        counts[gang] = counts.get(gang, 0) + 1
    return counts


def _what_is_wrong(world: World, effects: list[Effect], sizes: dict[str, int], before: dict[str, int]) -> list[str]:
    cluster = world.engine.cluster
    found = [str(one) for one in audit(cluster)]
    asked: dict[str, int] = {}
    for effect in filter(world.is_new, of(Bind, effects)):
        if effect.pod.name not in world.pods:
            continue
        gang = world.pods[effect.pod.name].metadata.labels.get("situate.dev/gang", "")
        asked[gang] = asked.get(gang, 0) + 1
    for gang, count in asked.items():
        if gang and before.get(gang, 0) + count < sizes[gang]:
            found.append(f"{count} of gang {gang} bound, beside {before.get(gang, 0)}; {sizes[gang]} are needed")
    if (cluster.nodes.requested[:, : cluster.nodes.size] > cluster.nodes.allocatable[:, : cluster.nodes.size]).any():
        found.append("a node holds more than it has room for")
    if any(entry.state is QueueState.IN_FLIGHT for entry in world.engine.queue.values()):
        found.append("a pod is in no place")
    evicted = [effect.victim.uid for effect in of(Evict, effects)]
    if len(evicted) != len(dict.fromkeys(evicted)):
        found.append("a victim was evicted twice")
    return found
