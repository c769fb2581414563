"""Kind: what the server knows about a kind, in one declaration.

The fields of its objects are in `wire/schema/groups`. Everything else that differs from kind to kind is here: names and
verbs of its resource, strategy, printed columns, rights of the default roles, and descriptions for OpenAPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from situate.server.kinds.strategy import Strategy
from situate.server.tables.columns import PLAIN, Table

__all__ = ["ALL_VERBS", "READ_ONLY", "Kind"]

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
READ_ONLY: Final = ("get", "list", "watch")
_PLAIN_STRATEGY: Final = Strategy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    group: str = ""
    name: str
    plural: str = ""
    """If it is not the name in lower case with an `s`."""
    versions: tuple[str, ...] = ("v1",)
    """The served versions, the preferred one first."""
    namespaced: bool = True
    verbs: tuple[str, ...] = ALL_VERBS
    """`create` alone is for kinds that are answered and never stored."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    stored_as: str = ""
    """The `group/plural` whose objects these are, if another group stores them."""
    computed: bool = False
    """`server/views` computes the objects for each request. They are not stored."""
    strategy: Strategy = _PLAIN_STRATEGY
    table: Table = PLAIN
    """What `kubectl get` prints."""
    rights: Mapping[str, str] = field(default_factory=dict)
    """Verbs by role, if Kubernetes' own roles do not name the kind: `R; patch,update status`. See identity/roles.py."""
    description: str
    """One sentence for `kubectl explain`."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Descriptions of messages and fields: `PodSpec`, `PodSpec.containers`."""

    @property
    def resource_name(self) -> str:
        return self.plural or f"{self.name.lower()}s"
