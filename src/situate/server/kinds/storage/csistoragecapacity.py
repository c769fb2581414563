"""CSIStorageCapacity: how much storage a driver has left in a part of the cluster."""

from typing import Final

from situate.server.kinds.field_errors import NOT_NEGATIVE, Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import subdomain
from situate.server.kinds.quantities import nanos, text_of
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object


def _validate_capacity(obj: Object, causes: Causes) -> None:
    causes.label_selector(obj.get("nodeTopology"), "nodeTopology")
    causes.check(subdomain, obj.get("storageClassName", ""), "storageClassName")
    if "capacity" in obj and nanos(obj["capacity"]) < 0:
        causes.invalid("capacity", text_of(obj["capacity"]), NOT_NEGATIVE)


def _validate_capacity_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("nodeTopology"), old.get("nodeTopology"), "nodeTopology")
    causes.immutable(new.get("storageClassName", ""), old.get("storageClassName", ""), "storageClassName")


KIND: Final = Kind(
    "storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity N - -",
    strategy=Strategy(
        validate=_validate_capacity, validate_update=_validate_capacity_update, unconditional_update=False
    ),
    description="CSIStorageCapacity says how much storage a driver has left in a part of the cluster.",
)
