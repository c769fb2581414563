"""Who is called when: calling only those whom changes concern is enough."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.reconcile.world import STRUCTS, Raw, World, manifest, template, workload
from situate.core.model.apps import ManagedReplicaSet
from situate.core.model.managed import ManagedPod
from situate.core.reconcile.effects import ReconcileResult
from situate.core.reconcile.garbage import concerned_uids
from situate.core.reconcile.graph import OwnedObject
from situate.core.reconcile.objects import KINDS
from situate.core.reconcile.table import CONTROLLERS, Key, concerned, concerned_by_change, reconcile


class Driven(World):
    """Controllers are called for what changed, and when they asked to be; never for everything."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.due: dict[Key, None] = {}
        self.uids: dict[str, None] = {}
        self.later: dict[Key, int] = {}

    def note(self, old: Raw | None, new: Raw | None, before: OwnedObject | None) -> None:
        body: Raw = new or old or {}
        kind = STRUCTS.get((body["apiVersion"], body["kind"]))
        if kind is not None:
            was, now = (None if one is None else msgspec.convert(one, kind) for one in (old, new))
            self.due.update(dict.fromkeys(concerned_by_change(was, now, self.held)))
        after = None if new is None else self.graph.by_uid(body["metadata"]["uid"])
        self.uids.update(dict.fromkeys(concerned_uids(before, after, self.graph)))

    def put(self, body: Raw) -> Raw:
        old = self.bodies.get((body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]))
        before = None if old is None else self.graph.by_uid(old["metadata"]["uid"])
        new = super().put(body)
        self.note(old, new, before)
        return new

    def gone(self, body: Raw) -> None:
        before = self.graph.by_uid(body["metadata"]["uid"])
        super().gone(body)
        self.note(body, None, before)

    def settle(self) -> int:
        for key in [key for key, at in self.later.items() if at <= self.now]:
            del self.later[key]
            self.due[key] = None
        for passes in range(2_000):
            if self.due:
                key = self.dice.choice(list(self.due))
                del self.due[key]
                one: Any = self.held.get(*key)
                outcome = ReconcileResult() if one is None else reconcile(one, self.held, self.now)
                if outcome.requeue_at is not None:
                    self.later[key] = outcome.requeue_at
                if self.perform(outcome):
                    self.due[key] = None
            elif self.uids:
                uid = next(iter(self.uids))
                del self.uids[uid]
                self.perform(self.collector(uid))
            else:
                return passes
        raise AssertionError("no rest")


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), odds=st.integers(0, 10))
def test_whom_a_change_concerns_is_enough_to_bring_everything_to_rest(seed: int, odds: int) -> None:
    world = Driven(seed)
    for at in range(3):
        world.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{at}"}, "spec": {}})
    world.create(
        workload("Deployment", "web", replicas=3, strategy={"type": world.dice.choice(["Recreate", "RollingUpdate"])})
    )
    world.create(manifest("PodDisruptionBudget", "b", selector={"matchLabels": {"app": "web"}}, maxUnavailable=1))
    for kind, name in (("StatefulSet", "db"), ("DaemonSet", "log")):
        labels = {"matchLabels": {"app": name}}
        world.create(manifest(kind, name, selector=labels, template=template(app=name), replicas=2))
    job = {"spec": {"template": template(app="cj", restartPolicy="Never")}}
    world.create(manifest("CronJob", "c", schedule="*/2 * * * *", jobTemplate=job))
    world.fails = lambda _pod: world.dice.randrange(100) < odds
    changes: list[tuple[str, Raw]] = [
        ("Deployment/web", {"spec": {"template": template("v2")}}),
        ("Deployment/web", {"spec": {"replicas": 5}}),
        ("StatefulSet/db", {"spec": {"template": template("v2", app="db")}}),
        ("DaemonSet/log", {"spec": {"template": template("v2", app="log")}}),
        ("StatefulSet/db", {"spec": {"replicas": 1}}),
    ]
    world.dice.shuffle(changes)
    for which, patch in changes:
        kind, _, name = which.partition("/")
        world.patch(kind, name, patch)
        for _ in range(world.dice.randrange(5)):
            world.settle()
            world.tick()
        if world.names("Pod") and world.dice.random() < 0.5:
            world.delete("Pod", world.dice.choice(world.names("Pod")))
    for _ in range(45):
        world.settle()
        world.tick()
    world.settle()
    assert world.calls_left() == []
    world.delete("Deployment", "web", propagation="Foreground")
    for _ in range(4):
        world.settle()
        world.tick()
    world.settle()
    assert world.pods(app="web") == []
    assert world.calls_left() == []


def test_every_controller_has_a_kind_with_a_name() -> None:
    assert all(kind in KINDS for kind in CONTROLLERS)


@pytest.mark.parametrize(
    "kind, name, expected",
    [
        pytest.param(
            "Pod",
            "orphan",
            {("ReplicaSet", "rs"), ("Job", "j")},
            id="an orphan, all that may take it in",
        ),
        pytest.param("ReplicaSet", "rs", {("ReplicaSet", "rs")}, id="an object, its own controller"),
    ],
)
def test_whom_a_change_concerns(kind: str, name: str, expected: set[tuple[str, str]]) -> None:
    world = World()
    world.create(workload("ReplicaSet", "rs", replicas=1))
    world.create(manifest("Job", "j", template=template(restartPolicy="Never")))
    job = world.find("Job", "j")
    job["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    world.put(job)
    meta = {"name": "orphan", "namespace": "default", "labels": {"app": "web"}}
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {}})
    changed = world.held.get(STRUCTS["v1" if kind == "Pod" else "apps/v1", kind], "default", name)
    assert {(KINDS[key[0]][1], key[2]) for key in concerned(changed, world.held)} == expected


def test_a_pod_that_changes_its_labels_concerns_those_that_it_matched_before() -> None:
    world = World()
    world.create(workload("ReplicaSet", "rs", replicas=1))
    bare = {"name": "p", "namespace": "default", "labels": {"app": "web"}}
    world.create({"apiVersion": "v1", "kind": "Pod", "metadata": bare, "spec": {}})
    old = world.held.get(ManagedPod, "default", "p")
    world.patch("Pod", "p", {"metadata": {"labels": {"app": "other"}}})
    new = world.held.get(ManagedPod, "default", "p")
    assert concerned(new, world.held) == []
    assert concerned_by_change(old, new, world.held) == [(ManagedReplicaSet, "default", "rs")]
    assert concerned_by_change(new, new, world.held) == []
