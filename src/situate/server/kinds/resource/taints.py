"""The taints of devices: the same in slices and in rules."""

from collections.abc import Mapping
from typing import Any

from situate.core.model.names import label_value_problems, qualified_name_problems
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.resource.resourceclaim import TAINT_EFFECTS


def stamp_taint(taint: dict[str, Any], now: str) -> None:
    """A taint without a time was added now."""
    if taint.get("timeAdded") is None:
        taint["timeAdded"] = now


def check_taint(one: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.check(qualified_name_problems, one.get("key", ""), f"{path}.key")
    if one.get("value"):
        causes.check(label_value_problems, one["value"], f"{path}.value")
    causes.require_one_of(one.get("effect", ""), TAINT_EFFECTS, f"{path}.effect")
