"""The custom kinds that are served: those of all established definitions in the watch cache.

Every server on one store derives the same set from the same log, and has it as soon as its cache has the definition.
A definition that cannot be understood, because another release or somebody by hand wrote it, is logged and not served;
the others are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.apiextensions.definition import ConvertBy, is_served, no_webhooks, resources_of
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND, BY_PATH, Resource

DEFINITIONS: Final = BY_KIND["apiextensions.k8s.io/v1", "CustomResourceDefinition"]
NOT_UNDERSTOOD: Final = "A CustomResourceDefinition cannot be understood; serving the rest"

_log = Log(__name__)


class CustomKinds:
    def __init__(self, cache: Cache, convert: ConvertBy = no_webhooks) -> None:
        self._cache = cache
        self._convert = convert
        self._seen = -1
        self._by_definition: dict[str, tuple[int, tuple[Resource, ...]]] = {}
        """The revision of a definition and its resources, by its name."""
        self._resources: tuple[Resource, ...] = ()
        self._by_path: Mapping[tuple[str, str, str], Resource] = {}
        self._by_kind: Mapping[tuple[str, str], Resource] = {}

    @property
    def version(self) -> int:
        """Changes whenever the set does."""
        self._refresh()
        return self._seen

    @property
    def resources(self) -> Sequence[Resource]:
        """By group, then by the definitions' names: where kinds share a short name, clients take the first."""
        self._refresh()
        return self._resources

    def at_path(self, group: str, version: str, plural: str) -> Resource | None:
        self._refresh()
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        self._refresh()
        return self._by_kind.get((api_version, kind))

    def _refresh(self) -> None:
        changed = self._cache.of(DEFINITIONS).last_change
        if changed == self._seen:
            return
        found: dict[str, tuple[int, tuple[Resource, ...]]] = {}
        for stored in self._cache.all(DEFINITIONS):
            known = self._by_definition.get(stored.name)
            if known is None or known[0] != stored.revision:
                known = (stored.revision, _understood(stored, self._convert))
            found[stored.name] = known
        self._by_definition = found
        # A kind of this server's own keeps its path.
        resources = [
            one
            for _, several in found.values()
            for one in several
            if (one.group, one.version, one.plural) not in BY_PATH
        ]
        resources.sort(key=lambda one: one.group)
        self._resources = tuple(resources)
        self._by_path = {(one.group, one.version, one.plural): one for one in resources}
        self._by_kind = {(one.api_version, one.kind): one for one in resources}
        self._seen = changed


def _understood(stored: StoredObject, convert: ConvertBy) -> tuple[Resource, ...]:
    crd = stored.object(DEFINITIONS)
    if not is_served(crd):
        return ()
    try:
        return resources_of(crd, convert)
    except Exception as error:  # noqa: BLE001 - whatever is odd about this definition, the others are served
        _log.error(NOT_UNDERSTOOD, name=stored.name, err=describe_error(error))
        return ()
