"""APIService: a group and version that another API server serves, behind a Service. Whether it answers, the
aggregation says."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_1035_label, path_segment, port_number, subdomain
from situate.server.kinds.strategy import Strategy, again, keep_all_but_status, keep_status
from situate.server.kinds.webhook_clients import PORT, default_port
from situate.server.objects import Object

MOST_GROUP_PRIORITY: Final = 20_000
MOST_VERSION_PRIORITY: Final = 1_000
AVAILABLE: Final = "Available"
STATUSES: Final = ("False", "True", "Unknown")
_LOCAL: Final = ("True", "Local", "Local APIServices are always available")


def _default(obj: Object) -> None:
    default_port(obj.setdefault("spec", {}))


def _prepare_create(obj: Object) -> None:
    obj["status"] = (
        {} if "service" in obj["spec"] else {"conditions": [_local(obj["metadata"].get("creationTimestamp"))]}
    )


def _prepare_update(new: Object, old: Object) -> None:
    """Whatever was found out about another server no longer holds if the service changes."""
    keep_status(new, old)
    if new["spec"].get("service") != old["spec"].get("service"):
        others = [one for one in (old.get("status") or {}).get("conditions") or () if one.get("type") != AVAILABLE]
        new["status"] = {"conditions": others if "service" in new["spec"] else [*others, _local(None)]}


def _local(since: str | None) -> Mapping[str, Any]:
    status, reason, message = _LOCAL
    return {"type": AVAILABLE, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj["spec"]
    group, version, service = spec.get("group", ""), spec.get("version", ""), spec.get("service")
    name = obj["metadata"].get("name", "")
    if name and not path_segment(name) and name != f"{version}.{group}":
        causes.invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{version}.{group}"')
    if not group and version != "v1":
        causes.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    if group:
        causes.check(subdomain, group, "spec.group")
    causes.check(dns_1035_label, version, "spec.version")
    for field, most in (("groupPriorityMinimum", MOST_GROUP_PRIORITY), ("versionPriority", MOST_VERSION_PRIORITY)):
        priority = spec.get(field, 0)
        if not 0 < priority <= most:
            causes.invalid(f"spec.{field}", priority, f"must be positive and less than {most}")
    bundle, insecure = spec.get("caBundle") or "", spec.get("insecureSkipTLSVerify", False)
    if service is not None:
        _service(service, causes)
        if insecure and bundle:
            causes.invalid("spec.insecureSkipTLSVerify", insecure, "may not be true if caBundle is present")
        return
    if bundle:
        causes.invalid("spec.caBundle", _size(bundle), "local APIServices may not have a caBundle")
    if insecure:
        text = "local APIServices may not have insecureSkipTLSVerify"
        causes.invalid("spec.insecureSkipTLSVerify", insecure, text)


def _size(encoded: str) -> str:
    return f"{len(encoded) * 3 // 4 - encoded[-2:].count('=')} bytes"


def _service(service: Mapping[str, Any], causes: Causes) -> None:
    for field in ("namespace", "name"):
        if not service.get(field):
            causes.required(f"spec.service.{field}")
    port = service.get("port", PORT)
    if problems := port_number(port):
        causes.invalid("spec.service.port", port, f"port is not valid: {', '.join(problems)}")


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    for index, one in enumerate((new.get("status") or {}).get("conditions") or ()):
        if one.get("status") not in STATUSES:
            causes.not_supported(f"status.conditions[{index}].status", one.get("status", ""), STATUSES)


def _where(obj: Object) -> str:
    service = (obj.get("spec") or {}).get("service")
    return "Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}"


def _available(obj: Object) -> str:
    for one in (obj.get("status") or {}).get("conditions") or ():
        if one.get("type") == AVAILABLE:
            status: str = one.get("status", "")
            return status if status == "True" else f"{status} ({one.get('reason', '')})"
    return "Unknown"


KIND: Final = Kind(
    "apiregistration.k8s.io/v1 apiservices APIService C - api-extensions | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=keep_all_but_status,
        validate=_validate,
        validate_update=again(_validate),
        validate_status=_validate_status,
        name_rule=path_segment,
    ),
    columns="Name!, Service, Available, Age",
    cells={"Service": _where, "Available": _available},
    description="APIService registers a group and version that another API server serves.",
)
