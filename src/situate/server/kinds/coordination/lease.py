"""Lease: who holds a lock, and until when."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

_SPEC: Final = FieldChecks("coordination.v1.LeaseSpec")
_NOT_OFFERED: Final = ("strategy", "preferredHolder")
"""Fields of coordinated leader election, whose feature gate is off by default."""


def _default(obj: Object) -> None:
    obj.setdefault("spec", {})


def _prepare_create(obj: Object) -> None:
    for name in _NOT_OFFERED:
        obj["spec"].pop(name, None)


def _prepare_update(new: Object, _old: Object) -> None:
    _prepare_create(new)


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        causes.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    _SPEC.check(spec, "spec", causes)


KIND: Final = Kind(
    "coordination.k8s.io/v1 leases Lease N - -",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=again(_validate),
        creates_on_update=True,
        unconditional_update=False,
    ),
    columns="Name!, Holder = spec.holderIdentity, Age",
    description="Lease says who holds a lock, and until when.",
)
