"""Services: defaults, addresses, validation and selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from situate.server.kinds.naming import dns_label
from situate.server.kinds.services.preparing import (
    ADDRESSES,
    NODE_PORTS,
    allocate,
    default,
    prepare_create,
    prepare_update,
)
from situate.server.kinds.services.validation import validate, validate_status, validate_update
from situate.server.kinds.strategy import Strategy
from situate.server.requests import Object

__all__ = ["ADDRESSES", "NODE_PORTS", "STRATEGY", "allocate"]


def _warnings(service: Object) -> list[str]:
    spec, found = service.get("spec", {}), []
    if spec.get("externalIPs"):
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


def _selectable(service: Object) -> Mapping[str, str]:
    spec = service.get("spec", {})
    return {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}


STRATEGY: Final = Strategy(
    default=default,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    validate=validate,
    validate_update=validate_update,
    validate_status=validate_status,
    selectable=_selectable,
    warnings=_warnings,
    name_rule=dns_label,
    creates_on_update=True,
)
