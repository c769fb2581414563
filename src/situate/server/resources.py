"""The resources that are served, by their names. The declarations in `kinds` are the source."""

from collections.abc import Mapping
from typing import Final

from situate.server.kinds import KINDS
from situate.server.kinds.kind import Resource

__all__ = ["BY_KIND", "BY_PATH", "RESOURCES", "Resource"]

RESOURCES: Final = tuple(one for kind in KINDS for one in kind.resources)
BY_PATH: Final[Mapping[tuple[str, str, str], Resource]] = {
    (one.group, one.version, one.plural): one for one in RESOURCES
}
"""By group, version and plural, as in a URL."""


def served_by(version: str) -> tuple[Resource, ...]:
    """The resources that a server of this version of Kubernetes has: "1.37", or "v1.37.1"."""
    minor = _minor(version)
    return tuple(one for one in RESOURCES if not one.since or _minor(one.since) <= minor)


def _minor(version: str) -> int:
    return int(version.removeprefix("v").split(".")[1])


BY_KIND: Final[Mapping[tuple[str, str], Resource]] = {(one.api_version, one.kind): one for one in RESOURCES}
