"""Resource: a kind in one version, as URLs and the store know it. The declarations in `kinds` are the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from situate.server.kinds import KINDS
from situate.server.kinds.kind import Kind

__all__ = ["BY_KIND", "BY_PATH", "RESOURCES", "Resource"]


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    """Empty for what exists only as subresources; `create` alone for kinds that are answered and never stored."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    stored_as: str = ""
    """The `group/plural` under which objects are stored. All versions of one kind share it."""
    computed: bool = False
    """Computed for each request (server/views), and not stored."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def stored(self) -> bool:
        return "get" in self.verbs and not self.computed


def _resources_of(kind: Kind) -> Iterator[Resource]:
    for version in kind.versions:
        yield Resource(
            kind.group,
            version,
            kind.resource_name,
            kind.name,
            kind.name.lower(),
            kind.namespaced,
            kind.verbs,
            kind.short_names,
            kind.categories,
            kind.subresources,
            kind.stored_as or f"{kind.group}/{kind.resource_name}",
            kind.computed,
        )


RESOURCES: Final = tuple(one for kind in KINDS for one in _resources_of(kind))
BY_PATH: Final[Mapping[tuple[str, str, str], Resource]] = {
    (one.group, one.version, one.plural): one for one in RESOURCES
}
"""By group, version and plural, as in a URL."""
BY_KIND: Final[Mapping[tuple[str, str], Resource]] = {(one.api_version, one.kind): one for one in RESOURCES}
