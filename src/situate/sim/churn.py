"""What users and machines do to the cluster: actions drawn from a seed, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from msgspec.structs import replace

from situate.core.changes import Millis
from situate.core.model.devices import DeviceClass, ResourceClaim, ResourceSlice
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.requests import pod_requests
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from situate.core.model.tolerations import Taint
from situate.sim.devices.users import DeviceUsers
from situate.sim.faults import Faults
from situate.sim.kubelet import Kubelets
from situate.sim.storage import STATIC, draw_claim, give_back, make_volume, storage_classes, with_claim
from situate.sim.store import ObjectStore, ref_of
from situate.sim.timeline import Timeline
from situate.sim.workload import (
    APPS,
    FOREIGN,
    TOLERATIONS,
    ZONES,
    Features,
    Template,
    changed_node,
    draw_budget,
    draw_features,
    draw_gang,
    draw_node,
    draw_service,
    draw_template,
    in_gang,
    make_pod,
)

MAX_PODS: Final = 250
"""The pod limit of a world."""
SHRUNK_MILLI_CPU: Final = 50
KEPT: Final = (
    StorageClass,
    PersistentVolume,
    PersistentVolumeClaim,
    DeviceClass,
    ResourceSlice,
    ResourceClaim,
)
"""Objects that are not deleted at random."""
UNREACHABLE: Final = Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule")


@dataclass(frozen=True, slots=True)
class WorldScale:
    nodes: int
    templates: int
    gap_ms: Millis
    """The average time between two actions."""
    burst: int
    fullness: float
    """The pods' requests relative to the nodes' resources."""


def draw_scale(rng: Random) -> WorldScale:
    return WorldScale(
        nodes=rng.randint(2, 14),
        templates=rng.randint(2, 14),
        gap_ms=rng.choice((20, 60, 150, 400)),
        burst=rng.choice((1, 3, 8)),
        fullness=rng.uniform(0.5, 1.8),
    )


class Churn:
    """Runs until `stopped`."""

    def __init__(
        self,
        timeline: Timeline,
        rng: Random,
        store: ObjectStore,
        kubelets: Kubelets,
        faults: Faults,
        schedulers: Sequence[str],
        devices: DeviceUsers | None = None,
    ) -> None:
        self._devices = devices
        self.stopped = False
        self.serves_foreign = True
        """Bind the pods of the other scheduler here."""
        self._timeline = timeline
        self._rng = rng
        self._store = store
        self._kubelets = kubelets
        self._faults = faults
        self.features: Features = draw_features(rng)
        self.scale = draw_scale(rng)
        self._templates: list[Template] = [
            draw_template(rng, f"t{at}", self.features, schedulers) for at in range(self.scale.templates)
        ]
        self._made = 0
        self._acts = self._draw_acts()

    def begin(self) -> None:
        for _ in range(self.scale.nodes):
            self._add_node()
        for _ in range(self._rng.randint(0, 3)):
            self._add_object()
        if self.features.volumes:
            for one in storage_classes():
                self._store.put_other(one)
        self._next()

    def _next(self) -> None:
        self._timeline.after(1 + int(self._rng.expovariate(1 / self.scale.gap_ms)), self._act)

    def _act(self) -> None:
        if self.stopped:
            return
        acts, weights = zip(*self._acts, strict=True)
        self._rng.choices(acts, weights)[0]()
        self._next()

    def _draw_acts(self) -> list[tuple[Callable[[], None], float]]:
        """All actions with their weights; in each world some have weight 0."""
        rng, faults = self._rng, self._faults

        def sometimes(weight: float) -> float:
            return weight * rng.uniform(0.2, 1.0) if rng.random() < 0.6 else 0.0

        return [
            (self._create_pods, 10.0),
            (self._create_gang, 10 * self.features.gangs),
            (self._delete_pod, 2.0 + 10 * faults.pod_is_deleted),
            (self._ungate, 4.0 if self.features.gates else 0.0),
            (self._tolerate, sometimes(1.5)),
            (self._relabel_pod, sometimes(1.0)),
            (self._shrink_pod, sometimes(0.7)),
            (self._change_node, sometimes(4.0)),
            (self._add_node, sometimes(0.6)),
            (self._remove_node, sometimes(0.4)),
            (self._kill_node, 10 * faults.node_dies),
            (self._add_object, sometimes(0.5)),
            (self._remove_object, sometimes(0.4)),
            (self._add_volume, 3.0 if self.features.volumes else 0.0),
            (self._give_back, 1.0 if self.features.volumes else 0.0),
            (self._rival, 10 * faults.rival_binds),
            (self._serve_foreign, 3.0 if self.features.foreign else 0.0),
        ]

    def _number(self) -> int:
        self._made += 1
        return self._made

    # -- pods ----------------------------------------------------------------------------------------------------

    def _create_pods(self) -> None:
        """Create pods of one template; some reuse the name of a deleted pod."""
        if len(self._store.pods) >= MAX_PODS or self._too_full():
            self._delete_pod()
            return
        template = self._rng.choice(self._templates)
        for _ in range(self._rng.randint(1, self.scale.burst)):
            number = self._number()
            name = f"{template.name}-{number}"
            if self._rng.random() < 0.3:
                name = f"{template.name}-s{self._rng.randint(0, 5)}"
                if f"default/{name}" in self._store.pods:
                    continue
            pod = make_pod(template, name, f"u{number}", self._timeline.now)
            if self._devices is not None:
                pod = self._devices.asking(template.name, pod)
            if self._rng.random() < self.features.volumes:
                pod = with_claim(pod, f"c{number}")
                claim = draw_claim(self._rng, f"c{number}", f"u{self._number()}")
                self._timeline.after(self._rng.choice((0, 0, 1_500)), self._store.put_other, claim)
            self._store.put_pod(pod)

    def _create_gang(self) -> None:
        """Create a gang: some pods later, and its PodGroup before or after them."""
        if len(self._store.pods) >= MAX_PODS or self._too_full():
            return
        rng = self._rng
        template, gang = rng.choice(self._templates), draw_gang(rng, f"g{self._number()}")
        if gang.group is not None:
            self._timeline.after(rng.choice((0, 0, 2_000)), self._store.put_other, gang.group)
        for at in range(gang.pods):
            number = self._number()
            pod = make_pod(template, f"{gang.name}-{at}", f"u{number}", self._timeline.now)
            self._timeline.after(rng.choice((0, 0, 0, 3_000)), self._store.put_pod, in_gang(pod, gang))

    def _too_full(self) -> bool:
        waiting = sum(1 for pod in self._store.pods.values() if not pod.spec.node_name)
        return waiting > 4 + 8 * self.scale.fullness

    def _pick(self, fits: Callable[[Pod], bool]) -> Pod | None:
        found = [pod for pod in self._store.pods.values() if pod.metadata.deletion_timestamp is None and fits(pod)]
        return self._rng.choice(found) if found else None

    def _delete_pod(self) -> None:
        """Delete a pod: an unbound one at once, unless a finalizer holds it; a bound one has to stop first."""
        bound = self._rng.random() < 0.6
        pod = self._pick(lambda one: bool(one.spec.node_name) == bound)
        if pod is None:
            return
        if not bound and self._rng.random() < 0.7:
            self._store.drop_pod(ref_of(pod))
        else:
            self._store.mark_leaving(ref_of(pod), self._timeline.now)

    def _ungate(self) -> None:
        pod = self._pick(lambda one: bool(one.spec.scheduling_gates))
        if pod is not None:
            self._store.put_pod(replace(pod, spec=replace(pod.spec, scheduling_gates=())))

    def _tolerate(self) -> None:
        pod = self._pick(lambda one: not one.spec.node_name)
        if pod is not None:
            added = self._rng.choice(TOLERATIONS)
            if added not in pod.spec.tolerations:
                spec = replace(pod.spec, tolerations=(*pod.spec.tolerations, added))
                self._store.put_pod(replace(pod, spec=spec))

    def _relabel_pod(self) -> None:
        pod = self._pick(lambda one: True)
        if pod is not None:
            labels = {**pod.metadata.labels, "app": self._rng.choice(APPS)}
            self._store.put_pod(replace(pod, metadata=replace(pod.metadata, labels=labels)))

    def _shrink_pod(self) -> None:
        """Resize a running pod in place to a smaller request."""
        pod = self._pick(lambda one: one.status.phase == "Running" and pod_requests(one).milli_cpu > SHRUNK_MILLI_CPU)
        if pod is not None:
            container = pod.spec.containers[0]
            requests = {**container.resources.requests, "cpu": f"{SHRUNK_MILLI_CPU}m"}
            smaller = replace(container, resources=replace(container.resources, requests=requests))
            self._store.put_pod(replace(pod, spec=replace(pod.spec, containers=(smaller,))))

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _add_node(self) -> None:
        if len(self._store.nodes) < 2 * self.scale.nodes:
            number = self._number()
            self._put_node(draw_node(self._rng, f"n{number}", f"u{number}", self.features))

    def _put_node(self, node: Node) -> None:
        self._store.put_node(node if self._devices is None else self._devices.equipped(node))

    def _change_node(self) -> None:
        name = self._some_node()
        if name is not None:
            before = self._store.nodes[name]
            self._store.put_node(changed_node(self._rng, before, shrinks=True))

    def _remove_node(self) -> None:
        name = self._some_node()
        if name is not None and len(self._store.nodes) > 1:
            self._store.drop_node(name)

    def _some_node(self) -> str | None:
        names = [name for name in self._store.nodes if name not in self._kubelets.dead]
        return self._rng.choice(names) if names else None

    def _kill_node(self) -> None:
        """The machine fails; then its node is tainted, deleted, and sometimes comes back under the same name."""
        name = self._some_node()
        if name is None or len(self._store.nodes) < 2:
            return
        self._kubelets.dead[name] = None
        self._timeline.after(self._rng.randint(500, 5_000), self._taint_dead, name)

    def _taint_dead(self, name: str) -> None:
        node = self._store.nodes.get(name)
        if node is not None:
            self._store.put_node(replace(node, spec=replace(node.spec, taints=(*node.spec.taints, UNREACHABLE))))
        self._timeline.after(self._rng.randint(0, 15_000), self._give_up, name)

    def _give_up(self, name: str) -> None:
        self._store.drop_node(name)
        self._timeline.after(self._rng.randint(0, 20_000), self._come_back, name)

    def _come_back(self, name: str) -> None:
        del self._kubelets.dead[name]
        if self._rng.random() < 0.7 and name not in self._store.nodes:
            self._put_node(draw_node(self._rng, name, f"u{self._number()}", self.features))

    # -- other objects -------------------------------------------------------------------------------------------

    def _add_object(self) -> None:
        name = f"o{self._rng.randint(0, 3)}"
        if self._rng.random() < self.features.budgets:
            self._store.put_other(draw_budget(self._rng, name))
        else:
            self._store.put_other(draw_service(self._rng, name))

    def _remove_object(self) -> None:
        others = [one for one in self._store.others.values() if not isinstance(one, KEPT)]
        if others:
            self._store.drop_other(self._rng.choice(others))

    def _add_volume(self) -> None:
        volumes = [name for kind, name in self._store.others if kind == "PersistentVolume"]
        if len(volumes) < 2 * self.scale.nodes:
            self._store.put_other(make_volume(f"v{self._number()}", self._rng.choice(ZONES), STATIC))

    def _give_back(self) -> None:
        give_back(self._store)

    # -- other schedulers ----------------------------------------------------------------------------------------

    def _rival(self) -> None:
        """Another scheduler binds one of our pods to any node."""
        self._bind_somewhere(lambda one: one.spec.scheduler_name != FOREIGN)

    def _serve_foreign(self) -> None:
        if self.serves_foreign:
            self._bind_somewhere(lambda one: one.spec.scheduler_name == FOREIGN)

    def _bind_somewhere(self, fits: Callable[[Pod], bool]) -> None:
        pod = self._pick(lambda one: not one.spec.node_name and not one.spec.scheduling_gates and fits(one))
        if pod is not None and self._store.nodes:
            self._store.bind(ref_of(pod), self._rng.choice(list(self._store.nodes)))
