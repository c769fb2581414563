"""Random histories of nodes, agents and the controllers that look after them, in virtual time; and what must hold.

Everything is drawn from the seed: zones, how wrong everybody's clock is, who dies and comes back, when the controllers
are restarted, sleep or see no leases, which of their writes are refused. The checks know nothing of how it is done:
they look at what is written, when, and what was stored just before.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.effects import DeleteObject, Effect, PatchStatus, ReconcileResult, RecordEvent, UpdateObject
from situate.core.reconcile.nodes.cleanup import clean_up
from situate.core.reconcile.nodes.fencing import DRIFT, FAST, KUBERNETES, NodeProfile
from situate.core.reconcile.nodes.zones import taint_lost_nodes
from situate.core.reconcile.table import reconcile
from situate.loop.controllers.cache import Collect, ControllerCache, Empty, Reconcile, ServedKind, Survey, Task

Raw = dict[str, Any]
NODES, PODS = ServedKind("v1", "Node", "nodes"), ServedKind("v1", "Pod", "pods")
SERVED = {"Node": NODES, "Pod": PODS}
ZONE = "topology.kubernetes.io/zone"
LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
START = 1_700_000_000_000
SECOND, MINUTE = 1_000, 60_000


@dataclass
class Agent:
    name: str
    rate: float
    """How fast its clock is."""
    alive: bool = True
    ready: str = "True"
    number: int = 0
    sent: float = START
    """When it sent the last renewal that was accepted."""


@dataclass
class Found:
    """What happened, for the checks."""

    given_up: list[tuple[float, str, str]] = field(default_factory=list)
    evicted: list[tuple[float, str]] = field(default_factory=list)
    taken_back: int = 0
    unknown: int = 0


class History:
    def __init__(self, seed: int, profile: NodeProfile | None = None) -> None:
        self.dice = random.Random(seed)
        self.profile = profile or self.dice.choice((KUBERNETES, FAST))
        self.rate = self.drift()
        self.real: float = START
        self.version = 0
        self.store: dict[tuple[str, str], Raw] = {}
        self.agents: dict[str, Agent] = {}
        self.found = Found()
        self.refuses = self.dice.choice((0.0, 0.0, 0.05, 0.3))
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.count = 0
        self.up_since: float | None = None
        """By the controllers' clock, from when on they have seen everything; None: they do not run, or do not see."""
        self.gone_at: dict[str, float] = {}
        self.ending: dict[str, str] = {}
        """Pods that are being deleted, and their nodes."""
        self.view: ControllerCache | None = None
        self.due: list[tuple[int, int, Task]] = []
        self.waiting: dict[Task, int] = {}

    def drift(self) -> float:
        return self.dice.choice((1.0, 1.0, 1 - DRIFT, 1 + DRIFT, self.dice.uniform(1 - DRIFT, 1 + DRIFT)))

    @property
    def now(self) -> int:
        """The controllers' clock."""
        return int(START + (self.real - START) * self.rate)

    # The store

    def put(self, body: Raw) -> None:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.store[body["kind"], body["metadata"]["name"]] = body
        if self.view is not None:
            self.call(self.view.put(SERVED[body["kind"]], msgspec.json.encode(body), self.now))

    def drop(self, kind: str, name: str) -> None:
        body = self.store.pop((kind, name))
        self.ending.pop(name, None)
        self.version += 1
        if kind == "Node":
            self.gone_at[name] = self.real
        if self.view is not None:
            space = body["metadata"].get("namespace", "")
            self.call(self.view.drop(SERVED[kind], space, name, self.version, self.now))

    def all(self, kind: str) -> list[Raw]:
        return [body for (found, _), body in self.store.items() if found == kind]

    @staticmethod
    def ready(body: Raw) -> str:
        conditions = body["status"].get("conditions", [])
        return next((one["status"] for one in conditions if one["type"] == "Ready"), "")

    # Nodes and their agents

    def add_node(self, name: str, zone: str) -> None:
        self.agents[name] = Agent(name, self.drift())
        self.register(self.agents[name], zone)
        self.renew(self.agents[name])
        self.after(self.dice.uniform(0, self.profile.renew_ms), lambda: self.beat(name))

    def register(self, agent: Agent, zone: str) -> None:
        meta = {"name": agent.name, "uid": f"node-{self.version}", "labels": {ZONE: zone}}
        meta["creationTimestamp"] = format_time(int(self.real))
        self.put({"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": {}, "status": self.status(agent)})

    def status(self, agent: Agent) -> Raw:
        # What an agent says of times is nonsense here, as nobody should look at it.
        said = format_time(self.dice.randrange(2_000_000_000_000))
        return {
            "conditions": [
                {"type": kind, "status": status, "lastHeartbeatTime": said, "lastTransitionTime": said}
                for kind, status in (("MemoryPressure", "False"), ("Ready", agent.ready))
            ]
        }

    def renew(self, agent: Agent) -> None:
        agent.number += 1
        agent.sent = self.real
        if self.view is not None:
            spec = {"renewTime": f"{agent.number}"}
            body = {"metadata": {"name": agent.name, "uid": agent.name, "resourceVersion": "1"}, "spec": spec}
            self.view.renewed(msgspec.json.encode(body), self.now)

    def beat(self, name: str) -> None:
        """An agent that lives renews its lease, and puts right what is said of its node and its pods."""
        agent = self.agents[name]
        if agent.alive:
            self.renew(agent)
            body = self.store.get(("Node", name))
            if body is not None and self.ready(body) != agent.ready:
                self.put({**body, "metadata": dict(body["metadata"]), "status": self.status(agent)})
            for pod in [pod for pod, node in self.ending.items() if node == name]:
                self.drop("Pod", pod)
        self.after(self.profile.renew_ms / agent.rate, lambda: self.beat(name))

    def add_pod(self, node: str) -> None:
        keys = [{"key": key, "operator": "Exists", "effect": "NoExecute"} for key in LOST]
        seconds = self.dice.choice((self.profile.toleration_s, self.profile.toleration_s, 0, 30, None, -1))
        tolerations: list[Raw] = []
        if seconds is None:
            tolerations = keys
        elif seconds >= 0:
            tolerations = [{**one, "tolerationSeconds": seconds} for one in keys]
        name = f"pod-{self.version}"
        meta = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": format_time(int(self.real))}
        spec = {"nodeName": node, "tolerations": tolerations}
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.put({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status})

    # The controllers

    def start(self) -> None:
        """Controllers that remember nothing see what is stored, and begin."""
        self.view = None
        view = ControllerCache((NODES, PODS), self.profile)
        self.due, self.waiting = [], {}
        for body in self.dice.sample(list(self.store.values()), len(self.store)):
            view.put(SERVED[body["kind"]], msgspec.json.encode(body), self.now)
        assert view.heartbeats is not None
        self.view = view
        self.awake()
        self.call(list(view.everything()))

    def awake(self) -> None:
        if self.view is not None and self.view.heartbeats is not None:
            self.view.heartbeats.begin(self.now)
            self.up_since = self.now
            self.call(list(self.view.all_nodes()))

    def blind(self) -> None:
        if self.view is not None and self.view.heartbeats is not None:
            self.view.heartbeats.end()
            self.up_since = None

    def stop(self) -> None:
        self.view, self.up_since, self.due, self.waiting = None, None, [], {}

    def call(self, tasks: list[Task]) -> None:
        for task in tasks:
            if not isinstance(task, Collect | Empty):
                self.plan(task, self.now + 100 if isinstance(task, Survey) else self.now)

    def plan(self, task: Task, due: int) -> None:
        known = self.waiting.get(task)
        if known is None or due < known:
            self.waiting[task] = due
            self.count += 1
            heapq.heappush(self.due, (due, self.count, task))

    def turn(self) -> None:
        """The controller that is due next."""
        due, _, task = heapq.heappop(self.due)
        if self.view is None or self.waiting.get(task) != due:
            return
        del self.waiting[task]
        outcome = self.outcome(self.view, task)
        for effect in outcome.effects:
            if self.dice.random() < self.refuses:
                self.plan(task, self.now + 50)
                return
            self.check(effect)
            self.perform(effect)
        if outcome.requeue_at is not None:
            assert outcome.requeue_at > self.now, f"{task} asks to be called again at once"
            self.plan(task, outcome.requeue_at)

    def outcome(self, view: ControllerCache, task: Task) -> ReconcileResult:
        heartbeats = view.heartbeats
        assert heartbeats is not None
        if isinstance(task, Survey):
            return (taint_lost_nodes if task.of == "zones" else clean_up)(view.objects, heartbeats, self.now)
        assert isinstance(task, Reconcile)
        one: Any = view.objects.get(task.kind, task.namespace, task.name)
        return ReconcileResult() if one is None else reconcile(one, view.objects, self.now, heartbeats=heartbeats)

    def perform(self, effect: Effect) -> None:
        if isinstance(effect, RecordEvent) or effect.ref.kind == "Lease":
            return
        body = self.store[effect.ref.kind, effect.ref.name]
        meta = dict(body["metadata"])
        if isinstance(effect, DeleteObject):
            if effect.grace_s == 0:
                self.drop("Pod", effect.ref.name)
            else:
                self.ending[effect.ref.name] = body["spec"]["nodeName"]
                self.put({**body, "metadata": {**meta, "deletionTimestamp": format_time(self.now)}})
            return
        assert isinstance(effect, PatchStatus | UpdateObject)
        assert effect.resource_version == meta["resourceVersion"]
        part = "status" if isinstance(effect, PatchStatus) else "spec"
        patch = effect.patch if part == "status" else effect.patch["spec"]
        self.put({**body, "metadata": meta, part: {**body[part], **_without_none(patch)}})

    # What must hold, of every write

    def check(self, effect: Effect) -> None:
        if isinstance(effect, UpdateObject):
            self.check_taints(effect)
        elif isinstance(effect, PatchStatus) and effect.ref.kind == "Node":
            self.found.unknown += 1
            agent = self.agents[effect.ref.name]
            silent = (self.real - agent.sent) * self.rate
            assert silent >= self.profile.grace_ms, f"{agent.name} was heard of {silent} ms ago"
            assert self.real >= agent.sent + int(self.profile.lease_ms * (1 - DRIFT)) / agent.rate, (
                "its agent may still run pods"
            )
        elif isinstance(effect, DeleteObject) and effect.ref.kind == "Pod":
            self.check_deleted(effect)

    def check_taints(self, effect: UpdateObject) -> None:
        body = self.store["Node", effect.ref.name]
        had, has = (_given_up(spec) for spec in (body["spec"], effect.patch["spec"]))
        if had and not has and self.ready(body) != "True":
            self.found.taken_back += 1
            assert not self.some_up(), "taken back though not everything is lost"
        if not has or had:
            return
        self.check_calm()
        zone = body["metadata"]["labels"][ZONE]
        members = [one for one in self.all("Node") if one["metadata"]["labels"][ZONE] == zone]
        lost = sum(self.ready(one) != "True" for one in members)
        apart = 10 * SECOND
        if len(members) > lost > 2 and lost / len(members) >= 0.55:
            assert len(members) > 50, f"{lost} of {len(members)} are lost, and one is given up"
            apart = 100 * SECOND
        for at, other, name in self.found.given_up:
            assert other != zone or self.now - at >= apart, f"{effect.ref.name} and {name} within {self.now - at} ms"
        self.found.given_up.append((self.now, zone, effect.ref.name))

    def check_deleted(self, effect: DeleteObject) -> None:
        pod = self.store["Pod", effect.ref.name]
        name = pod["spec"]["nodeName"]
        node = self.store.get(("Node", name))
        if effect.grace_s == 0:
            assert node is None, "forced, and the node is there"
            missing = (self.real - self.gone_at[name]) * self.rate
            assert missing >= self.profile.absent_ms - 1, f"its node is gone for only {missing} ms"
            return
        assert node is not None, "its node is gone, and it is not forced"
        assert _given_up(node["spec"]), "evicted without a reason"
        self.check_calm()
        self.found.evicted.append((self.now, effect.ref.name))
        agent, state = self.agents[name], self.ready(node)
        assert state != "True", "evicted from a node that is ready"
        if state == "Unknown":
            assert self.real >= agent.sent + int(self.profile.lease_ms * (1 - DRIFT)) / agent.rate, (
                "its agent may still run it"
            )

    def check_calm(self) -> None:
        """Nobody is made to leave soon after a beginning, nor when everything is lost."""
        assert self.up_since is not None, "given up by somebody who sees nothing"
        assert self.now >= self.up_since + self.profile.grace_ms, "given up too soon after a beginning"
        assert self.some_up(), "given up though everything is lost"

    def some_up(self) -> bool:
        return any(self.ready(one) == "True" for one in self.all("Node"))

    # Time

    def after(self, ms: float, do: Callable[[], None]) -> None:
        self.count += 1
        heapq.heappush(self.events, (self.real + ms, self.count, do))

    def run(self, ms: float) -> None:
        end = self.real + ms
        while True:
            controllers = START + (self.due[0][0] - START) / self.rate if self.due else float("inf")
            others = self.events[0][0] if self.events else float("inf")
            if min(controllers, others) > end:
                break
            if controllers <= others:
                # The clock has whole milliseconds: it must not be short of what is due.
                self.real = max(self.real, controllers)
                while self.now < self.due[0][0]:
                    self.real += 0.1
                self.turn()
            else:
                self.real, _, do = heapq.heappop(self.events)
                do()
        self.real = end


