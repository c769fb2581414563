"""How far nodes are from places that pods name: milliseconds by node, by zone and by region."""

from collections.abc import Mapping

from situate.core.model.base import EMPTY, Model
from situate.core.model.meta import ObjectMeta


class PlaceLatencies(Model, frozen=True, kw_only=True):
    """Milliseconds to one place. What is said of a node goes before its zone, and that before its region."""

    nodes: Mapping[str, float] = EMPTY
    zones: Mapping[str, float] = EMPTY
    regions: Mapping[str, float] = EMPTY


class LatencyTable(Model, frozen=True, kw_only=True):
    """The table of a file, as it is now. Its name is the file's, as the arguments of the plugin Latency have it."""

    metadata: ObjectMeta = ObjectMeta()
    places: Mapping[str, PlaceLatencies] = EMPTY
