"""A witness: follows everything a store does, from its first revision, and says what must never have been so."""

from typing import Any

import msgspec

from situate.core.model.ledger import allocatable_of, amounts_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.server.placing.snapshots import decoded
from situate.server.registry.keys import OBJECTS
from situate.store.contract import Store
from situate.store.entries import ABSENT, Batch, Revision


class Witness:
    """Knows nothing of the server's own memory: everything is read off the batches."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.revisions = 0
        self._nodes: dict[str, dict[str, int]] = {}
        self._pods: dict[str, tuple[Pod, str]] = {}
        self._on: dict[str, dict[str, Pod]] = {}
        self._snapshots: dict[str, Any] = {}
        self._overfull: set[str] = set()

    @property
    def bound(self) -> dict[str, str]:
        """By key: the node of each pod that holds one."""
        return {key: node for key, (_, node) in self._pods.items() if node}

    def take(self, batch: Batch) -> None:
        self.revisions += 1
        shrunk: set[str] = set()
        for event in batch.events:
            _, _, _, plural, name = event.key.split("/", 4)
            value = None if event.entry is None else event.entry.value
            if plural == "pods":
                self._pod(batch.revision, name, value)
            elif plural == "nodes":
                self._nodes.pop(name, None)
                shrunk.add(name)
                if value is not None:
                    self._nodes[name] = allocatable_of(msgspec.json.decode(value, type=Node))
            elif plural == "nodesnapshots":
                self._snapshots.pop(name, None)
                if value is not None:
                    self._snapshots[name] = decoded(value)[1]
        self._check(batch, shrunk)

    def _pod(self, revision: Revision, key: str, value: bytes | None) -> None:
        before = self._pods.pop(key, None)
        if before is not None and before[1]:
            del self._on[before[1]][key]
        if value is None:
            return
        pod = msgspec.json.decode(value, type=Pod)
        finished = pod.status.phase in ("Succeeded", "Failed")
        same = before is not None and pod.metadata.uid == before[0].metadata.uid
        if same and before is not None and before[1] not in ("", pod.spec.node_name):
            self.problems.append(f"revision {revision}: {key} went from {before[1]} to {pod.spec.node_name}")
        node = "" if finished else pod.spec.node_name
        self._pods[key] = (pod, node)
        if node:
            self._on.setdefault(node, {})[key] = pod

    def _check(self, batch: Batch, shrunk: set[str]) -> None:
        touched = {event.key.rpartition("/")[2] for event in batch.events if "/nodesnapshots/" in event.key}
        moved = any("/pods/" in event.key for event in batch.events)
        for node in sorted(touched | shrunk):
            total: dict[str, int] = {}
            for pod in self._on.get(node, {}).values():
                for resource, amount in amounts_of(pod).items():
                    total[resource] = total.get(resource, 0) + amount
            ledger = self._snapshots.get(node)
            said = {} if ledger is None else dict(ledger.allocated)
            if said != total:
                self.problems.append(f"revision {batch.revision}: {node} holds {total} and says {said}")
            room = self._nodes.get(node, {})
            over = {one: amount for one, amount in total.items() if amount > room.get(one, 0)}
            if not over:
                self._overfull.discard(node)
            elif node in shrunk and not moved:
                self._overfull.add(node)
            elif node not in self._overfull:
                self.problems.append(f"revision {batch.revision}: {node} is over by {over}")


async def witnessed(store: Store) -> Witness:
    """All that has happened up to now."""
    witness, newest = Witness(), await store.revision()
    watch = store.watch(OBJECTS, Revision(ABSENT + 1))
    try:
        await watch.ask_progress()
        async for batch in watch:
            if batch.events:
                witness.take(batch)
            if batch.revision >= newest:
                return witness
    finally:
        await watch.aclose()
    return witness