def _given_up(spec: Mapping[str, Any]) -> bool:
    return any(one["key"] in LOST and one["effect"] == "NoExecute" for one in spec.get("taints") or ())


def _without_none(patch: Mapping[str, Any]) -> Raw:
    return {name: [] if value is None else value for name, value in patch.items()}


# What goes wrong


def troubled(seed: int, profile: NodeProfile | None = None) -> History:
    """A whole history: trouble, then peace, after which everything must be well."""
    history = History(seed, profile)
    dice = history.dice
    zones = [f"zone-{number}" for number in range(dice.randint(1, 4))]
    large = seed % 20 == 0
    for number in range(60 if large else dice.choice((1, 3, 6, 10, 14))):
        history.add_node(f"node-{number}", zones[0] if large and number < 54 else dice.choice(zones))
    for name in list(history.agents):
        for _ in range(dice.randrange(3)):
            history.add_pod(name)
    history.start()
    history.run(dice.uniform(0, 2 * MINUTE))
    for _ in range(dice.randint(2, 7)):
        _fault(history, dice, zones)
        history.run(dice.choice((dice.uniform(0, MINUTE), dice.uniform(0, 6 * MINUTE))))
    _peace(history)
    _losses(history)
    return history


def _fault(history: History, dice: random.Random, zones: list[str]) -> None:
    agents = list(history.agents.values())
    zone = dice.choice(zones)
    members = [one for one in agents if _zone(history, one.name) == zone]
    match dice.randrange(10):
        case 0 | 1:
            _die(dice.sample(agents, dice.randint(1, max(1, len(agents) // 5))))
        case 2:
            _die(dice.sample(members, int(len(members) * dice.uniform(0.4, 1))))
        case 3:
            _die(members if dice.random() < 0.5 else agents)
        case 4 | 5:
            for one in agents:
                one.alive = one.alive or dice.random() < 0.7
        case 6:
            one = dice.choice(agents)
            one.ready = "False" if one.ready == "True" else "True"
        case 7:
            history.stop()
            history.run(dice.choice((10, 10 * SECOND, 10 * MINUTE)))
            history.start()
        case 8:
            history.blind()
            history.run(dice.uniform(0, 2 * MINUTE))
            history.awake()
        case _:
            one = dice.choice(agents)
            if ("Node", one.name) in history.store:
                where = _zone(history, one.name)
                history.drop("Node", one.name)
                history.run(dice.choice((SECOND, 20 * SECOND, 90 * SECOND)))
                history.register(one, where)


def _die(agents: list[Agent]) -> None:
    for one in agents:
        one.alive = False


def _zone(history: History, name: str) -> str:
    body = history.store.get(("Node", name))
    return "" if body is None else body["metadata"]["labels"][ZONE]


def _peace(history: History) -> None:
    for one in history.agents.values():
        one.alive, one.ready = True, "True"
    if history.view is None:
        history.start()
    history.run(3 * MINUTE)
    for body in history.all("Node"):
        assert history.ready(body) == "True", f"{body['metadata']['name']} is well, and nobody says so"
        assert not body["spec"].get("taints"), f"{body['metadata']['name']} is well, and still tainted"
    for pod in history.all("Pod"):
        assert "deletionTimestamp" not in pod["metadata"], "deleted, and still there"
        ready = next(one for one in pod["status"]["conditions"] if one["type"] == "Ready")
        assert ready["status"] == "True", "its node is back, and it is not ready"


def _losses(history: History) -> None:
    """Some of a zone die for good, and most do not. They are given up, and who does not tolerate that leaves them."""
    dice = history.dice
    zone = dice.choice([body["metadata"]["labels"][ZONE] for body in history.all("Node")])
    members = [one for one in history.agents.values() if _zone(history, one.name) == zone]
    dead = dice.sample(members, min(len(members) // 2, dice.randint(1, 4)))
    if not dead:
        return
    _die(dead)
    history.run(dice.uniform(0, 2) * history.profile.grace_ms)
    if dice.random() < 0.5:
        history.stop()
        history.run(dice.uniform(0, MINUTE))
        history.start()
    patience = 4 * history.profile.grace_ms + len(dead) * 15 * SECOND + history.profile.toleration_s * SECOND
    history.run(patience / min(history.rate, 1.0))
    names = [one.name for one in dead]
    for name in names:
        assert _given_up(history.store["Node", name]["spec"]), f"{name} is lost, and is not given up"
    for pod in history.all("Pod"):
        seconds = [one.get("tolerationSeconds", 10**9) for one in pod["spec"]["tolerations"]]
        if pod["spec"]["nodeName"] in names and min(seconds, default=0) <= history.profile.toleration_s:
            assert "deletionTimestamp" in pod["metadata"], "its node is lost, and it was not evicted"


__all__ = ["History", "troubled"]
