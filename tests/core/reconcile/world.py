"""A tiny cluster: an API server's store in memory, nodes that run pods, and nobody's clock but its own.

It is stricter than a real one where that finds faults: a list of effects that writes an object twice, expects a version
that is not there, or creates what is there, ends the test.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from situate.core.model.apps import Deployment
from situate.core.model.managed import ManagedNamespace, ManagedPod
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.api_values import format_time
from situate.core.reconcile.daemonset_nodes import node_of
from situate.core.reconcile.effects import (
    CreateObject,
    DeleteObject,
    Effect,
    EvictManagedPod,
    FinalizeNamespace,
    ObjectRef,
    PatchStatus,
    RebindPod,
    ReconcileResult,
    RecordEvent,
    UpdateObject,
    UpdateStatus,
)
from situate.core.reconcile.garbage import FOREGROUND, ORPHAN, collect
from situate.core.reconcile.graph import ObjectGraph, OwnedObject
from situate.core.reconcile.namespace import namespace
from situate.core.reconcile.objects import KINDS, ObjectIndex
from situate.core.reconcile.table import CONTROLLERS, reconcile

STRUCTS: Mapping[tuple[str, str], type] = {name: kind for kind, name in KINDS.items()}
START = 1_700_000_000_000
SECOND = 1_000
MAX_PASSES = 400

Raw = dict[str, Any]
Place = tuple[str, str, str]


def merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    found = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


BATCH = "batch.kubernetes.io/"


def with_job_selector(job: Raw, uid: str) -> Raw:
    """What the API server adds to a Job: labels and a selector by its uid."""
    spec, meta = job["spec"], job["metadata"]
    template = spec["template"]
    labels = {
        **(template.get("metadata", {}).get("labels") or {}),
        "controller-uid": uid,
        f"{BATCH}controller-uid": uid,
    }
    labels |= {"job-name": meta["name"], f"{BATCH}job-name": meta["name"]}
    return {
        **job,
        "metadata": {**meta, "labels": meta.get("labels") or labels},
        "spec": {
            **spec,
            "selector": {"matchLabels": {f"{BATCH}controller-uid": uid}},
            "template": {**template, "metadata": {**template.get("metadata", {}), "labels": labels}},
        },
    }


class World:
    def __init__(self, seed: int = 0, *, ready_after: int = 2, grace: int = 1, runs_for: int = 3) -> None:
        self.dice = random.Random(seed)
        self.now = START
        self.ready_after, self.grace, self.runs_for = ready_after, grace, runs_for
        self.fails: Callable[[Raw], bool] = lambda _pod: False
        self.bodies: dict[Place, Raw] = {}
        self.ages: dict[str, int] = {}
        self.version = 0
        self.held, self.graph = ObjectIndex(), ObjectGraph(KINDS.values())
        self.events: list[RecordEvent] = []
        self.requeue_at: list[int] = []
        self.watchers: list[Callable[[], None]] = []
        self.deleted: list[str] = []

    # The store

    def put(self, body: Raw) -> Raw:
        self.version += 1
        meta = body["metadata"]
        meta["resourceVersion"] = str(self.version)
        self.bodies[body["kind"], meta.get("namespace", ""), meta["name"]] = body
        kind = STRUCTS.get((body["apiVersion"], body["kind"]))
        if kind is not None:
            self.held.put(msgspec.convert(body, kind))
        self.graph.put(self.item(body))
        return body

    def item(self, body: Raw) -> OwnedObject:
        meta = msgspec.convert(body["metadata"], StoredMeta)
        ref = ObjectRef(body["apiVersion"], body["kind"], meta.namespace, meta.name, meta.uid)
        return OwnedObject(ref, meta, body["kind"].lower() + "s")

    def create(self, body: Raw) -> Raw:
        body = copy.deepcopy(dict(body))
        meta = body["metadata"]
        place = (body["kind"], meta.get("namespace", ""), meta["name"])
        if place in self.bodies:
            raise AssertionError(f"{place} is there already")
        space = self.bodies.get(("Namespace", "", place[1]))
        if space is not None and "deletionTimestamp" in space["metadata"]:
            raise AssertionError(f"{place} cannot be created: its namespace is being deleted")
        uid = f"uid-{self.version + 1}"
        if body["kind"] == "Job":
            body = dict(with_job_selector(body, uid))
            meta = body["metadata"]
        meta.update(uid=uid, generation=1, creationTimestamp=format_time(self.now))
        return self.put(body)

    def find(self, kind: str, name: str, namespace: str = "default") -> Raw:
        return self.bodies[kind, namespace, name]

    def all(self, kind: str) -> list[Raw]:
        return [body for place, body in sorted(self.bodies.items()) if place[0] == kind]

    def patch(self, kind: str, name: str, patch: Raw, namespace: str = "default") -> Raw:
        old = self.find(kind, name, namespace)
        new = merged(old, patch)
        notes = [one["metadata"].get("annotations") for one in (old, new)]
        if new.get("spec") != old.get("spec") or (kind == "Deployment" and notes[0] != notes[1]):
            new["metadata"]["generation"] += 1
        if new == old:
            raise AssertionError(f"a patch of {kind} {name} changes nothing: {patch}")
        self.put(new)
        return self.settle_deletion(new)

    def delete(self, kind: str, name: str, namespace: str = "default", propagation: str = "Background") -> None:
        body = copy.deepcopy(self.find(kind, name, namespace))
        meta = body["metadata"]
        finalizers = list(meta.get("finalizers", ()))
        extra = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
        if extra and extra not in finalizers:
            finalizers.append(extra)
        if finalizers:
            meta["finalizers"] = finalizers
        running = kind == "Pod" and body.get("spec", {}).get("nodeName") and not is_over(body)
        meta.setdefault("deletionTimestamp", format_time(self.now))
        if kind == "Namespace":
            body["status"] = {**body.get("status", {}), "phase": "Terminating"}
        self.put(body)
        if running and self.grace:
            self.ages[meta["uid"]] = 0
        else:
            self.settle_deletion(body)

    def settle_deletion(self, body: Raw) -> Raw:
        meta = body["metadata"]
        held = meta.get("finalizers") or body.get("spec", {}).get("finalizers")
        stays = body["kind"] == "Pod" and body["spec"].get("nodeName") and not is_over(body) and self.grace
        if meta.get("deletionTimestamp") and not held and not stays:
            self.gone(body)
        return body

    def gone(self, body: Raw) -> None:
        meta = body["metadata"]
        place = (body["kind"], meta.get("namespace", ""), meta["name"])
        if self.bodies.pop(place, None) is None:
            return
        kind = STRUCTS.get((body["apiVersion"], body["kind"]))
        if kind is not None:
            self.held.drop(kind, place[1], place[2])
        self.graph.drop(meta["uid"])
        self.deleted.append(f"{body['kind']}/{meta['name']}")

    # Effects

    def perform(self, outcome: ReconcileResult) -> int:
        written: list[Place] = []
        for effect in outcome.effects:
            place = (effect.ref.kind, effect.ref.namespace, effect.ref.name)
            if isinstance(effect, UpdateObject | UpdateStatus | PatchStatus | FinalizeNamespace):
                if place in written:
                    raise AssertionError(f"{place} is written twice in one list")
                written.append(place)
            self.perform_one(effect, place)
            for watcher in self.watchers:
                watcher()
        if outcome.requeue_at is not None:
            if outcome.requeue_at <= self.now and not outcome.effects:
                raise AssertionError("asked to look again at a time that has passed")
            self.requeue_at.append(outcome.requeue_at)
        # An event is no progress: a claim that waits for a volume says so whenever it is looked at.
        return sum(not isinstance(effect, RecordEvent) for effect in outcome.effects)

    def perform_one(self, effect: Effect, place: Place) -> None:
        kind, space, name = place
        if isinstance(effect, RecordEvent):
            self.events.append(effect)
            return
        if isinstance(effect, CreateObject):
            self.create(dict(effect.body))
            return
        body = self.bodies.get(place)
        if isinstance(effect, DeleteObject) and body is None:
            return
        assert body is not None, f"{place} is not there"
        meta = body["metadata"]
        assert meta["uid"] == effect.ref.uid, f"{place} is another one"
        if isinstance(effect, EvictManagedPod):
            self.delete(kind, name, space, "Background")
            return
        expected = effect.resource_version
        assert expected in ("", meta["resourceVersion"]), f"{place} has changed since it was read"
        if isinstance(effect, DeleteObject):
            self.delete(kind, name, space, effect.propagation)
        elif isinstance(effect, UpdateObject):
            self.patch(kind, name, dict(effect.patch), space)
        elif isinstance(effect, PatchStatus):
            self.patch(kind, name, {"status": dict(effect.patch)}, space)
        elif isinstance(effect, UpdateStatus):
            changes = effect.annotations is not None or body.get("status") != effect.status
            assert changes, f"the status of {place} is written and does not change"
            metadata = body["metadata"]
            if effect.annotations is not None:
                metadata = {**metadata, "annotations": dict(effect.annotations)}
            self.put({**body, "metadata": metadata, "status": copy.deepcopy(dict(effect.status))})
        elif isinstance(effect, RebindPod):
            raise AssertionError(f"{place} is rebound, and no node is lost here")
        else:
            spec = {**body.get("spec", {}), "finalizers": list(effect.finalizers)}
            self.settle_deletion(self.put({**body, "spec": spec}))

    # Controllers

    def calls(self) -> list[Callable[[], ReconcileResult]]:
        found: list[Callable[[], ReconcileResult]] = []
        for place, body in sorted(self.bodies.items()):
            kind = STRUCTS.get((body["apiVersion"], body["kind"]))
            uid = body["metadata"]["uid"]
            if kind in CONTROLLERS:
                found.append(lambda kind=kind, place=place: self.controller(kind, place))  # type: ignore[misc]
            if kind is ManagedNamespace:
                found.append(lambda place=place: self.namespace_controller(place))  # type: ignore[misc]
            found.append(lambda uid=uid: self.collector(uid))  # type: ignore[misc]
        return found

    def controller(self, kind: type, place: Place) -> ReconcileResult:
        one: Any = self.held.get(kind, place[1], place[2])
        return ReconcileResult() if one is None else reconcile(one, self.held, self.now)

    def namespace_controller(self, place: Place) -> ReconcileResult:
        one = self.held.get(ManagedNamespace, "", place[2])
        return ReconcileResult() if one is None else namespace(one, self.graph, self.now)

    def collector(self, uid: str) -> ReconcileResult:
        item = self.graph.by_uid(uid)
        return ReconcileResult() if item is None else collect(item, self.graph)

    def one_pass(self) -> int:
        """Every controller once, in an order that the dice decide."""
        calls = self.calls()
        self.dice.shuffle(calls)
        done = 0
        for call in calls:
            first, second = call(), call()
            assert first == second, "the same state gave two answers"
            done += self.perform(first)
        return done

    def settle(self) -> int:
        """Controllers alone, until none has anything to do; how many passes that took."""
        for passes in range(MAX_PASSES):
            if not self.one_pass():
                return passes
        raise AssertionError(f"controllers do not come to rest: {self.calls_left()}")

    def calls_left(self) -> list[Effect]:
        return [effect for call in self.calls() for effect in call().effects]

    # Nodes

    def tick(self, seconds: int = 1) -> None:
        """Time passes, and with it pods: bound, running, ready, ended, gone."""
        self.now += seconds * SECOND
        for pod in self.all("Pod"):
            self.live(copy.deepcopy(pod))

    def live(self, pod: Raw) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        age = self.ages[meta["uid"]] = self.ages.get(meta["uid"], -1) + 1
        if meta.get("deletionTimestamp"):
            if age >= self.grace and not is_over(pod):
                pod["status"] = {**pod.get("status", {}), "phase": "Failed"}
                self.put(pod)
                self.settle_deletion(pod)
            return
        if is_over(pod):
            return
        if not spec.get("nodeName"):
            tied = node_of(msgspec.convert(pod, ManagedPod))
            spec["nodeName"] = tied or f"n{self.dice.randrange(3)}"
            self.put({**pod, "status": status_of("Pending")})
        elif pod.get("status", {}).get("phase") != "Running":
            self.put({**pod, "status": status_of("Running", "False", self.now)})
        elif self.fails(pod):
            self.put({**pod, "status": self.ended("Failed", 1)})
        elif spec.get("restartPolicy") in ("Never", "OnFailure") and age >= self.runs_for:
            self.put({**pod, "status": self.ended("Succeeded", 0)})
        elif age >= self.ready_after and not is_ready(pod):
            self.put({**pod, "status": status_of("Running", "True", self.now)})

    def ended(self, phase: str, code: int) -> Raw:
        terminated = {"exitCode": code, "finishedAt": format_time(self.now)}
        return {**status_of(phase), "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self.settle()
            self.tick()
        self.settle()

    # What tests ask

    def pods(self, **labels: str) -> list[Raw]:
        return [pod for pod in self.all("Pod") if labels.items() <= pod["metadata"].get("labels", {}).items()]

    def names(self, kind: str) -> list[str]:
        return [body["metadata"]["name"] for body in self.all(kind)]

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]


def is_over(pod: Raw) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_ready(pod: Raw) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True" for each in pod.get("status", {}).get("conditions", [])
    )


def is_live(pod: Raw) -> bool:
    return not is_over(pod) and "deletionTimestamp" not in pod["metadata"]


def status_of(phase: str, ready: str = "", now: int = 0) -> Raw:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": format_time(now)}
    return {"phase": phase, "conditions": [condition] if ready else []}


def condition(body: Raw, kind: str) -> Raw:
    return next((each for each in body["status"].get("conditions", []) if each["type"] == kind), {})


def template(image: str = "v1", app: str = "web", **spec: Any) -> Raw:
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def manifest(kind: str, name: str, namespace: str = "default", **spec: Any) -> Raw:
    version = {"Job": "batch/v1", "CronJob": "batch/v1", "PodDisruptionBudget": "policy/v1", "ConfigMap": "v1"}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": version.get(kind, "apps/v1"), "kind": kind, "metadata": meta, "spec": spec}


def workload(kind: str, name: str = "web", **spec: Any) -> Raw:
    """A workload that makes and selects pods by the label app=web."""
    return manifest(kind, name, selector={"matchLabels": {"app": "web"}}, **{"template": template(), **spec})


__all__ = [
    "Deployment",
    "ManagedPod",
    "World",
    "condition",
    "is_live",
    "is_over",
    "is_ready",
    "manifest",
    "status_of",
    "template",
    "workload",
]
