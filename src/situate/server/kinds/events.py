"""Events, of core/v1 and of events.k8s.io/v1, which has other names for some fields and asks for more.

The rules of either read an event in either form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.errors import Cause
from situate.server.kinds.naming import path_segment, subdomain
from situate.server.kinds.strategy import Strategy
from situate.server.kinds.validating import Causes, check, immutable, invalid, required
from situate.server.requests import Object

__all__ = ["NEW_STRATEGY", "STRATEGY"]

MAX_WORD: Final = 128
MAX_NOTE: Final = 1024
MISMATCH: Final = "does not match event.namespace"
_HOME: Final = ("default", "kube-system")

# As messages call them: as core/v1 does, but for the controller.
_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingController": "reportingComponent",
}
_FIXED: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingController",
    "reportingInstance",
)


def _read(obj: Object, name: str) -> Any:
    found = obj.get(name)
    return found if found is not None else obj.get(_NAMES.get(name, name))


def _text(obj: Object, name: str) -> str:
    found: str = _read(obj, name) or ""
    return found


def _common(obj: Object, causes: Causes, controller: str = "reportingController") -> None:
    namespace = obj.get("metadata", {}).get("namespace", "")
    about = (_read(obj, "involvedObject") or {}).get("namespace", "")
    if not obj.get("eventTime"):
        if (about or "default") != namespace:
            causes.append(invalid("involvedObject.namespace", about, MISMATCH))
    else:
        if not about and namespace not in _HOME:
            causes.append(invalid("involvedObject.namespace", about, MISMATCH))
        _words(obj, controller, causes)
    check(subdomain, namespace, "namespace", causes)


def _words(obj: Object, controller: str, causes: Causes) -> None:
    reporter = _text(obj, "reportingController")
    if not reporter:
        causes.append(required(controller))
    check(qualified_name_problems, reporter, controller, causes)
    for name in ("reportingInstance", "action", "reason"):
        text = obj.get(name, "")
        if not text:
            causes.append(required(name))
        _short(text, MAX_WORD, name, causes)
    _short(_text(obj, "message"), MAX_NOTE, "message", causes)


def _short(text: str, limit: int, name: str, causes: Causes) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        causes.append(invalid(name, "", f"can have at most {limit} characters"))


def _series(obj: Object, causes: Causes) -> None:
    series = obj.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        causes.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        causes.append(required("series.lastObservedTime"))


def _validate(obj: Object) -> list[Cause]:
    """Of core/v1."""
    causes: Causes = []
    _common(obj, causes, "reportingComponent")
    return causes


def _validate_update(new: Object, _old: Object) -> list[Cause]:
    return _validate(new)


def _validate_new(obj: Object) -> list[Cause]:
    causes: Causes = []
    _common(obj, causes)
    _series(obj, causes)
    if not obj.get("eventTime"):
        causes.append(required("eventTime"))
    if obj.get("type", "") not in ("Normal", "Warning"):
        causes.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if _read(obj, name):
            causes.append(invalid(name, "", "needs to be unset"))
    return causes


def _validate_new_update(new: Object, old: Object) -> list[Cause]:
    causes: Causes = []
    _common(new, causes)
    if new.get("series") != old.get("series"):
        _series(new, causes)
    for name in _FIXED:
        immutable(_read(new, name) or None, _read(old, name) or None, name, causes)
    return causes


def _selectable(obj: Object) -> Mapping[str, str]:
    about = _read(obj, "involvedObject") or {}
    names = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    controller = _text(obj, "reportingController")
    source = (_read(obj, "source") or {}).get("component", "")
    return {
        **{f"involvedObject.{name}": about.get(name, "") for name in names},
        "reason": obj.get("reason", ""),
        "reportingComponent": controller,
        "source": source or controller,
        "type": obj.get("type", ""),
    }


STRATEGY: Final = Strategy(
    validate=_validate,
    validate_update=_validate_update,
    selectable=_selectable,
    name_rule=path_segment,
    creates_on_update=True,
)
NEW_STRATEGY: Final = Strategy(
    validate=_validate_new, validate_update=_validate_new_update, selectable=_selectable, creates_on_update=True
)
