"""The objects of one kind as last seen, and what each list or event changes among them. Pure.

It reports every change once, in order:
- it drops an event that is older than what it reported before;
- an object that a list no longer has is gone; one with another uid under the same name is gone, then seen;
- it ignores an object that does not decode. If an earlier version did, that one stays: a pod that we can no longer
  decode still takes its room.

It keeps a uid and a version for each object, and the object itself for small kinds.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodRef, PodSeen
from situate.core.model.base import Model
from situate.core.model.meta import is_older
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.wire.watch import ADDED, DELETED, MODIFIED, Item

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class _Known(msgspec.Struct, frozen=True, gc=False):
    uid: str
    version: str
    object: Any = None
    """None for pods and nodes: their name and uid are enough to report them gone."""


class ObjectCache:
    def __init__(self, model: type[Model]) -> None:
        self._model = model
        self._known: dict[Key, _Known] = {}
        self._listed: dict[Key, _Known] | None = None
        self._seen: dict[Key, Change] = {}
        self.version = ""
        """Everything up to this version was reported."""
        self.unreadable = 0
        """How many objects did not decode so far."""

    def __len__(self) -> int:
        return len(self._known)

    # -- events ------------------------------------------------------------------------------------------------------

    def happened(self, event: str, item: Item[Any], changes: list[Change]) -> None:
        """Take an event of a watch that began at `version`; append what it changes to `changes`."""
        if is_older(item.version, self.version):
            return
        if event in (ADDED, MODIFIED):
            self._come(item, changes)
        elif event == DELETED:
            self._go(item, changes)
        self.reached(item.version)

    def reached(self, version: str) -> None:
        """Everything up to this version was reported."""
        if version and not is_older(version, self.version):
            self.version = version

    def _come(self, item: Item[Any], changes: list[Change]) -> None:
        key = (item.namespace, item.name)
        known = self._known.get(key)
        if known is not None and known.uid == item.uid:
            if known.version == item.version or is_older(item.version, known.version):
                return
        elif known is not None:
            changes.append(self._gone(key, known))
            del self._known[key]
        if item.object is None:
            self.unreadable += 1
            return
        self._known[key] = self._keep(item)
        changes.append(self._told(item.object))

    def _go(self, item: Item[Any], changes: list[Change]) -> None:
        key = (item.namespace, item.name)
        known = self._known.get(key)
        if known is not None and not is_older(item.version, known.version):
            del self._known[key]
            changes.append(self._gone(key, known))

    # -- lists -------------------------------------------------------------------------------------------------------

    def begin_list(self) -> None:
        """Begin a list, and forget an unfinished one."""
        self._listed, self._seen = {}, {}

    def collect(self, item: Item[Any]) -> None:
        """Take one object of the list. What has not changed is let go at once, so a second list takes little memory."""
        if self._listed is None:
            raise RuntimeError("an object of a list that has not begun")
        key = (item.namespace, item.name)
        known = self._known.get(key)
        self._seen.pop(key, None)
        same = known is not None and known.uid == item.uid
        if known is not None and same and item.version and known.version == item.version:
            self._listed[key] = known
        elif item.object is not None:
            self._listed[key] = self._keep(item)
            self._seen[key] = self._told(item.object)
        else:
            self.unreadable += 1
            if known is not None and same:
                self._listed[key] = known

    def collect_no_more(self, item: Item[Any]) -> None:
        """An object was deleted while the list was coming."""
        if self._listed is not None:
            self._listed.pop((item.namespace, item.name), None)
            self._seen.pop((item.namespace, item.name), None)

    def collected(self) -> list[Change]:
        """What was collected since the last call: the first list of a big cluster would fill the memory otherwise.

        Only for a list of the store itself: no later one can be older.
        """
        changes = []
        for key, change in self._seen.items():
            known, now = self._known.get(key), (self._listed or {})[key]
            if known is not None and known.uid != now.uid:
                changes.append(self._gone(key, known))
            self._known[key] = now
            changes.append(change)
        self._seen = {}
        return changes

    def end_list(self, version: str) -> list[Change]:
        """What the complete list changes, gone before seen."""
        if self._listed is None:
            raise RuntimeError("the end of a list that has not begun")
        listed, seen = self._listed, self._seen
        gone = [
            self._gone(key, known)
            for key, known in self._known.items()
            if (now := listed.get(key)) is None or now.uid != known.uid
        ]
        self._known, self._listed, self._seen, self.version = listed, None, {}, version
        return [*gone, *seen.values()]

    def forget_versions(self) -> None:
        """The cluster was restored from a backup: the versions that we know mean nothing."""
        self.version = ""
        self._known = {key: _Known(known.uid, "", known.object) for key, known in self._known.items()}

    # -- changes -----------------------------------------------------------------------------------------------------

    def _keep(self, item: Item[Any]) -> _Known:
        small = self._model is not Pod and self._model is not Node
        return _Known(item.uid, item.version, item.object if small else None)

    def _told(self, found: Any) -> Change:
        if self._model is Pod:
            return PodSeen(found)
        return NodeSeen(found) if self._model is Node else ObjectSeen(found)

    def _gone(self, key: Key, known: _Known) -> Change:
        if self._model is Pod:
            return PodGone(PodRef(*key, known.uid))
        return NodeGone(key[1]) if self._model is Node else ObjectGone(known.object)
