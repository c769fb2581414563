"""What the engine has decided and not seen confirmed yet: reservations, nominations, evictions.

Each ends by a change that confirms or undoes it, or by a deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.changes import Millis, PodRef
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass

NOMINATION_LIMIT_MS: Final = 5 * 60 * 1_000
"""How long a node is nominated for a pod, if its victims do not leave."""
MOVES_LIMIT: Final = 1 << 12
"""How many changes of nominations are remembered; a reader further behind starts from scratch."""


@dataclass(eq=False, slots=True)
class Reservation:
    """A pod that is counted on a node and whose bind is under way."""

    entry: QueuedPod
    node: str
    attempt: int
    """The pod's attempt: another one after each reported failure. Answers to earlier attempts are ignored."""
    since_ms: Millis = 0
    asked_ms: Millis = 0
    """When a bind or volumes were last asked for."""
    tries: int = 1
    """How often this bind has been asked for."""
    asked: bool = False
    """A bind was asked for, and has not been answered."""
    volumes_pending: bool = False
    claims_pending: bool = False
    """The devices of the pod are not written in its claims yet."""
    claims: tuple[str, ...] = ()
    """The claims that are reserved for it, by name; an empty name for the one that is created for it."""
    binder_ignored: bool = False
    """The ignorable extender that binds such pods failed: the pod is bound without it."""
    done: bool = False
    """The bind was carried out; the pod has not been seen bound yet."""
    annotations: tuple[tuple[str, str], ...] = ()
    """What the bind writes on the pod."""
    timer: int = 0
    """The number of the last timer for it. Other timers under this name may be for another pod."""

    @property
    def preparing(self) -> bool:
        """Whether volumes or devices have to be ready before the bind."""
        return self.volumes_pending or self.claims_pending


@dataclass(eq=False, slots=True)
class Nomination:
    """A node that is being freed for a pod. Pods of lower or equal priority see it as if the pod were there."""

    ref: PodRef
    kind: PodClass
    node: str
    version: int
    until_ms: Millis


@dataclass(eq=False, slots=True)
class Eviction:
    """A victim that is being evicted. The eviction is requested once, and again only if it failed."""

    victim: PodRef
    node: str
    preemptor: PodRef
    message: str
    tries: int = 1


class Nominations:
    def __init__(self) -> None:
        self._by_pod: dict[str, Nomination] = {}
        self._by_node: dict[str, dict[str, Nomination]] = {}
        self._version = 0
        self._moves: list[tuple[Nomination, bool]] = []
        """In order, each with whether it was made or ended."""
        self._moves_base = 0
        """How many were forgotten before the first in the list."""

    def __len__(self) -> int:
        return len(self._by_pod)

    @property
    def position(self) -> int:
        """How many nominations were made and ended so far."""
        return self._moves_base + len(self._moves)

    def moves_since(self, position: int) -> list[tuple[Nomination, bool]] | None:
        """What was made (True) and ended since a position, in order; None if that is too long ago."""
        return None if position < self._moves_base else self._moves[position - self._moves_base :]

    def _moved(self, nomination: Nomination, *, made: bool) -> None:
        self._moves.append((nomination, made))
        if len(self._moves) > 2 * MOVES_LIMIT:
            del self._moves[:MOVES_LIMIT]
            self._moves_base += MOVES_LIMIT

    def get(self, key: str) -> Nomination | None:
        return self._by_pod.get(key)

    def values(self) -> list[Nomination]:
        return list(self._by_pod.values())

    def add(self, entry: QueuedPod, node: str, now: Millis) -> Nomination:
        self.remove(entry.key)
        self._version += 1
        made = Nomination(entry.ref, entry.kind, node, self._version, now + NOMINATION_LIMIT_MS)
        self._by_pod[entry.key] = made
        self._by_node.setdefault(node, {})[entry.key] = made
        self._moved(made, made=True)
        return made

    def remove(self, key: str) -> Nomination | None:
        found = self._by_pod.pop(key, None)
        if found is not None:
            here = self._by_node[found.node]
            del here[key]
            if not here:
                del self._by_node[found.node]
            self._moved(found, made=False)
        return found

    def on(self, node: str) -> list[Nomination]:
        return list(self._by_node.get(node, {}).values())

    def weighing_on(self, node: str, entry: QueuedPod) -> list[Nomination]:
        """The nominations on a node that count for a pod: those of others, of its priority or above."""
        return [one for one in self.on(node) if one.kind.priority >= entry.priority and one.ref.key != entry.key]

    @property
    def nodes(self) -> list[str]:
        return list(self._by_node)
