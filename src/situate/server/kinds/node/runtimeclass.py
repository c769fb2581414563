"""RuntimeClass: a way in which a node runs containers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.server.kinds.core.pod.scheduling import tolerations
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.go_structs import TOLERATION, go_struct
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label
from situate.server.kinds.quantities import resources
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

_KEY: Final = ("key", "operator", "value", "effect")


def _validate(obj: Object, causes: Causes) -> None:
    causes.require_valid(dns_label, obj.get("handler", ""), "handler")
    overhead = obj.get("overhead", {}).get("podFixed")
    if overhead:
        resources({"limits": overhead}, "overhead", causes)
    scheduling = obj.get("scheduling", {})
    causes.labels(scheduling.get("nodeSelector", {}), "scheduling.nodeSelector")
    _tolerations(scheduling.get("tolerations", ()), causes)


def _tolerations(these: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    tolerations(these, "scheduling.tolerations", causes)
    seen: list[tuple[Any, ...]] = []
    for index, one in enumerate(these):
        key = tuple(one.get(name, "") for name in _KEY)
        if key in seen:
            causes.duplicate(f"scheduling.tolerations[{index}]", go_struct(one, TOLERATION))
        seen.append(key)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("handler", ""), old.get("handler", ""), "handler")


KIND: Final = Kind(
    "node.k8s.io/v1 runtimeclasses RuntimeClass C - -",
    strategy=Strategy(
        validate=_validate, validate_update=_validate_update, creates_on_update=True, unconditional_update=False
    ),
    columns="Name!, Handler = handler, Age",
    description="RuntimeClass names a way in which a node runs containers.",
)
