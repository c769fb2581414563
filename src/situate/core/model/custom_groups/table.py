"""The custom PodGroup kinds that situate reads. Everything that handles them goes by this table."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from situate.core.model.custom_groups import coscheduling, kai, volcano
from situate.core.model.custom_groups.kind import UNKNOWN, CustomGroupKind, CustomPodGroup, IgnoredField

CUSTOM_GROUP_KINDS: Final[tuple[CustomGroupKind, ...]] = (coscheduling.KIND, volcano.KIND, kai.KIND)
"""If a pod names groups of several kinds, the first counts."""

_BY_MODEL: Final[Mapping[type[CustomPodGroup], CustomGroupKind]] = MappingProxyType(
    {one.model: one for one in CUSTOM_GROUP_KINDS}
)


def kind_of(group: CustomPodGroup) -> CustomGroupKind:
    return _BY_MODEL[type(group)]


def ignored_fields(group: CustomPodGroup) -> tuple[IgnoredField, ...]:
    """The fields that are set in a group and that situate does not act on, in the order of their names."""
    kind = kind_of(group)
    found = (path for path in _set_paths("", group.spec, kind.acts_on) if path not in kind.acts_on)
    return tuple(IgnoredField(f"spec.{path}", kind.ignores.get(path, UNKNOWN)) for path in sorted(found))


def _set_paths(before: str, fields: Mapping[str, Any], acts_on: frozenset[str]) -> Iterator[str]:
    """The fields that are set: one by one where some of them are acted on, and else by the field that has them."""
    for name, value in fields.items():
        path = f"{before}{name}"
        if isinstance(value, Mapping) and any(one.startswith(f"{path}.") for one in acts_on):
            yield from _set_paths(f"{path}.", value, acts_on)
        elif value is not None and value not in ("", [], {}):
            yield path
