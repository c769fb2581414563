"""Parses query options, with kube-apiserver's errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import unquote_plus

from situate.core.model.duration import parse_duration
from situate.core.model.integers import is_integer, parse_int64
from situate.core.model.timestamp import TimestampError, epoch_ms
from situate.server.errors import Cause, StatusError, bad_request, invalid
from situate.server.http.ports import LogOptions
from situate.server.kinds.field_errors import forbidden
from situate.server.registry.list_options import list_problems
from situate.server.requests import DeleteOptions, FieldValidation, ListOptions, WatchOptions, WriteOptions
from situate.wire.caching import cached_if_short

Query = Mapping[str, str]
"""The first value of each option. `dryRun` may be repeated; its values are joined by commas."""

META: Final = "meta.k8s.io"
MANAGER_BYTES: Final = 128
MAX_OPTIONS: Final = 256
VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
POLICIES: Final = ("", "Background", "Foreground", "Orphan")
_NAME_TERM: Final = re.compile(r"metadata\.name={1,2}([^,!=\\]+)")
_EMPTY: Final[Query] = {}


def parse_query(text: str) -> Query:
    """Decode `a=b&c=d`. What cannot be decoded stays as it is."""
    return _parsed(text) if text else _EMPTY


@cached_if_short(entries=1024, length=1024)
def _parsed(text: str) -> Query:
    found: dict[str, str] = {}
    terms = text.split("&", MAX_OPTIONS + 1)
    if len(terms) > MAX_OPTIONS:
        raise bad_request(f"more than {MAX_OPTIONS} query options")
    for term in terms:
        key, _, value = term.partition("=")
        if "%" in term or "+" in term:
            key, value = unquote_plus(key), unquote_plus(value)
        if key in found:
            if key == "dryRun":
                found[key] += f",{value}"
        else:
            found[key] = value
    return found


def flag(query: Query, name: str) -> bool | None:
    """None: not given. Everything but `false` and `0` is true, also the empty value."""
    value = query.get(name)
    return None if value is None else value.lower() not in ("false", "0")


def _integer(query: Query, name: str) -> int | None:
    text = query.get(name)
    if text is None or text == "":
        return None
    number = parse_int64(text)
    if number is None:
        why = "value out of range" if is_integer(text) else "invalid syntax"
        raise bad_request(f"strconv.ParseInt: parsing {_quoted(text)}: {why}")
    return number


def timeout_s(query: Query) -> float:
    """How long the client gives the request; 0: as long as the server does. Raises StatusError (400)."""
    text = query.get("timeout", "")
    if not text:
        return 0.0
    try:
        return max(parse_duration(text), 0) / 1e9
    except ValueError as error:
        raise bad_request(f"invalid timeout specified in the request URL - {error}") from None


def _quoted(text: str) -> str:
    shown = text.encode("unicode_escape").decode() if not text.isprintable() else text
    return '"' + shown.replace('"', '\\"') + '"'


def _refusal(kind: str, causes: Sequence[Cause]) -> StatusError:
    return invalid(kind, META, "", causes)


def _unsupported(field: str, value: str, supported: Sequence[str], *, sort: bool = True) -> Cause:
    known = ", ".join(f'"{one}"' for one in (sorted(supported) if sort else supported))
    return Cause(field, f"Unsupported value: {value}: supported values: {known}", "FieldValueNotSupported")


# -- reads -------------------------------------------------------------------------------------------------------------


def list_options(query: Query) -> ListOptions:
    if not query:
        return _PLAIN_LIST
    _integer(query, "timeoutSeconds")
    options = ListOptions(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        max(_integer(query, "limit") or 0, 0),
        query.get("continue", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
    )
    initial = flag(query, "sendInitialEvents") is not None
    causes = list_problems(options, initial_events=initial)
    if initial:
        causes.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if causes:
        raise _refusal("ListOptions", causes)
    return options


_PLAIN_LIST: Final = ListOptions()


def watch_options(query: Query) -> WatchOptions:
    initial = flag(query, "sendInitialEvents")
    match = query.get("resourceVersionMatch", "")
    field = "resourceVersionMatch"
    causes: list[Cause] = []
    if initial is not None and match != "NotOlderThan":
        causes.append(forbidden(field, f"sendInitialEvents requires setting {field} to NotOlderThan"))
    if initial is None and match:
        causes.append(forbidden(field, f"{field} is forbidden for watch unless sendInitialEvents is provided"))
    if initial is None and query.get("continue"):
        causes.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    if causes:
        raise _refusal("ListOptions", causes)
    _integer(query, "limit")
    return WatchOptions(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        query.get("resourceVersion", ""),
        match,
        initial,
        flag(query, "allowWatchBookmarks") is True,
        max(_integer(query, "timeoutSeconds") or 0, 0),
    )


def name_in(query: Query) -> str:
    """The metadata.name in a field selector: a right to one object covers a list of it."""
    selector = query.get("fieldSelector", "")
    for term in selector.split(",") if selector else ():
        if found := _NAME_TERM.fullmatch(term.strip()):
            return found[1]
    return ""


# -- writes ------------------------------------------------------------------------------------------------------------


def write_options(query: Query, kind: str, *, how: str = "") -> WriteOptions:
    """`kind` is CreateOptions, UpdateOptions or PatchOptions; `how` is the patch type."""
    if not query and how != "apply":
        return _PLAIN_WRITE
    manager = query.get("fieldManager", "")
    causes = _manager_problems(manager)
    force = flag(query, "force") if how else None
    if how == "apply" and not manager:
        causes.append(Cause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired"))
    if how and how != "apply" and force is not None:
        causes.append(forbidden("force", "may not be specified for non-apply patch"))
    dry_run = _dry_run(query.get("dryRun"), causes)
    validation = query.get("fieldValidation", "")
    if validation not in VALIDATIONS:
        causes.append(_unsupported("fieldValidation", _quoted(validation), VALIDATIONS))
    if causes:
        raise _refusal(kind, causes)
    return WriteOptions(dry_run, manager, cast(FieldValidation, validation or "Warn"), force is True)


_PLAIN_WRITE: Final = WriteOptions()


def _dry_run(value: str | None, causes: list[Cause]) -> bool:
    if not value:
        return False
    asked = value.split(",")
    if any(one != "All" for one in asked):
        shown = "[" + ",".join(_quoted(one) for one in asked) + "]"
        causes.append(_unsupported("dryRun", shown, ("All",)))
    return True


def _manager_problems(manager: str) -> list[Cause]:
    field = "fieldManager"
    if len(manager.encode(errors="replace")) > MANAGER_BYTES:
        text = f"Too long: may not be more than {MANAGER_BYTES} bytes"
        return [Cause(field, text, "FieldValueTooLong")]
    for position, letter in enumerate(manager):
        if not letter.isprintable():
            shown = _quoted(manager).replace("\\\\", "\\")
            text = f"Invalid value: {shown}: invalid character U+{ord(letter):04X} (at position {position})"
            return [Cause(field, text)]
    return []


def delete_options(query: Query, body: Mapping[str, Any]) -> DeleteOptions:
    """From the body if there is one, else from the query. The decoder has checked the types in the body."""
    causes: list[Cause] = []
    if body:
        dry_run = _dry_run(",".join(body.get("dryRun") or ()), causes)
        grace, policy = body.get("gracePeriodSeconds"), body.get("propagationPolicy") or ""
        orphan = body.get("orphanDependents")
    else:
        dry_run = _dry_run(query.get("dryRun"), causes)
        grace, policy = _integer(query, "gracePeriodSeconds"), query.get("propagationPolicy", "")
        orphan = flag(query, "orphanDependents")
    if orphan is not None and policy:
        text = f"Invalid value: {_quoted(policy)}: orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("propagationPolicy", text))
    if policy not in POLICIES:
        known = ("Foreground", "Background", "Orphan", "nil")
        causes.append(_unsupported("propagationPolicy", _quoted(policy), known, sort=False))
    if causes:
        raise _refusal("DeleteOptions", causes)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    guard = body.get("preconditions") or {} if body else {}
    return DeleteOptions(
        dry_run,
        grace,
        str(guard.get("uid") or ""),
        str(guard.get("resourceVersion") or ""),
        cast(Any, policy),
    )


def _is_time(text: str) -> bool:
    """RFC 3339."""
    try:
        epoch_ms(text)
    except TimestampError:
        return False
    return True


# -- logs --------------------------------------------------------------------------------------------------------------


def log_options(query: Query) -> LogOptions:
    causes: list[Cause] = []
    tail, since = _integer(query, "tailLines"), _integer(query, "sinceSeconds")
    limit, since_time = _integer(query, "limitBytes"), query.get("sinceTime", "")
    stream = query.get("stream", "") or "All"
    if since_time and not _is_time(since_time):
        raise bad_request(f'parsing time {_quoted(since_time)} as "2006-01-02T15:04:05Z07:00": it is not')
    if tail is not None and tail < 0:
        causes.append(Cause("tailLines", f"Invalid value: {tail}: must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(Cause("limitBytes", f"Invalid value: {limit}: must be greater than 0"))
    if since is not None and since_time:
        causes.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif since is not None and since < 1:
        causes.append(Cause("sinceSeconds", f"Invalid value: {since}: must be greater than 0"))
    if stream not in ("All", "Stdout", "Stderr"):
        causes.append(_unsupported("stream", _quoted(stream), ("All", "Stderr", "Stdout")))
    if causes:
        raise invalid("PodLogOptions", "", "", causes)
    return LogOptions(
        flag(query, "follow") is True,
        flag(query, "previous") is True,
        flag(query, "timestamps") is True,
        since,
        since_time,
        tail,
        limit,
        stream,
    )
