"""The conditions of a CustomResourceDefinition: whether its names are free, and whether it is established. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from situate.server.objects import Object

NAMES_ACCEPTED: Final = "NamesAccepted"
ESTABLISHED: Final = "Established"
TERMINATING: Final = "Terminating"
NON_STRUCTURAL: Final = "NonStructuralSchema"
IN_USE: Final = '"{name}" is already in use'


def accepted_status(crd: Object, others: Iterable[Object], schema_problems: Sequence[str], now: str) -> Object:
    """The status of a definition: the names that it gets, and its conditions. `others`: the names that the other
    definitions of its group were given."""
    status: Object = {**(crd.get("status") or {})}
    conditions = [dict(one) for one in status.get("conditions") or ()]
    accepted, problem = _accepted(crd, list(others))
    names_condition = _condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found")
    if problem is not None:
        names_condition = _condition(NAMES_ACCEPTED, "False", *problem)
    _set(conditions, names_condition, now)
    established = next((one for one in conditions if one["type"] == ESTABLISHED), None)
    if established is None or established["status"] != "True":
        if problem is None:
            made = _condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")
        else:
            made = _condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")
        _set(conditions, made, now)
    if schema_problems:
        text = schema_problems[0] if len(schema_problems) == 1 else f"[{', '.join(schema_problems)}]"
        _set(conditions, _condition(NON_STRUCTURAL, "True", "Violations", text), now)
    else:
        conditions = [one for one in conditions if one["type"] != NON_STRUCTURAL]
    return {**status, "conditions": conditions, "acceptedNames": accepted}


def terminating_status(crd: Object, reason: str, message: str, now: str, *, over: bool = False) -> Object:
    """The status while the objects of a deleted definition are removed."""
    status: Object = {**(crd.get("status") or {})}
    conditions = [dict(one) for one in status.get("conditions") or ()]
    _set(conditions, _condition(TERMINATING, "False" if over else "True", reason, message), now)
    return {**status, "conditions": conditions}


def _condition(kind: str, value: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": value, "reason": reason, "message": message}


def _set(conditions: list[Object], new: Object, now: str) -> None:
    for at, old in enumerate(conditions):
        if old["type"] == new["type"]:
            kept = old["status"] == new["status"] and "lastTransitionTime" in old
            conditions[at] = {**_in_order(new, old["lastTransitionTime"] if kept else now)}
            return
    conditions.append(_in_order(new, now))


def _in_order(one: Object, time: str) -> Object:
    return {"type": one["type"], "status": one["status"], "lastTransitionTime": time, **one}


def _accepted(crd: Object, others: Sequence[Object]) -> tuple[Object, tuple[str, str] | None]:
    """The names that the definition gets, and the last conflict: its reason and message."""
    asked, had = crd["spec"]["names"], (crd.get("status") or {}).get("acceptedNames") or {}
    resources, kinds = _taken(others)
    names: Object = {"plural": had.get("plural", ""), "kind": had.get("kind", "")}
    for name in ("singular", "listKind", "shortNames", "categories"):
        if had.get(name):
            names[name] = had[name]
    problem: tuple[str, str] | None = None
    for name, reason, taken in (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ):
        wanted = asked.get(name)
        conflicts = _conflicts(wanted, had.get(name), taken)
        if conflicts:
            text = IN_USE.format(name=conflicts[0])
            if len(conflicts) > 1:
                text = f"[{', '.join(IN_USE.format(name=one) for one in conflicts)}]"
            problem = reason, text
        elif wanted:
            names[name] = wanted
        else:
            names.pop(name, None)
    if asked.get("categories"):
        names["categories"] = asked["categories"]
    else:
        names.pop("categories", None)
    return names, problem


def _conflicts(wanted: Any, had: Any, taken: Mapping[str, None]) -> list[str]:
    if wanted == had:
        return []
    return [name for name in (wanted if isinstance(wanted, list) else [wanted]) if name and name in taken]


def _taken(others: Sequence[Object]) -> tuple[dict[str, None], dict[str, None]]:
    """The names of resources and of kinds that other definitions of the group were given."""
    resources: dict[str, None] = {}
    kinds: dict[str, None] = {}
    for names in others:
        for name in (names.get("plural"), names.get("singular"), *(names.get("shortNames") or ())):
            if name:
                resources[name] = None
        for name in (names.get("kind"), names.get("listKind")):
            if name:
                kinds[name] = None
    return resources, kinds


SchemaProblems = Callable[[Object], Sequence[str]]
