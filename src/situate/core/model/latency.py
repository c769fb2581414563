"""The latency of nodes to places that pods name: milliseconds by node, zone and region."""

from collections.abc import Mapping

from situate.core.model.base import EMPTY, Model
from situate.core.model.meta import ObjectMeta


class PlaceLatencies(Model, frozen=True, kw_only=True):
    """Milliseconds to one place. A node's entry wins over its zone's, and that over its region's."""

    nodes: Mapping[str, float] = EMPTY
    zones: Mapping[str, float] = EMPTY
    regions: Mapping[str, float] = EMPTY


class LatencyTable(Model, frozen=True, kw_only=True):
    """The current table of a file. Its name is the `tableFile` argument of the plugin Latency."""

    metadata: ObjectMeta = ObjectMeta()
    places: Mapping[str, PlaceLatencies] = EMPTY
