"""The cluster: nodes, bound pods and the objects around them, as columns. The only writer.

Readers take a `View`. Every change leaves a trace by which cached verdicts notice it: `epoch` moves when a node
changes, `touched` lists the rows where a pod came or went, and tallies, terms and object families have versions of
their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final, Protocol

import numpy.typing as npt

from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.base import INT64_MAX
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.timestamp import epoch_ms
from situate.core.state.attached import AttachedTable
from situate.core.state.claim_stand_ins import ClaimStandIns
from situate.core.state.classes import FIXED_RESOURCES, ClassTable, PodClass, signature
from situate.core.state.devices import DeviceTable
from situate.core.state.images import ImageTable
from situate.core.state.nodes import NONZERO_CPU, NONZERO_MEMORY, NodeTable
from situate.core.state.objects import ObjectTable
from situate.core.state.pods import NO_TIME, PodTable, leaving_as
from situate.core.state.ports import PortTable
from situate.core.state.stand_ins import StandIns
from situate.core.state.terms import CarriedTerms
from situate.core.state.topology import Tallies
from situate.core.state.vocab import Vocab
from situate.core.state.volumes import VolumeTable
from situate.core.versions import DEFAULT, KubernetesRules

TOUCHED_LIMIT: Final = 1 << 16
"""How many touched rows are remembered; a reader further behind starts from scratch."""

IDLE_CLASSES: Final = 1 << 14
"""How many classes without a bound pod are kept, for pods of the same class to come."""

FINISHED_PHASES: Final = frozenset({"Succeeded", "Failed"})


class Follower(Protocol):
    """Something that is computed row by row from a node and the load on it."""

    def update(self, row: int) -> None:
        """A pod came to the row, or left it."""


class Cluster:
    """Nodes and pods come, change and go; each method returns whether anything changed."""

    def __init__(self, rules: KubernetesRules = DEFAULT) -> None:
        self.rules = rules
        self.resources = Vocab(FIXED_RESOURCES)
        self.nodes = NodeTable(self.resources)
        self.pods = PodTable()
        self.classes = ClassTable(self.resources, rules)
        self.stand_ins = StandIns()
        self.ports = PortTable()
        self.images = ImageTable()
        self.volumes = VolumeTable()
        self.objects = ObjectTable()
        self.claim_stand_ins = ClaimStandIns(self.objects.devices)
        self.attached = AttachedTable(self.nodes, self.pods, self.volumes, self.objects.storage)
        self.devices: dict[str, DeviceTable] = {}
        """By the resource that stands for whole devices, built when they are first asked for."""
        self.tallies = Tallies()
        self.terms = CarriedTerms()
        self.epoch = 0
        self.touched: list[int] = []
        self.touched_base = 0
        """How many touched rows were forgotten before the first in the list."""
        self.memos: dict[Hashable, Any] = {}
        """What views computed from node rows alone; cleared when a node changes."""
        self.derived: dict[Hashable, tuple[npt.NDArray[Any], int]] = {}
        """What views computed row by row, and the position in `touched` up to which it is valid."""
        self.stamped: dict[Hashable, tuple[npt.NDArray[Any], int, Hashable]] = {}
        """The same for what depends on something more, with its stamp."""
        self.followers: dict[Hashable, Follower] = {}
        """What follows the load of rows, all up to `followed` in `touched`."""
        self.followed = 0
        self.orphans: dict[str, dict[str, Pod]] = {}
        """Node name -> pods bound to a node that is not here (yet)."""
        self._beyond: dict[int, None] = {}
        """Node rows whose pods request more than a cell can hold: what leaves cannot just be subtracted."""
        self._idle: dict[PodClass, None] = {}
        self._seen_of_objects = (0, 0)

    def load(self, nodes: Iterable[Node], others: Iterable[NamedObject], pods: Iterable[Pod]) -> None:
        """A whole cluster at once; pods that are not bound are ignored."""
        for node in nodes:
            self.add_node(node)
        for item in others:
            self.put_object(item)
        for pod in pods:
            self.add_pod(pod)

    # -- nodes ---------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> bool:
        row = self.nodes.rows.get(node.metadata.name)
        if row is not None:
            return self._change_node(row, node)
        row = self.nodes.add(node)
        self.images.add(row, node)
        self.attached.touch(row)
        self._devices_moved(row)
        self._nodes_moved()
        for pod in self.orphans.pop(node.metadata.name, {}).values():
            self.add_pod(pod)
        return True

    def _change_node(self, row: int, node: Node) -> bool:
        before = self.nodes.objects[row]
        if before == node:
            return False
        if before is not None:
            self.images.remove(row, before)
        self.nodes.write(row, node)
        self.images.add(row, node)
        self._devices_moved(row)
        self._nodes_moved()
        return True

    def remove_node(self, name: str) -> bool:
        """A node left. Its pods wait, uncounted, for a node of that name, until they are removed."""
        row = self.nodes.rows.get(name)
        if row is None:
            return False
        for pod_row in list(self.nodes.pods[row]):
            pod = self.pods.as_object(pod_row, name)
            self._take_off(pod_row)
            self.orphans.setdefault(name, {})[f"{pod.metadata.namespace}/{pod.metadata.name}"] = pod
        node = self.nodes.objects[row]
        if node is not None:
            self.images.remove(row, node)
        self.nodes.remove(row)
        self.objects.devices.inventory.forget_node(name)
        self.attached.touch(row)
        self._devices_moved(row)
        self._nodes_moved()
        return True

    def _devices_moved(self, row: int) -> None:
        for table in self.devices.values():
            table.node_moved(row)
        self.objects.devices.inventory.forget_node(self.nodes.names[row])

    def devices_of(self, resource: str) -> DeviceTable:
        """The devices that a resource stands for, counted from the pods when they are first asked for."""
        found = self.devices.get(resource)
        if found is None:
            found = self.devices[resource] = DeviceTable(resource, self.nodes, self.pods)
        return found

    def _nodes_moved(self) -> None:
        self.epoch += 1
        self.memos.clear()
        self.derived.clear()
        self.stamped.clear()
        self.followers.clear()
        self.nodes.forget_old_values()
        self.tallies.clear()
        self.terms.forget_counts()

    # -- pods ----------------------------------------------------------------------------------------------------

    def class_of(self, pod: Pod) -> PodClass:
        key = signature(pod, alone=self.objects.devices.serve(pod))
        found = self.classes.find(key)
        return found if found is not None else self._new_class(key, pod)

    def _new_class(self, key: bytes, pod: Pod) -> PodClass:
        found, new_group = self.classes.add(key, pod)
        if self.nodes.fit_resources():
            # The columns moved in memory, and whoever holds cells of them must fetch them again.
            self.epoch += 1
            self.memos.clear()
            self.derived.clear()
            self.stamped.clear()
            self.followers.clear()
        self.stand_ins.class_came(found)
        if new_group:
            self.tallies.add_group(found.group, self.objects.namespace_labels)
        self._idle[found] = None
        if len(self._idle) > IDLE_CLASSES:
            self._forget_class(next(iter(self._idle)))
        return found

    def _forget_class(self, pod_class: PodClass) -> None:
        del self._idle[pod_class]
        self.stand_ins.forget(pod_class)
        if self.classes.forget(pod_class):
            self.tallies.remove_group(pod_class.group)

    def add_pod(self, pod: Pod) -> bool:
        """A bound pod was added or changed. One that has finished holds nothing, so it leaves."""
        key = f"{pod.metadata.namespace}/{pod.metadata.name}"
        node_name = pod.spec.node_name
        if not node_name or pod.status.phase in FINISHED_PHASES:
            return self.remove_pod(key)
        pod_row = self.pods.rows.get(key)
        if pod_row is not None:
            if self._counts_as(pod_row, pod):
                return self._set_start(pod_row, pod)
            self._take_off(pod_row)
        node_row = self.nodes.rows.get(node_name)
        if node_row is None:
            if self.orphans.get(node_name, {}).get(key) == pod:
                return False
            self._drop_homeless(key)
            self.orphans.setdefault(node_name, {})[key] = pod
            return True
        if self.orphans:
            self._drop_homeless(key)
        self.put(pod, self.class_of(pod), node_row)
        return True

    def remove_pod(self, key: str) -> bool:
        pod_row = self.pods.rows.get(key)
        if pod_row is None:
            return self._drop_homeless(key)
        self._take_off(pod_row)
        return True

    def uid_of(self, key: str) -> str | None:
        """The uid of a bound pod, by namespace/name."""
        pod_row = self.pods.rows.get(key)
        if pod_row is not None:
            return self.pods.uids[pod_row]
        if not self.orphans:
            return None
        return next((pods[key].metadata.uid for pods in self.orphans.values() if key in pods), None)

    def node_of(self, key: str) -> str:
        """The node that a pod is bound to; empty if it is bound to none that is here."""
        pod_row = self.pods.rows.get(key)
        return "" if pod_row is None else self.nodes.names[self.pods.node_rows[pod_row]]

    def counted(self, key: str) -> tuple[PodClass, str, bool] | None:
        """The class, the node and whether it is being deleted, of a pod that is bound to a node that is here."""
        pod_row = self.pods.rows.get(key)
        if pod_row is None:
            return None
        node = self.nodes.names[self.pods.node_rows[pod_row]]
        return self.pods.kind(pod_row), node, bool(self.pods.leaving[pod_row])

    def put(self, pod: Pod, kind: PodClass, node_row: int) -> int:
        """Count a pod of this class, not bound so far, on a node; returns its row. This is the hot path of placing."""
        if not kind.total and kind not in self._idle:
            kind = self.class_of(pod)  # its class was dropped while the pod waited
        metadata = pod.metadata
        pod_row = self.pods.add(f"{metadata.namespace}/{metadata.name}", metadata.uid, kind, node_row)
        if metadata.creation_timestamp is not None:
            self.pods.created_ms[pod_row] = _ms(metadata.creation_timestamp)
        if pod.status.start_time is not None:
            self.pods.start_ms[pod_row] = _ms(pod.status.start_time)
        nodes = self.nodes
        nodes.pods[node_row][pod_row] = None
        requested, nonzero = nodes.requested_cells, nodes.nonzero_cells
        try:
            for column, amount in kind.takes:
                requested[column][node_row] += amount
            nonzero[NONZERO_CPU][node_row] += kind.nonzero[0]
            nonzero[NONZERO_MEMORY][node_row] += kind.nonzero[1]
        except ValueError:  # the sum does not fit the cell
            self._recount(node_row)
        if not kind.total:
            self._idle.pop(kind, None)
            if kind.terms:
                self.terms.attach(kind)
        kind.total += 1
        kind.placed[node_row] = kind.placed.get(node_row, 0) + 1
        leaving = metadata.deletion_timestamp is not None
        if leaving:
            self.pods.leaving[pod_row] = leaving_as(pod)
            kind.leaving[node_row] = kind.leaving.get(node_row, 0) + 1
        for tally in kind.group.tallies:
            if not leaving or tally.counts_leaving:
                tally.add(node_row, 1)
        for carried in kind.carried:
            carried.add(node_row, 1)
        if kind.host_ports:
            self.ports.add(node_row, kind.host_ports)
        if kind.holds_volumes or metadata.annotations or self.devices:
            self._hold(pod_row, pod, kind, node_row)
        self._touch(node_row)
        return pod_row

    def _hold(self, pod_row: int, pod: Pod, kind: PodClass, node_row: int) -> None:
        """Count what few pods have: volumes, and devices of their node."""
        if kind.holds_volumes:
            self.volumes.add(pod_row, node_row, kind)
            self.attached.touch(node_row)
        if given := pod.metadata.annotations.get(GPU_DEVICES, ""):
            self.pods.devices[pod_row] = given
        for table in self.devices.values():
            table.moved(pod_row, kind, node_row, 1)

    def _take_off(self, pod_row: int) -> None:
        """Uncount a pod: the exact reverse of `put`."""
        kind = self.pods.kind(pod_row)
        node_row = self.pods.node_rows[pod_row]
        leaving = bool(self.pods.leaving[pod_row])
        nodes = self.nodes
        del nodes.pods[node_row][pod_row]
        if node_row in self._beyond:
            self._recount(node_row)
        else:
            for column, amount in kind.takes:
                nodes.requested_cells[column][node_row] -= amount
            nodes.nonzero_cells[NONZERO_CPU][node_row] -= kind.nonzero[0]
            nodes.nonzero_cells[NONZERO_MEMORY][node_row] -= kind.nonzero[1]
        for carried in kind.carried:
            carried.add(node_row, -1)
        for tally in kind.group.tallies:
            if not leaving or tally.counts_leaving:
                tally.add(node_row, -1)
        _uncount(kind.placed, node_row)
        if leaving:
            _uncount(kind.leaving, node_row)
        if kind.host_ports:
            self.ports.remove(node_row, kind.host_ports)
        if kind.holds_volumes:
            self.volumes.remove(pod_row, node_row, kind)
            self.attached.touch(node_row)
        for table in self.devices.values():
            table.moved(pod_row, kind, node_row, -1)
        kind.total -= 1
        if not kind.total:
            if kind.terms:
                self.terms.detach(kind)
            self._idle[kind] = None
            if len(self._idle) > IDLE_CLASSES:
                self._forget_class(next(iter(self._idle)))
        self.pods.remove(pod_row)
        self._touch(node_row)

    def _recount(self, node_row: int) -> None:
        """Sum up the pods on a node again. Each sum stops at what a cell can hold."""
        nodes = self.nodes
        kinds = [self.pods.kind(pod_row) for pod_row in nodes.pods[node_row]]
        requested = [0] * len(nodes.requested_cells)
        for kind in kinds:
            for column, amount in kind.takes:
                requested[column] += amount
        nonzero = [sum(kind.nonzero[at] for kind in kinds) for at in (NONZERO_CPU, NONZERO_MEMORY)]
        for cells, sums in ((nodes.requested_cells, requested), (nodes.nonzero_cells, nonzero)):
            for column, total in enumerate(sums):
                cells[column][node_row] = min(total, INT64_MAX)
        if max(*requested, *nonzero) > INT64_MAX:
            self._beyond[node_row] = None
        else:
            self._beyond.pop(node_row, None)

    def _touch(self, node_row: int) -> None:
        touched = self.touched
        touched.append(node_row)
        if len(touched) > 2 * TOUCHED_LIMIT:
            del touched[:TOUCHED_LIMIT]
            self.touched_base += TOUCHED_LIMIT

    def _counts_as(self, pod_row: int, pod: Pod) -> bool:
        """Whether nothing about a bound pod has changed, but perhaps its start."""
        pods, metadata = self.pods, pod.metadata
        return (
            pods.uids[pod_row] == metadata.uid
            and self.nodes.names[pods.node_rows[pod_row]] == pod.spec.node_name
            and pods.leaving[pod_row] == leaving_as(pod)
            and pods.created_ms[pod_row] == _ms(metadata.creation_timestamp)
            and pods.devices.get(pod_row, "") == metadata.annotations.get(GPU_DEVICES, "")
            and pods.kind(pod_row).signature == signature(pod, alone=self.objects.devices.serve(pod))
        )

    def _set_start(self, pod_row: int, pod: Pod) -> bool:
        """A bound pod may have started, as every pod does once; whether it has."""
        start_ms = _ms(pod.status.start_time)
        if self.pods.start_ms[pod_row] == start_ms:
            return False
        self.pods.start_ms[pod_row] = start_ms
        node_row = self.pods.node_rows[pod_row]
        here = self.nodes.pods[node_row]
        del here[pod_row]
        here[pod_row] = None  # the last to change is the last in the order of arrival
        self._touch(node_row)
        return True

    def _drop_homeless(self, key: str) -> bool:
        for node_name, pods in self.orphans.items():
            if key in pods:
                del pods[key]
                if not pods:
                    del self.orphans[node_name]
                return True
        return False

    # -- everything else -----------------------------------------------------------------------------------------

    def put_object(self, item: NamedObject) -> bool:
        """A storage object, service, controller, budget or namespace was added or changed."""
        before = self.attached.reached(item)
        changed = self.objects.put(item)
        if changed:
            self.stand_ins.object_came(item)
            self.attached.touch(*before, *self.attached.reached(item))
            self._touch_devices()
        return self._nodes_may_move(changed)

    def find_object(self, item: NamedObject) -> NamedObject | None:
        return self.objects.find(item)

    def forget_object(self, item: NamedObject) -> bool:
        self.attached.touch(*self.attached.reached(item))
        changed = self.objects.forget(item)
        self._touch_devices()
        return self._nodes_may_move(changed)

    def _touch_devices(self) -> None:
        """Mark the rows whose devices changed."""
        touched = self.objects.devices.touched
        for node in touched:
            row = self.nodes.rows.get(node)
            if row is not None:
                self._touch(row)
        touched.clear()

    def _nodes_may_move(self, changed: bool) -> bool:
        """A namespace selector may now match other namespaces, so every count by namespace may be wrong; and nodes may
        be nearer to a place, or further from it. Both are as rare as a change of a node, and as far-reaching."""
        versions = self.objects.namespaces_version, self.objects.latencies_version
        if changed and self._seen_of_objects != versions:
            self._seen_of_objects = versions
            self._nodes_moved()
        return changed


def _ms(text: str | None) -> int:
    return NO_TIME if text is None else epoch_ms(text)


def _uncount(counts: dict[int, int], row: int) -> None:
    if counts[row] == 1:
        del counts[row]
    else:
        counts[row] -= 1
