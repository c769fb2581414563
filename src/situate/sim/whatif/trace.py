"""Reads a trace of pods: CSV or JSON lines. docs/guides/simulate.md describes the columns.

Every error is an InputError with file and line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from situate.core.changes import Millis
from situate.core.model.names import subdomain_problems
from situate.core.model.pod import Pod
from situate.core.model.priority import PriorityClasses, UnknownPriorityClassError, with_priority
from situate.sim.whatif.distributions import Distribution, draw, parse_distribution, parse_span
from situate.sim.whatif.expansion import renamed
from situate.sim.whatif.script import Arrival, Deletion, PodSet
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked

COLUMNS: Final = (
    "time",
    "action",
    "name",
    "namespace",
    "count",
    "duration",
    "group",
    "template",
    "labels",
    "nodeSelector",
    "priority",
    "priorityClassName",
    "schedulerName",
)
"""The columns besides resources."""
ONLY_JSON: Final = ("requests", "pod")
MOST_PODS: Final = 1_000_000
"""The pod limit of a trace."""
CREATE: Final = "create"
DELETE: Final = "delete"
ALL: Final = "trace"
"""The set of pods without a group."""
_RESOURCE: Final = re.compile(r"cpu|memory|ephemeral-storage|hugepages-[a-z0-9]+|[a-z0-9.-]+/[A-Za-z0-9._-]+", re.ASCII)
_COUNT: Final = re.compile(r"[0-9]{1,7}", re.ASCII)
_PRIORITY: Final = re.compile(r"-?[0-9]{1,10}", re.ASCII)

Templates = Callable[[str], Mapping[str, Any]]
"""The pod of a named template, as JSON. Raises InputError or OSError."""


@dataclass(slots=True)
class Trace:
    groups: list[PodSet] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    deletions: list[Deletion] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line with its location, for errors."""

    number: int
    said: Mapping[str, Any]
    file: str

    def wrong(self, problem: str, path: str = "") -> InputError:
        return InputError(problem, file=self.file, subject=f"line {self.number}", path=path)

    def text(self, key: str, default: str = "") -> str:
        value = self.said.get(key)
        if value is None or value == "":
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.wrong("expected a string or a number", key)
        return str(value).strip()


def read_trace(
    data: bytes,
    file: str,
    *,
    classes: PriorityClasses,
    templates: Templates,
    taken: Mapping[str, str],
    seed: int,
    duration: Distribution | None,
    first_group: int,
) -> Trace:
    """`taken` maps existing pods to their source; `duration` is the default run time.

    Raises InputError.
    """
    reader = _Reader(classes, templates, taken, seed, duration, first_group)
    before = None
    for line in _lines(data, file):
        at = reader.time(line)
        if before is not None and at < before[0]:
            problem = f"{line.text('time')} is before {before[1].text('time')}, the time of line {before[1].number}"
            raise line.wrong(f"time goes back: {problem}", "time")
        before = (at, line)
        reader.take(line, at)
    if before is None:
        raise InputError("the trace is empty", file=file)
    return reader.trace


# -- lines -----------------------------------------------------------------------------------------------------------


def _lines(data: bytes, file: str) -> Iterator[_Line]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8", file=file) from None
    if "\0" in text:
        raise InputError("has NUL bytes: neither CSV nor JSON lines", file=file)
    return _json_lines(text, file) if text.lstrip()[:1] == "{" else _csv_lines(text, file)


def _json_lines(text: str, file: str) -> Iterator[_Line]:
    for number, one in enumerate(text.split("\n"), 1):
        if not one.strip():
            continue
        try:
            said = msgspec.json.decode(one.encode())
        except (msgspec.DecodeError, RecursionError) as error:
            raise InputError(f"not JSON: {error}", file=file, subject=f"line {number}") from None
        line = _Line(number, said if isinstance(said, dict) else {}, file)
        if not isinstance(said, dict):
            raise line.wrong("expected an object")
        for key in said:
            if key not in COLUMNS and key not in ONLY_JSON:
                raise line.wrong(f"unknown field; expected one of {', '.join((*COLUMNS, *ONLY_JSON))}", key)
        yield line


