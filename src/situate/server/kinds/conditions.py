"""Validation of metav1.Condition, in the status of budgets and groups."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.names import pattern_text

MAX_REASON: Final = 1024
MAX_MESSAGE: Final = 32 * 1024
_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_IS_REASON = re.compile(_REASON, re.ASCII).fullmatch
_REASON_RULE = pattern_text(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def is_true(these: Sequence[Mapping[str, Any]], kind: str) -> bool:
    return any(one.get("type") == kind and one.get("status") == "True" for one in these)


def conditions(these: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    seen: set[str] = set()
    for index, one in enumerate(these):
        at, kind = f"{path}[{index}]", one.get("type", "")
        causes.unique(kind, seen, f"{at}.type")
        _condition(one, at, causes)


def _condition(one: Mapping[str, Any], path: str, causes: Causes) -> None:
    causes.check(qualified_name_problems, one.get("type", ""), f"{path}.type")
    causes.one_of(one.get("status", ""), _STATUSES, f"{path}.status")
    if one.get("observedGeneration", 0) < 0:
        causes.invalid(f"{path}.observedGeneration", one["observedGeneration"], "must be greater than or equal to zero")
    causes.require(one.get("lastTransitionTime"), f"{path}.lastTransitionTime")
    reason = one.get("reason", "")
    if not reason:
        causes.required(f"{path}.reason")
    else:
        if not _IS_REASON(reason):
            causes.invalid(f"{path}.reason", reason, _REASON_RULE)
        if len(reason) > MAX_REASON:
            causes.too_long(f"{path}.reason", MAX_REASON)
    if len(one.get("message", "").encode("utf-8", "surrogatepass")) > MAX_MESSAGE:
        causes.too_long(f"{path}.message", MAX_MESSAGE)
