"""One resource in the cache: its objects in key order, a window of recent changes, and its watches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from situate.server.errors import expired
from situate.server.registry.keys import prefix_of
from situate.server.registry.selectable_fields import NODE_COLUMN, PODS
from situate.server.registry.selectors import Selection
from situate.server.registry.sorted_keys import SortedKeys
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.unreadable import UnreadableObject
from situate.server.registry.watchers import Broadcaster, Change
from situate.server.resources import Resource
from situate.store.keys import prefix_end

WINDOW_EVENTS: Final = 32_768
"""Changes in the window: a watch can start from any of them."""
WINDOW_BYTES: Final = 4 * 1024 * 1024
"""Size of the old objects that only the window keeps. Whichever limit is reached first applies."""
TOO_OLD: Final = "too old resource version: {asked} ({oldest})"


class ResourceCache:
    """Changes are applied in the order of their revisions. Nothing here waits."""

    def __init__(
        self, resource: Resource, revision: int, stored: Iterable[StoredObject | UnreadableObject] = ()
    ) -> None:
        """`stored` are the objects as of a revision, in key order."""
        self.prefix: Final = prefix_of(resource)
        self.is_namespaced: Final = resource.namespaced
        self.last_change = revision
        """The revision of the last change; at first, the revision loaded."""
        self.broadcaster: Final = Broadcaster()
        self._objects: dict[str, StoredObject] = {}
        self.unreadable: Final[dict[str, UnreadableObject]] = {}
        """Unreadable values, by key."""
        for one in stored:
            if isinstance(one, UnreadableObject):
                self.unreadable[one.key] = one
            else:
                self._objects[one.key] = one
        self._keys = SortedKeys(self._objects)
        self._window: deque[Change] = deque()
        self._window_bytes = 0
        self._window_start = revision
        self._of_pods: Final = resource.stored_as == PODS
        self._on_node: dict[str, dict[str, None]] = {}
        if self._of_pods:
            for key, one in self._objects.items():
                self._move_pod(key, "", _node_of(one))

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        return not self._objects and not self.unreadable

    def get(self, key: str) -> StoredObject | None:
        return self._objects.get(key)

    def walk(self, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """Objects with this key prefix, after a key, in order."""
        stored = self._objects
        for key in self._keys.between(max(prefix, after + "\0") if after else prefix, _end(prefix)):
            yield stored[key]

    def count(self, prefix: str, after: str = "") -> int:
        return self._keys.count(max(prefix, after + "\0") if after else prefix, _end(prefix))

    def on_node(self, node: str) -> list[StoredObject]:
        return [self._objects[key] for key in sorted(self._on_node.get(node, ()))]

    def search(self, selection: Selection, prefix: str, after: str = "") -> Iterator[StoredObject]:
        """Selected objects, after a key, in order. Uses an index where there is one."""
        if selection.name and (selection.namespace or not self.is_namespaced):
            place = f"{selection.namespace}/{selection.name}" if self.is_namespaced else selection.name
            one = self._objects.get(f"{self.prefix}{place}")
            found: Iterable[StoredObject] = (one,) if one is not None and one.key > after else ()
        elif selection.node:
            found = (one for one in self.on_node(selection.node) if one.key > after)
        else:
            found = self.walk(prefix, after)
        if not selection.filters:
            yield from found
            return
        for one in found:
            if selection.matches(one):
                yield one

    def since(self, revision: int, current: int) -> Iterable[Change]:
        """All changes after a revision; 410 if the window starts later."""
        if revision < self._window_start:
            raise expired(TOO_OLD.format(asked=revision, oldest=self._window_start))
        found: list[Change] = []
        if revision < current:
            for change in reversed(self._window):
                if change.revision <= revision:
                    break
                found.append(change)
        found.reverse()
        return found

    # -- changing -----------------------------------------------------------------------------------------------------

    def load_history(self, since: int, changes: Iterable[Change]) -> None:
        """Fill the window with the changes after a revision, so that watches can start from there."""
        self._window_start = since
        for change in changes:
            self._append_to_window(change)

    def apply_unreadable(self, revision: int, found: UnreadableObject) -> None:
        """Send no event: to watches, the object stays as it was when it could be read."""
        before, known = self._objects.pop(found.key, None), self.unreadable.get(found.key)
        if before is not None:
            self._keys.remove(found.key)
            if self._of_pods:
                self._move_pod(found.key, _node_of(before), "")
        elif known is not None:
            before = known.last
        self.unreadable[found.key] = replace(found, last=before)
        self.last_change = revision

    def apply(self, revision: int, key: str, after: StoredObject | None) -> None:
        before = self._objects.get(key)
        if self.unreadable and key in self.unreadable:
            self._apply_readable(revision, self.unreadable.pop(key), after)
            return
        if after is not None:
            if before is None:
                self._keys.add(key)
            self._objects[key] = after
        elif before is not None:
            del self._objects[key]
            self._keys.remove(key)
        else:
            return
        if self._of_pods:
            self._move_pod(key, _node_of(before), _node_of(after))
        self._tell(Change(revision, before, after))

    def _apply_readable(self, revision: int, known: UnreadableObject, after: StoredObject | None) -> None:
        """What could not be read is replaced or deleted. Watches know the state before that."""
        if after is not None:
            self._keys.add(known.key)
            self._objects[known.key] = after
            if self._of_pods:
                self._move_pod(known.key, "", _node_of(after))
        if after is None and known.last is None:
            self.last_change = revision
        else:
            self._tell(Change(revision, known.last, after))

    def _tell(self, change: Change) -> None:
        self.last_change = change.revision
        self._append_to_window(change)
        self.broadcaster.broadcast(change)

    def _append_to_window(self, change: Change) -> None:
        """Drops whole revisions, so that the window starts between two of them."""
        self._window.append(change)
        self._window_bytes += _weight(change)
        while len(self._window) > WINDOW_EVENTS or self._window_bytes > WINDOW_BYTES:
            oldest = self._window.popleft()
            self._window_bytes -= _weight(oldest)
            self._window_start = oldest.revision
            if not self._window:
                break

    def _move_pod(self, key: str, was: str, node: str) -> None:
        """Move a pod in the index from one node to another; "" is none."""
        if was == node:
            return
        if was:
            keys = self._on_node[was]
            del keys[key]
            if not keys:
                del self._on_node[was]
        if node:
            self._on_node.setdefault(node, {})[key] = None


def _node_of(stored: StoredObject | None) -> str:
    return "" if stored is None else stored.values[NODE_COLUMN]


def _weight(change: Change) -> int:
    """The cache holds the current object anyway, so only the old one counts."""
    return 0 if change.before is None else len(change.before.value)


def _end(prefix: str) -> str:
    end = prefix_end(prefix)
    if end is None:
        raise ValueError("a key prefix must not be empty")
    return end
