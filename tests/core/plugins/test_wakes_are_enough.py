"""No filter sleeps through what would make it change its mind.

From any small cluster, any one change: where a filter takes a node that it refused before, or a new one, it must have
said that the change was worth waking the pod for. Saying so too often only costs time; this test does not look at it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest

from builders import term
from situate.core.config.defaults import default_configuration
from situate.core.contract import FITS, Filter, WakeEvent
from situate.core.engine.framework import build_frameworks
from situate.core.engine.wake_events import bound_pod_events, node_events, node_left, object_events, own_events
from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector
from situate.core.model.pod import (
    NodeAffinitySpec as NodeAffinityRules,
)
from situate.core.model.pod import (
    Pod,
)
from situate.core.plugins.node_affinity import NodeAffinity
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.pod_topology_spread import PodTopologySpread
from situate.core.queue.queueing_hints import may_help
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from worlds import DISK, GPU, HOST, SHAPES, WAITING, Thing, World, some_world, spread

WALKS = 40
STEPS = 30


# -- what happens ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Told:
    """A cluster, and what parked pods are told of a change to it."""

    cluster: Cluster = field(default_factory=Cluster)

    def put(self, thing: Thing) -> list[WakeEvent]:
        cluster = self.cluster
        if isinstance(thing, Node):
            row = cluster.nodes.rows.get(thing.metadata.name)
            before = None if row is None else cluster.nodes.objects[row]
            return list(node_events(before, thing, cluster.resources)) if cluster.add_node(thing) else []
        if isinstance(thing, Pod):
            key = f"{thing.metadata.namespace}/{thing.metadata.name}"
            counted = cluster.counted(key)
            cluster.add_pod(thing)
            return list(bound_pod_events(counted, cluster.counted(key), cluster.objects))
        known = cluster.find_object(thing)
        return list(object_events(known, thing, cluster.objects)) if cluster.put_object(thing) else []

    def take(self, thing: Thing) -> list[WakeEvent]:
        cluster = self.cluster
        if isinstance(thing, Node):
            row = cluster.nodes.rows[thing.metadata.name]
            kinds = [cluster.pods.kind(pod_row) for pod_row in cluster.nodes.pods[row]]
            cluster.remove_node(thing.metadata.name)
            return list(node_left(thing, kinds, cluster.objects))
        if isinstance(thing, Pod):
            key = f"{thing.metadata.namespace}/{thing.metadata.name}"
            counted = cluster.counted(key)
            cluster.remove_pod(key)
            return list(bound_pod_events(counted, None, cluster.objects))
        cluster.forget_object(thing)
        return list(object_events(thing, None, cluster.objects))

    def change(self, before: Thing | None, after: Thing | None) -> list[WakeEvent]:
        """One thing comes, changes, or goes. A pod in another namespace is another pod: the one before goes first."""
        events = []
        if before is not None and (after is None or before.metadata.namespace != after.metadata.namespace):
            events += self.take(before)
        if after is not None:
            events += self.put(after)
        return events


def told_of(world: World) -> Told:
    told = Told()
    for thing in sorted((one for one in world.values() if one is not None), key=lambda one: isinstance(one, Pod)):
        told.put(thing)
    return told


def taken(plugin: Filter, kind: PodClass, cluster: Cluster) -> dict[str, bool]:
    """By node, whether the filter takes it."""
    view = View(cluster)
    verdict = plugin.check(kind, view)
    rows = [row for row, present in enumerate(view.present) if present]
    if verdict is None or isinstance(verdict, np.ndarray):
        return {view.names[row]: verdict is None or bool(verdict[row] == FITS) for row in rows}
    return {view.names[row]: False for row in rows}


def helped(before: Mapping[str, bool], after: Mapping[str, bool]) -> list[str]:
    """The nodes that are taken from now on: those that were refused, and new ones if any had been refused."""
    refused_some = not all(before.values())
    return [name for name, fits in after.items() if fits and not before.get(name, not refused_some)]


DEFAULTS = (spread(label_selector=None), spread(HOST, label_selector=None, max_skew=2))
ENFORCED = NodeAffinityRules(
    required_during_scheduling_ignored_during_execution=NodeSelector(
        node_selector_terms=(term((DISK, "In", ("ssd",))),)
    )
)
FILTERS: tuple[Filter, ...] = (
    *next(iter(build_frameworks(default_configuration()).values())).profile.filters,
    NodeAffinity(added_affinity=ENFORCED),
    NodeResourcesFit(ignored_resources=frozenset({GPU})),
    PodTopologySpread(default_constraints=DEFAULTS, system_defaulted=False),
)


def demand(plugin: Filter, kind: PodClass, events: list[WakeEvent], nodes: list[str], told: str) -> None:
    filters = {plugin.name: plugin}
    heard = any(may_help(kind, (plugin.name,), event, filters) for event in events)
    kinds = [event.kind.value for event in events]
    assert heard, f"{plugin.name} now takes {nodes} for a pod that {told}, and slept through {kinds}"


@pytest.mark.parametrize("seed", range(WALKS))
def test_a_change_that_helps_a_refused_pod_wakes_it(seed: int) -> None:
    dice = Random(seed)
    world = some_world(dice)
    told = told_of(world)
    kinds = {name: told.cluster.class_of(one) for name, one in dice.sample(list(WAITING.items()), len(WAITING) // 2)}
    pairs = [(plugin, name) for plugin in FILTERS for name in kinds]
    before = [taken(plugin, kinds[name], told.cluster) for plugin, name in pairs]
    for _ in range(STEPS):
        key = dice.choice(list(SHAPES))
        world[key], was = dice.choice(SHAPES[key]), world[key]
        events = told.change(was, world[key])
        after = [taken(plugin, kinds[name], told.cluster) for plugin, name in pairs]
        for (plugin, name), took, takes in zip(pairs, before, after, strict=True):
            if nodes := helped(took, takes):
                demand(plugin, kinds[name], events, nodes, name)
        before = after


@pytest.mark.parametrize("seed", range(WALKS))
def test_a_change_of_the_refused_pod_itself_that_helps_it_wakes_it(seed: int) -> None:
    dice = Random(seed)
    cluster = told_of(some_world(dice)).cluster
    for _ in range(STEPS):
        was, now = dice.sample(list(WAITING), 2)
        old, new = cluster.class_of(WAITING[was]), cluster.class_of(WAITING[now])
        events = own_events(old, new, cluster.objects)
        if events is None:
            continue  # so much has changed that the pod is always tried again
        for plugin in FILTERS:
            if nodes := helped(taken(plugin, old, cluster), taken(plugin, new, cluster)):
                demand(plugin, new, events, nodes, f"{was} and now {now}")
