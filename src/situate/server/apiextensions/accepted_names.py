"""The names that definitions were given, in each group.

A definition is decoded once for each of its revisions, so that a thousand of them do not decode each other's schemas.
"""

from __future__ import annotations

from situate.server.apiextensions.served import DEFINITIONS
from situate.server.objects import Object
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject


class AcceptedNames:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._seen = -1
        self._known: dict[str, tuple[int, str, Object]] = {}
        """By the name of a definition, its revision, its group, and the names that it was given."""
        self._by_group: dict[str, dict[str, Object]] = {}

    def beside(self, name: str, group: str) -> list[Object]:
        """The names that the other definitions of the group were given."""
        self._refresh()
        return [names for other, names in self._by_group.get(group, {}).items() if other != name]

    def _refresh(self) -> None:
        changed = self._cache.of(DEFINITIONS).last_change
        if changed == self._seen:
            return
        found: dict[str, tuple[int, str, Object]] = {}
        by_group: dict[str, dict[str, Object]] = {}
        for stored in self._cache.all(DEFINITIONS):
            known = self._known.get(stored.name)
            if known is None or known[0] != stored.revision:
                known = (stored.revision, *_group_and_names(stored))
            found[stored.name] = known
            by_group.setdefault(known[1], {})[stored.name] = known[2]
        self._known, self._by_group, self._seen = found, by_group, changed


def _group_and_names(stored: StoredObject) -> tuple[str, Object]:
    """None of a definition that cannot be understood."""
    crd = stored.object(DEFINITIONS)
    try:
        return crd["spec"]["group"], dict((crd.get("status") or {}).get("acceptedNames") or {})
    except (KeyError, TypeError, ValueError, AttributeError):
        return "", {}
