"""IPAddress: that an address is taken, and by whom."""

from typing import Final

from situate.server.kinds.addresses import NOT_AN_IP, parse_ip
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import path_segment, subdomain
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

WHY: Final = "services hold their addresses themselves"


def _name(text: str) -> tuple[str, ...]:
    found = parse_ip(text)
    if found is None:
        return (NOT_AN_IP,)
    return () if str(found) == text else (f"must be in canonical form ({str(found)!r})".replace("'", '"'),)


def _validate(obj: Object, causes: Causes) -> None:
    parent = obj.get("spec", {}).get("parentRef")
    if parent is None:
        causes.required("spec.parentRef")
        return
    for field, rule, needed in (
        ("group", subdomain, False),
        ("resource", path_segment, True),
        ("name", path_segment, True),
        ("namespace", path_segment, False),
    ):
        if parent.get(field):
            causes.check(rule, parent[field], f"spec.parentRef.{field}")
        elif needed:
            causes.required(f"spec.parentRef.{field}")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("spec", {}).get("parentRef"), old.get("spec", {}).get("parentRef"), "spec.parentRef")


def _parent(obj: Object) -> str:
    parent = (obj.get("spec") or {}).get("parentRef") or {}
    kind = f"{parent.get('resource', '')}.{parent['group']}" if parent.get("group") else parent.get("resource", "")
    return "/".join(part for part in (kind, parent.get("namespace", ""), parent.get("name", "")) if part)


KIND: Final = Kind(
    "networking.k8s.io/v1 ipaddresses IPAddress C ip -",
    strategy=Strategy(
        validate=_validate, validate_update=_validate_update, warnings=kept("IPAddress", WHY), name_rule=_name
    ),
    columns="Name!, ParentRef",
    cells={"ParentRef": _parent},
    description="IPAddress says that an address is taken, and by whom.",
)