def _csv_lines(text: str, file: str) -> Iterator[_Line]:
    reader = csv.reader(text.splitlines(), strict=True)
    heading: list[str] = []
    try:
        for row in reader:
            if not row or row[0].startswith("#"):
                continue
            if not heading:
                heading = _heading(row, reader.line_num, file)
                continue
            line = _Line(reader.line_num, dict(zip(heading, row, strict=False)), file)
            if len(row) != len(heading):
                raise line.wrong(f"{len(row)} values under {len(heading)} headings")
            yield line
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file=file, subject=f"line {reader.line_num}") from None


def _heading(row: list[str], number: int, file: str) -> list[str]:
    heading = [name.strip() for name in row]
    line = _Line(number, {}, file)
    if "time" not in heading:
        raise line.wrong('the header has no column "time"')
    for at, name in enumerate(heading):
        if name in heading[:at]:
            raise line.wrong(f'duplicate column "{name}"')
        if name not in COLUMNS and not _RESOURCE.fullmatch(name):
            known = ", ".join(COLUMNS)
            raise line.wrong(
                f'"{name}" is neither a column nor a resource; expected {known}, cpu, memory or another resource'
            )
    return heading


# -- what a line says ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Reader:
    classes: PriorityClasses
    templates: Templates
    taken: Mapping[str, str]
    seed: int
    duration: Distribution | None
    first_group: int
    trace: Trace = field(default_factory=Trace)
    pods: dict[bytes, Pod] = field(default_factory=dict)
    durations: dict[str, Distribution] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    members: dict[int, int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    """The line that creates each pod."""
    rows: dict[str, int] = field(default_factory=dict)
    """The number of pods of a line with a count."""

    def time(self, line: _Line) -> Millis:
        said = line.text("time")
        if not said:
            raise line.wrong("Required value", "time")
        try:
            return parse_span(said)
        except ValueError as error:
            raise line.wrong(str(error), "time") from None

    def take(self, line: _Line, at: Millis) -> None:
        action = line.text("action", CREATE)
        if action not in (CREATE, DELETE):
            raise line.wrong(f'"{action}" is neither {CREATE} nor {DELETE}', "action")
        if action == DELETE:
            self._delete(line, at)
        else:
            self._create(line, at)

    def _delete(self, line: _Line, at: Millis) -> None:
        name, namespace = line.text("name"), line.text("namespace", "default")
        if not name:
            raise line.wrong("Required value", "name")
        key = f"{namespace}/{name}"
        if key in self.rows:
            keys = [f"{key}-{number}" for number in range(self.rows[key])]
        elif key in self.made or key in self.taken:
            keys = [key]
        else:
            raise line.wrong(f"deletes pod {key}, which does not exist at that time", "name")
        self.trace.deletions.extend(Deletion(at, one) for one in keys)

    def _create(self, line: _Line, at: Millis) -> None:
        pod = self._pod(line)
        name = line.text("name") or (pod.metadata.name if line.said.get("pod") else "") or f"line-{line.number}"
        for wrong in subdomain_problems(name):
            raise line.wrong(f'Invalid value: "{name}": {wrong}', "name")
        count = self._count(line)
        duration = self._duration_of(line)
        group = self._group(line.text("group") or (name if count > 1 else ALL), pod)
        many = "count" in line.said and count > 1
        if many:
            self.rows[f"{pod.metadata.namespace}/{name}"] = count
        for number in range(count):
            one = renamed(pod, f"{name}-{number}" if many else name)
            self._once(line, one)
            runs = None if duration is None else duration.at(draw(self.seed, "runs", one.metadata.uid))
            member = self.members[group] = self.members.get(group, -1) + 1
            self.trace.arrivals.append(Arrival(at, one, group, member, runs))
        if len(self.made) > MOST_PODS:
            raise line.wrong(f"more than {MOST_PODS:,} pods")

    def _once(self, line: _Line, pod: Pod) -> None:
        key = pod.metadata.uid
        if key in self.made:
            raise line.wrong(f"duplicate pod {key}: line {self.made[key]} creates it", "name")
        if key in self.taken:
            raise line.wrong(f"pod {key} already exists in {self.taken[key]}", "name")
        self.made[key] = line.number

    def _count(self, line: _Line) -> int:
        said = line.text("count", "1")
        if not _COUNT.fullmatch(said) or not 1 <= int(said) <= MOST_PODS:
            raise line.wrong(f'"{said}" is not a number from 1 to {MOST_PODS:,}', "count")
        return int(said)

    def _duration_of(self, line: _Line) -> Distribution | None:
        said = line.text("duration")
        if not said:
            return self.duration
        found = self.durations.get(said)
        if found is None:
            try:
                found = self.durations[said] = parse_distribution(said)
            except ValueError as error:
                raise line.wrong(str(error), "duration") from None
        return found

    def _group(self, name: str, pod: Pod) -> int:
        name = f"{pod.metadata.namespace}/{name}" if name != ALL else ALL
        at = self.groups.get(name)
        if at is None:
            at = self.groups[name] = self.first_group + len(self.trace.groups)
            first = pod
            self.trace.groups.append(PodSet(name, lambda number: renamed(first, f"{first.metadata.name}-{number}")))
        return at

    def _pod(self, line: _Line) -> Pod:
        """The pod of a line without its name; cached for lines that differ only in name and time."""
        said = {
            key: value
            for key, value in line.said.items()
            if key not in ("time", "action", "name", "count", "duration", "group") and value not in (None, "")
        }
        key = msgspec.json.encode(said)
        found = self.pods.get(key)
        if found is None:
            written = self._written(line, said)
            try:
                pod = decode_checked(Pod, msgspec.json.encode(written))
            except InputError as error:
                raise line.wrong(error.problem, error.path) from None
            if pod.spec.node_name:
                raise line.wrong("the pod is already bound", "pod.spec.nodeName")
            try:
                found = self.pods[key] = with_priority(pod, self.classes)
            except UnknownPriorityClassError as error:
                raise line.wrong(str(error), "priorityClassName") from None
        return found

    def _written(self, line: _Line, said: Mapping[str, Any]) -> dict[str, Any]:
        base = self._base(line, said)
        meta, spec = dict(base.get("metadata") or {}), dict(base.get("spec") or {})
        meta["name"] = meta.get("name") or "pod"
        if "namespace" in said:
            meta["namespace"] = line.text("namespace")
        if "labels" in said:
            meta["labels"] = {**(meta.get("labels") or {}), **_pairs(line, "labels")}
        if "nodeSelector" in said:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **_pairs(line, "nodeSelector")}
        for name in ("priorityClassName", "schedulerName"):
            if name in said:
                spec[name] = line.text(name)
        if "priority" in said:
            number = line.text("priority")
            if not _PRIORITY.fullmatch(number):
                raise line.wrong(f'"{number}" is not an integer', "priority")
            spec["priority"] = int(number)
        containers = [dict(one) for one in spec.get("containers") or ({"name": "main"},)]
        requests = _requests(line, said)
        if requests:
            held = dict(containers[0].get("resources") or {})
            containers[0]["resources"] = {**held, "requests": {**(held.get("requests") or {}), **requests}}
        return {"metadata": meta, "spec": {**spec, "containers": containers}}

    def _base(self, line: _Line, said: Mapping[str, Any]) -> Mapping[str, Any]:
        inline = said.get("pod")
        if inline is not None and "template" in said:
            raise line.wrong("set either pod or template")
        if inline is not None:
            if not isinstance(inline, dict):
                raise line.wrong("expected an object", "pod")
            return inline
        if "template" not in said:
            return {}
        try:
            return self.templates(line.text("template"))
        except OSError as error:
            raise line.wrong(f"{error.filename}: {error.strerror}", "template") from None
        except InputError as error:
            raise line.wrong(str(error), "template") from None


def _pairs(line: _Line, key: str) -> dict[str, str]:
    """`app=web;tier=front` or an object."""
    said = line.said[key]
    if isinstance(said, dict):
        if not all(isinstance(value, str) for value in said.values()):
            raise line.wrong("expected strings", key)
        return said
    pairs = {}
    for part in str(said).split(";"):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise line.wrong(f'"{part}" is not of the form name=value', key)
        pairs[name.strip()] = value.strip()
    return pairs


def _requests(line: _Line, said: Mapping[str, Any]) -> dict[str, Any]:
    inline = said.get("requests")
    if inline is not None and not isinstance(inline, dict):
        raise line.wrong("expected an object", "requests")
    found: dict[str, Any] = dict(inline or {})
    found |= {key: value for key, value in said.items() if key not in COLUMNS and key not in ONLY_JSON}
    return found
