"""PriorityClass: a name for a priority of pods."""

from typing import Final

from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

_FIELDS: Final = FieldChecks("scheduling.v1.PriorityClass")
HIGHEST: Final = 1_000_000_000
SYSTEM_PREFIX: Final = "system-"
SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}


def _default_priority(obj: Object) -> None:
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _prepare_priority(obj: Object) -> None:
    obj.setdefault("metadata", {})["generation"] = 1


def _validate_priority(obj: Object, causes: Causes) -> None:
    name, value = obj.get("metadata", {}).get("name", ""), obj.get("value", 0)
    if name.startswith(SYSTEM_PREFIX):
        problem = _not_of_system(name, value, bool(obj.get("globalDefault")))
        if problem:
            text = (
                f"priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {problem}"
            )
            causes.forbidden("metadata.name", text)
    elif value > HIGHEST:
        causes.forbidden("value", f"maximum allowed value of a user defined priority is {HIGHEST}")
    _FIELDS.check(obj, "", causes)


def _not_of_system(name: str, value: int, default: bool) -> str:
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


def _validate_priority_update(new: Object, old: Object, causes: Causes) -> None:
    if new.get("value", 0) != old.get("value", 0):
        causes.forbidden("value", "may not be changed in an update.")
    causes.immutable(new.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")


KIND: Final = Kind(
    "scheduling.k8s.io/v1 priorityclasses PriorityClass C pc -",
    strategy=Strategy(
        default=_default_priority,
        prepare_create=_prepare_priority,
        validate=_validate_priority,
        validate_update=_validate_priority_update,
    ),
    columns="""
        Name!, Value# = value, Global-Default? = globalDefault, Age, PreemptionPolicy = preemptionPolicy
        """,
    description="PriorityClass names a priority of pods.",
)
