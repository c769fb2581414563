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
BY_KIND: Final[Mapping[tuple[str, str], Resource]] = {(one.api_version, one.kind): one for one in RESOURCES}
