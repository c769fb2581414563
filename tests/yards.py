"""Clusters for plans, and somebody who checks plans without the engine: by the rules alone, in plain Python.

A yard is written down twice: as objects for the engine, and as plain values for the checker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from builders import node, pod, selector, taint, toleration
from situate.core.config.defaults import default_configuration
from situate.core.engine.framework import build_frameworks
from situate.core.model.meta import ObjectMeta, OwnerReference
from situate.core.model.node import Node
from situate.core.model.pod import (
    Affinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)
from situate.core.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from situate.core.plan.repack import Move
from situate.core.plan.sandbox import Sandbox
from situate.core.state.cluster import Cluster

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
GI = 1 << 30


@dataclass(frozen=True)
class App:
    """Pods that are alike."""

    name: str
    cpu: int
    memory: int
    apart: bool = False
    """No two on one node."""
    skew: int = 0
    """How much zones may differ; 0: as they like."""
    pool: str = ""
    tolerates: bool = False
    allowed: int | None = None
    """Of its budget; None: it has none."""
    owner: str = "ReplicaSet"
    """Empty: nobody makes it again."""


@dataclass(frozen=True)
class Host:
    name: str
    cpu: int
    memory: int
    pods: int
    zone: str
    pool: str = ""
    tainted: bool = False


@dataclass
class Yard:
    hosts: dict[str, Host]
    apps: dict[str, App]
    where: dict[str, str] = field(default_factory=dict)
    """Pod -> host."""
    of: dict[str, str] = field(default_factory=dict)
    """Pod -> app."""
    there: dict[str, dict[str, None]] = field(default_factory=dict)
    """Host -> its pods."""
    spread: dict[tuple[str, str], int] = field(default_factory=dict)
    """App and zone -> pods."""

    def put(self, name: str, app: str, host: str) -> None:
        self.where[name], self.of[name] = host, app
        self.there.setdefault(host, {})[name] = None
        key = (app, self.hosts[host].zone)
        self.spread[key] = self.spread.get(key, 0) + 1

    def drop(self, name: str) -> str:
        host = self.where.pop(name)
        del self.there[host][name]
        self.spread[self.of[name], self.hosts[host].zone] -= 1
        return host

    def copy(self) -> Yard:
        there = {host: dict(pods) for host, pods in self.there.items()}
        return Yard(self.hosts, self.apps, dict(self.where), self.of, there, dict(self.spread))

    # -- as the checker reads it ---------------------------------------------------------------------------------

    def on(self, host: str) -> list[str]:
        return list(self.there.get(host, ()))

    def free(self, host: str) -> tuple[int, int, int]:
        there = [self.apps[self.of[name]] for name in self.on(host)]
        one = self.hosts[host]
        return (
            one.cpu - sum(app.cpu for app in there),
            one.memory - sum(app.memory for app in there),
            one.pods - len(there),
        )

    def refusal(self, app: App, host: str) -> str:
        """Why a pod of this app, which is on no host, may not come to this one."""
        one = self.hosts[host]
        cpu, memory, slots = self.free(host)
        if app.cpu > cpu or app.memory > memory or slots < 1:
            return "room"
        if one.tainted and not app.tolerates:
            return "taint"
        if app.pool and app.pool != one.pool:
            return "pool"
        if app.apart and any(self.of[name] == app.name for name in self.on(host)):
            return "apart"
        if app.skew:
            # Nodes that the pod's selector rules out make no domain and do not count; tainted ones do.
            zones = {each.zone: 0 for each in self.hosts.values() if not app.pool or each.pool == app.pool}
            for zone in zones:
                zones[zone] = self.spread.get((app.name, zone), 0)
            if zones[one.zone] + 1 - min(zones.values()) > app.skew:
                return "skew"
        return ""

    def movable(self, name: str) -> bool:
        app = self.apps[self.of[name]]
        return app.owner not in ("", "DaemonSet") and app.allowed != 0

    def moved(self, moves: Iterable[Move]) -> Yard:
        """The yard after the moves; raises where one of them is not legal when it is taken."""
        yard = self.copy()
        for move in moves:
            name = move.key.partition("/")[2]
            if yard.where[name] != move.source:
                raise AssertionError(f"{name} is on {yard.where[name]}, not on {move.source}")
            if not yard.movable(name):
                raise AssertionError(f"{name} is not to be moved")
            yard.drop(name)
            why = yard.refusal(yard.apps[yard.of[name]], move.to)
            if why:
                raise AssertionError(f"{name} does not fit {move.to}: {why}")
            yard.put(name, yard.of[name], move.to)
        return yard

    # -- as the engine reads it ----------------------------------------------------------------------------------

    def nodes(self) -> list[Node]:
        return [
            node(
                host.name,
                cpu=f"{host.cpu}m",
                memory=str(host.memory),
                pods=str(host.pods),
                labels={HOST: host.name, ZONE: host.zone, "pool": host.pool},
                taints=(taint("dedicated", "x"),) if host.tainted else (),
            )
            for host in self.hosts.values()
        ]

    def pods(self) -> list[Pod]:
        return [pod_of(self.apps[self.of[name]], name, at) for name, at in self.where.items()]

    def budgets(self) -> list[PodDisruptionBudget]:
        return [
            PodDisruptionBudget(
                metadata=ObjectMeta(name=app.name, namespace="default"),
                spec=PodDisruptionBudgetSpec(selector=selector(app=app.name)),
                status=PodDisruptionBudgetStatus(disruptions_allowed=app.allowed),
            )
            for app in self.apps.values()
            if app.allowed is not None
        ]

    def sandbox(self) -> Sandbox:
        cluster = Cluster()
        pods = self.pods()
        cluster.load(self.nodes(), self.budgets(), pods)
        return Sandbox(cluster, build_frameworks(default_configuration()), pods)


def pod_of(app: App, name: str, host: str = "") -> Pod:
    term = PodAffinityTerm(topology_key=HOST, label_selector=selector(app=app.name))
    apart = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    spread = TopologySpreadConstraint(
        max_skew=app.skew,
        topology_key=ZONE,
        when_unsatisfiable="DoNotSchedule",
        label_selector=selector(app=app.name),
    )
    owner = OwnerReference(api_version="apps/v1", kind=app.owner, name=app.name, uid=f"uid-{app.name}", controller=True)
    return pod(
        name,
        uid=f"uid-{name}",
        cpu=f"{app.cpu}m",
        memory=str(app.memory),
        labels={"app": app.name},
        node_name=host,
        phase="Running" if host else "Pending",
        affinity=apart if app.apart else None,
        topology_spread_constraints=(spread,) if app.skew else (),
        node_selector={"pool": app.pool} if app.pool else {},
        tolerations=(toleration("dedicated", "Exists"),) if app.tolerates else (),
        owner_references=(owner,) if app.owner else (),
    )


def random_yard(seed: int, hosts: int, *, fill: float, apps: int = 24, cpu: int = 16_000) -> Yard:
    """About so full; with all that makes moves hard."""
    dice = Random(seed)
    yard = Yard(
        {
            f"n{at:03}": Host(
                f"n{at:03}",
                cpu,
                4 * cpu // 1000 * GI,
                dice.choice([12, 30, 110]),
                "abc"[at % 3],
                pool=dice.choice(["", "", "fast"]),
                tainted=dice.random() < 0.05,
            )
            for at in range(hosts)
        },
        {f"app{at}": _random_app(dice, f"app{at}", cpu) for at in range(apps)},
    )
    names = list(yard.apps)
    for host in yard.hosts.values():
        wanted = host.cpu * min(1.0, max(0.0, fill + dice.uniform(-0.3, 0.3)))
        for _ in range(40):
            if host.cpu - yard.free(host.name)[0] >= wanted:
                break
            app = yard.apps[dice.choice(names)]
            if not yard.refusal(app, host.name):
                name = f"{app.name}-{len(yard.where)}"
                yard.put(name, app.name, host.name)
    return yard


def _random_app(dice: Random, name: str, cpu: int) -> App:
    return App(
        name,
        cpu=dice.choice([cpu // 64, cpu // 32, cpu // 16, cpu // 8, cpu * 3 // 16, cpu // 4]),
        memory=dice.choice([1, 2, 4, 8]) * GI * cpu // 16_000,
        apart=dice.random() < 0.15,
        skew=dice.choice([0, 0, 0, 0, 1, 2]),
        pool=dice.choice(["", "", "", "fast"]),
        tolerates=dice.random() < 0.1,
        allowed=dice.choice([None, None, None, 1, 5, 0]),
        owner=dice.choice(["ReplicaSet"] * 6 + ["StatefulSet", "DaemonSet", ""]),
    )


# -- a greedy planner, and the best there is ---------------------------------------------------------------------------


def greedy(yard: Yard, shape: App) -> list[Move] | None:
    """Node by node, those first that lack least: the largest pods leave until the shape fits, each to the first node
    that takes it. The shortest plan of those that work out."""
    best: list[Move] | None = None
    for host in yard.hosts:
        found = _greedy_on(yard, shape, host)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
    return best


def _greedy_on(yard: Yard, shape: App, host: str) -> list[Move] | None:
    trial = yard.copy()
    moves: list[Move] = []
    victims = sorted(
        (name for name in yard.on(host) if yard.movable(name)),
        key=lambda name: (-yard.apps[yard.of[name]].cpu, name),
    )
    while trial.refusal(shape, host):
        if not victims:
            return None
        name = victims.pop(0)
        trial.drop(name)
        app = yard.apps[yard.of[name]]
        to = next((other for other in trial.hosts if other != host and not trial.refusal(app, other)), None)
        if to is None:
            return None
        trial.put(name, app.name, to)
        moves.append(Move(f"default/{name}", host, to))
    return moves


def fewest_moves(yard: Yard, shape: App, most: int) -> int | None:
    """The least number of moves there is, found by trying everything; None if it takes more than `most`."""
    seen = {tuple(sorted(yard.where.items()))}
    level = [yard]
    for count in range(most + 1):
        if any(not one.refusal(shape, host) for one in level for host in one.hosts):
            return count
        following = []
        for one in level:
            for after in _every_move(one):
                key = tuple(sorted(after.where.items()))
                if key not in seen:
                    seen.add(key)
                    following.append(after)
        level = following
    return None


def _every_move(yard: Yard) -> Iterable[Yard]:
    for name, host in list(yard.where.items()):
        if not yard.movable(name):
            continue
        without = yard.copy()
        without.drop(name)
        for to in yard.hosts:
            if to != host and not without.refusal(yard.apps[yard.of[name]], to):
                after = without.copy()
                after.put(name, yard.of[name], to)
                yield after


def least_nodes(sizes: Sequence[int], room: int) -> int:
    """How many bins of one size a few numbers take, by trying everything."""
    if not sizes:
        return 0
    for count in range(1, len(sizes) + 1):
        if _fit_into(sorted(sizes, reverse=True), [room] * count):
            return count
    raise AssertionError("one of them is larger than a bin")


def _fit_into(sizes: Sequence[int], bins: list[int]) -> bool:
    if not sizes:
        return True
    for at in range(len(bins)):
        if bins[at] >= sizes[0] and bins[at] not in bins[:at]:
            bins[at] -= sizes[0]
            if _fit_into(sizes[1:], bins):
                return True
            bins[at] += sizes[0]
    return False
