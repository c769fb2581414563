"""Kind: what the server knows about a kind, in one declaration.

The fields of its objects are in `wire/schema/groups`. Everything else that differs from kind to kind is here: names and
verbs of its resource, strategy, printed columns, rights of the default roles, and descriptions for OpenAPI.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from situate.server.kinds.custom_version import CustomVersion
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.columns import Cell, Printer

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_STRATEGY: Final = Strategy()


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind in one version, as URLs and the store know it."""

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
    since: str = ""
    """The version of Kubernetes that serves it first, such as "1.37"; empty: all that situate follows do."""
    storage_version: str = ""
    """The version that objects are stored in."""
    custom: CustomVersion | None = field(default=None, compare=False, repr=False)
    """What its CustomResourceDefinition says; None for a kind of this server."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        return "status" in self.subresources

    @property
    def stored(self) -> bool:
        return "get" in self.verbs and not self.computed


@dataclass(frozen=True, slots=True)
class Kind:
    resource: str
    """Group and versions (the preferred one first), plural, kind, N(amespaced) or C(luster), short names, categories;
    after `|` subresources, after `!` verbs other than all of them, after `=` where objects are stored, if another group
    stores them. With `~` at the end, objects are computed and not stored."""
    description: str = field(kw_only=True)
    """One sentence for `kubectl explain`."""
    words: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Descriptions of messages and fields: `PodSpec`, `PodSpec.containers`."""
    strategy: Strategy = field(default=_STRATEGY, kw_only=True)
    columns: str = field(default="Name!, Created At@ = metadata.creationTimestamp||0001-01-01T00:00:00Z", kw_only=True)
    """What `kubectl get` prints, in the notation of tables/columns.py."""
    cells: Mapping[str, Cell] = field(default_factory=dict, kw_only=True)
    """Cells that have no path, by the name of the column."""
    timed: Mapping[str, Callable[[Object, int], Any]] = field(default_factory=dict, kw_only=True)
    """Cells that depend on the time."""
    printer: Printer | None = field(default=None, kw_only=True)
    """In place of columns and cells."""
    since: str = field(default="", kw_only=True)
    """The version of Kubernetes that serves the kind first; empty: all that situate follows do."""
    rights: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """Verbs by role, if Kubernetes' own roles do not name the kind: `R; patch,update status`. See identity/roles.py."""

    @property
    def resources(self) -> tuple[Resource, ...]:
        """One for each version."""
        line, _, stored_as = self.resource.removesuffix(" ~").partition(" = ")
        line, _, verbs = line.partition(" ! ")
        line, _, subresources = line.partition(" | ")
        api, plural, kind, scope, short_names, categories = line.split()
        group, _, known = api.rpartition("/")
        versions = known.split(",")
        return tuple(
            Resource(
                group,
                version,
                plural,
                kind,
                kind.lower(),
                scope == "N",
                tuple(verbs.split()) or ALL_VERBS,
                _words(short_names),
                _words(categories),
                tuple(subresources.split()),
                stored_as or f"{group}/{plural}",
                self.resource.endswith(" ~"),
                self.since,
                versions[0],
            )
            for version in versions
        )


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))
