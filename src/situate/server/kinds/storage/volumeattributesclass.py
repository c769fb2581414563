"""VolumeAttributesClass: attributes of volumes that a CSI driver can change."""

from typing import Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.storage.storageclass import validate_driver, validate_parameters
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

WHY: Final = "no CSI driver changes volumes"


def _validate(obj: Object, causes: Causes) -> None:
    parameters = obj.get("parameters") or {}
    validate_driver(obj.get("driverName", ""), "driverName", causes)
    validate_parameters(parameters, causes)
    if not parameters:
        causes.required("parameters", "must contain at least one key/value pair")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    for name in ("driverName", "parameters"):
        if new.get(name) != old.get(name):
            causes.forbidden(name, f"updates to {name} are forbidden.")
    _validate(new, causes)


KIND: Final = Kind(
    "storage.k8s.io/v1 volumeattributesclasses VolumeAttributesClass C vac -",
    strategy=Strategy(
        validate=_validate, validate_update=_validate_update, warnings=kept("VolumeAttributesClass", WHY)
    ),
    columns="Name!, DriverName = driverName, Age",
    description="VolumeAttributesClass names attributes of volumes that a CSI driver can change.",
)
