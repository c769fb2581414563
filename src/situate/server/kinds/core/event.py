"""Events of core/v1 and of events.k8s.io/v1, which renames some fields and has stricter rules.

Every function reads an event in either form.
"""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import path_segment, subdomain
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object
from situate.server.tables.columns import printer
from situate.server.tables.durations import since

MAX_WORD: Final = 128
MAX_NOTE: Final = 1024
MISMATCH: Final = "does not match event.namespace"
_HOME: Final = ("default", "kube-system")

# By the names in error messages: those of core/v1, except for the controller.
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
            causes.invalid("involvedObject.namespace", about, MISMATCH)
    else:
        if not about and namespace not in _HOME:
            causes.invalid("involvedObject.namespace", about, MISMATCH)
        _words(obj, controller, causes)
    causes.check(subdomain, namespace, "namespace")


def _words(obj: Object, controller: str, causes: Causes) -> None:
    reporter = _text(obj, "reportingController")
    causes.require(reporter, controller)
    causes.check(qualified_name_problems, reporter, controller)
    for name in ("reportingInstance", "action", "reason"):
        text = obj.get(name, "")
        causes.require(text, name)
        _short(text, MAX_WORD, name, causes)
    _short(_text(obj, "message"), MAX_NOTE, "message", causes)


def _short(text: str, limit: int, name: str, causes: Causes) -> None:
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        causes.invalid(name, "", f"can have at most {limit} characters")


def _series(obj: Object, causes: Causes) -> None:
    series = obj.get("series")
    if series is None:
        return
    if series.get("count", 0) < 2:
        causes.invalid("series.count", "", "should be at least 2")
    causes.require(series.get("lastObservedTime"), "series.lastObservedTime")


def _validate(obj: Object, causes: Causes) -> None:
    """Of core/v1."""
    _common(obj, causes, "reportingComponent")


def _validate_new(obj: Object, causes: Causes) -> None:
    _common(obj, causes)
    _series(obj, causes)
    causes.require(obj.get("eventTime"), "eventTime")
    if obj.get("type", "") not in ("Normal", "Warning"):
        causes.invalid("type", "", f"has invalid value: {obj.get('type', '')}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if _read(obj, name):
            causes.invalid(name, "", "needs to be unset")


def _validate_new_update(new: Object, old: Object, causes: Causes) -> None:
    _common(new, causes)
    if new.get("series") != old.get("series"):
        _series(new, causes)
    for name in _FIXED:
        causes.immutable(_read(new, name) or None, _read(old, name) or None, name)


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


def _last_seen(obj: Object, now_ns: int) -> str:
    series = obj.get("series")
    if series is not None:
        return since(series.get("lastObservedTime"), now_ns)
    last = _read(obj, "lastTimestamp")
    return since(last, now_ns) if last else _first_seen(obj, now_ns)


def _first_seen(obj: Object, now_ns: int) -> str:
    return since(_read(obj, "firstTimestamp") or obj.get("eventTime"), now_ns)


def _count(obj: Object) -> int:
    series = obj.get("series")
    found: int = (_read(obj, "count") or 1) if series is None else series.get("count", 0)
    return found


def _object(obj: Object) -> str:
    about = _read(obj, "involvedObject") or {}
    kind: str = about.get("kind", "").lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _subobject(obj: Object) -> str:
    found: str = (_read(obj, "involvedObject") or {}).get("fieldPath", "")
    return found


def _source(obj: Object) -> str:
    source = _read(obj, "source") or {}
    component: str = source.get("component") or _text(obj, "reportingController")
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _message(obj: Object) -> str:
    return _text(obj, "message").strip()


_PRINTER: Final = printer(
    """
        Last Seen, Type = type, Reason = reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name!
        """,
    {"Object": _object, "Subobject": _subobject, "Source": _source, "Message": _message, "Count": _count},
    {"Last Seen": _last_seen, "First Seen": _first_seen},
)


KIND: Final = Kind(
    "v1 events Event N ev -",
    strategy=Strategy(
        validate=_validate,
        validate_update=again(_validate),
        selectable=_selectable,
        name_rule=path_segment,
        creates_on_update=True,
    ),
    printer=_PRINTER,
    description="Event reports something that happened to an object.",
)
EVENTS_KIND: Final = Kind(
    "events.k8s.io/v1 events Event N ev - = /events",
    strategy=Strategy(
        validate=_validate_new, validate_update=_validate_new_update, selectable=_selectable, creates_on_update=True
    ),
    printer=_PRINTER,
    description="Event reports something that happened to an object.",
)
