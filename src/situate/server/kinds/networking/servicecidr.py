"""ServiceCIDR: a range of addresses for services. The server allocates from a range of its own; others are kept."""

from collections.abc import Sequence
from typing import Final

from situate.server.kinds.addresses import cidr
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy, drop_status, keep_status
from situate.server.objects import Object

MOST: Final = 2
WHY: Final = "services get addresses from the server's own range"


def _prepare_create(obj: Object) -> None:
    drop_status(obj)
    obj["status"] = {}


def _validate(obj: Object, causes: Causes) -> None:
    ranges: Sequence[str] = obj.get("spec", {}).get("cidrs", [])
    if not ranges:
        causes.required("spec.cidrs", "at least one CIDR required")
        return
    if len(ranges) > MOST:
        causes.invalid("spec.cidrs", {"CIDRs": list(ranges)}, "may only hold up to 2 values")
    elif len(ranges) == MOST and (":" in ranges[0]) == (":" in ranges[1]):
        detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        causes.invalid("spec.cidrs", list(ranges), detail)
    for index, one in enumerate(ranges):
        cidr(one, f"spec.cidrs[{index}]", causes)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("spec", {}).get("cidrs"), old.get("spec", {}).get("cidrs"), "spec.cidrs")


KIND: Final = Kind(
    "networking.k8s.io/v1 servicecidrs ServiceCIDR C - - | status",
    strategy=Strategy(
        prepare_create=_prepare_create,
        prepare_update=keep_status,
        validate=_validate,
        validate_update=_validate_update,
        warnings=kept("ServiceCIDR", WHY),
    ),
    columns="Name!, CIDRs, Age",
    cells={"CIDRs": lambda obj: ",".join((obj.get("spec") or {}).get("cidrs") or ()) or "<none>"},
    description="ServiceCIDR is a range of addresses for services.",
)
