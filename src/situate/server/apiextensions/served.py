"""The custom kinds that are served: those of all established definitions in the watch cache.

Every server on one store derives the same set from the same log, and has it as soon as its cache has the definition.
A definition that cannot be understood, because another release or somebody by hand wrote it, is logged and not served;
the others are. A large definition that changes is compiled beside the event loop by the controller of definitions, and
served as it was until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.apiextensions.definition import (
    NOTHING_COMPILED,
    CompiledVersion,
    ConvertBy,
    compiled_versions,
    is_served,
    no_webhooks,
    resources_of,
    version_digests,
)
from situate.server.objects import Object
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND, BY_PATH, Resource

DEFINITIONS: Final = BY_KIND["apiextensions.k8s.io/v1", "CustomResourceDefinition"]
NOT_UNDERSTOOD: Final = "A CustomResourceDefinition cannot be understood; serving the rest"
LARGE_BYTES: Final = 64 << 10
"""A longer definition is compiled in a thread: some take seconds."""
_encode: Final = msgspec.json.Encoder().encode
_log = Log(__name__)


class _Served(NamedTuple):
    """A definition that is served."""

    revision: int
    resources: tuple[Resource, ...]
    compiled: Mapping[str, CompiledVersion]
    """By digest: what has not changed is not compiled again."""


class _Prepared(NamedTuple):
    """What `prepare` has compiled."""

    digests: frozenset[str]
    """Also of versions that cannot be understood, so that nobody waits for them."""
    compiled: Mapping[str, CompiledVersion]


_NOTHING_PREPARED: Final = _Prepared(frozenset(), NOTHING_COMPILED)


class CustomKinds:
    def __init__(self, cache: Cache, convert: ConvertBy = no_webhooks) -> None:
        self._cache = cache
        self._convert = convert
        self._seen = -1
        self._version = 0
        self._by_definition: dict[str, _Served] = {}
        self._prepared: dict[str, _Prepared] = {}
        """By the definition's name, until it is served so."""
        self.waits_for_prepare = False
        """Whether somebody calls `prepare` for every definition that changes: then large ones are served as they were
        until it has."""
        self._resources: tuple[Resource, ...] = ()
        self._by_path: Mapping[tuple[str, str, str], Resource] = {}
        self._by_kind: Mapping[tuple[str, str], Resource] = {}

    @property
    def version(self) -> int:
        """Changes whenever the set does."""
        self._refresh()
        return self._version

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

    async def prepare(self, crd: Object) -> bool:
        """Compile a large definition beside the event loop, before it is served; whether there was anything to do."""
        name = crd["metadata"]["name"]
        known = self._known(name)
        if not _is_large(crd) or not _lacks(crd, known):
            return False
        try:
            compiled = await asyncio.to_thread(compiled_versions, crd, known)
        except Exception as error:  # noqa: BLE001 - whatever is odd about this definition, the others are served
            _log.error(NOT_UNDERSTOOD, name=name, err=describe_error(error))
            compiled = NOTHING_COMPILED
        self._prepared[name] = _Prepared(frozenset(version_digests(crd)), compiled)
        self._seen = -1
        return True

    def _known(self, name: str) -> Mapping[str, CompiledVersion]:
        served = self._by_definition.get(name)
        prepared = self._prepared.get(name, _NOTHING_PREPARED)
        return {**(served.compiled if served else NOTHING_COMPILED), **prepared.compiled}

    def _refresh(self) -> None:
        changed = self._cache.of(DEFINITIONS).last_change
        if changed == self._seen:
            return
        found: dict[str, _Served] = {}
        for stored in self._cache.all(DEFINITIONS):
            served = self._by_definition.get(stored.name)
            if served is None or served.revision != stored.revision:
                served = self._served(stored, served)
            found[stored.name] = served
        self._by_definition = found
        self._prepared = {name: one for name, one in self._prepared.items() if name in found}
        # A kind of this server's own keeps its path.
        resources = [
            one
            for served in found.values()
            for one in served.resources
            if (one.group, one.version, one.plural) not in BY_PATH
        ]
        resources.sort(key=lambda one: one.group)
        self._resources = tuple(resources)
        self._by_path = {(one.group, one.version, one.plural): one for one in resources}
        self._by_kind = {(one.api_version, one.kind): one for one in resources}
        self._seen = changed
        self._version += 1

    def _served(self, stored: StoredObject, before: _Served | None) -> _Served:
        crd, known = stored.object(DEFINITIONS), self._known(stored.name)
        if not is_served(crd):
            return _Served(stored.revision, (), NOTHING_COMPILED)
        try:
            if before is not None and before.resources and self._must_wait(stored.name, crd, known):
                return before
            compiled = compiled_versions(crd, known)
            resources = resources_of(crd, self._convert, compiled)
        except Exception as error:  # noqa: BLE001 - whatever is odd about this definition, the others are served
            _log.error(NOT_UNDERSTOOD, name=stored.name, err=describe_error(error))
            return _Served(stored.revision, (), NOTHING_COMPILED)
        self._prepared.pop(stored.name, None)
        return _Served(stored.revision, resources, compiled)

    def _must_wait(self, name: str, crd: Object, known: Mapping[str, CompiledVersion]) -> bool:
        """Whether `prepare` is going to compile it. What it has compiled may be of an earlier revision."""
        if not self.waits_for_prepare or not _is_large(crd) or not _lacks(crd, known):
            return False
        return not self._prepared.get(name, _NOTHING_PREPARED).digests.issuperset(version_digests(crd))


def _is_large(crd: Object) -> bool:
    return len(_encode(crd)) > LARGE_BYTES


def _lacks(crd: Object, known: Mapping[str, CompiledVersion]) -> bool:
    """Whether a version has to be compiled."""
    return any(digest not in known for digest in version_digests(crd))
