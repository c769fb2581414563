"""ControllerRevision: a snapshot of a StatefulSet's or DaemonSet's template. Only its number may change."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.cells import NONE

_FIELDS: Final = FieldChecks("apps.v1.ControllerRevision")


def _default(obj: Object) -> None:
    obj.setdefault("revision", 0)


def _validate(obj: Object, causes: Causes) -> None:
    _FIELDS.check(obj, "", causes, "revision")
    data = obj.get("data")
    if data is None:
        causes.required("data", "data is mandatory")
    elif not isinstance(data, dict):
        causes.required("data", "data must be a valid JSON object")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    _FIELDS.check(new, "", causes, "revision")
    causes.immutable(new.get("data"), old.get("data"), "data")


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


KIND: Final = Kind(
    "apps/v1 controllerrevisions ControllerRevision N - -",
    strategy=Strategy(default=_default, validate=_validate, validate_update=_validate_update),
    columns="Name!, Controller, Revision = revision|0, Age",
    cells={"Controller": _controller},
    description="ControllerRevision is a snapshot of a controller's template, for rollbacks.",
)
