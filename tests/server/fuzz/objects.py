"""Objects for the fuzz: a valid one of any served kind, with one to three of its fields changed to something odd."""

import copy
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from server.fuzz.bases import Json, base, kinds
from server.fuzz.values import RAW, Values, fields_of, minimal
from situate.server.resources import Resource
from situate.wire.schema.table import Type, message, message_of

Path = tuple[str, ...]
"""Fields from the root. `[]` is the first item of a list, `{}` an entry of a map."""

ITEM, ENTRY = "[]", "{}"
DEEPEST = 12
_RAW = re.compile(rf'"{RAW}([^"]*)"')


@dataclass(frozen=True, slots=True)
class Change:
    """One field, and its new value."""

    path: Path
    value: Any

    def __str__(self) -> str:
        text = encode(self.value).decode()
        return f"{'.'.join(self.path)} = {text if len(text) < 200 else text[:200] + '...'}"


@dataclass(frozen=True, slots=True)
class Subject:
    """What one turn of the fuzz is about."""

    number: int
    resource: Resource
    namespace: str
    plain: Json
    changes: tuple[Change, ...]

    @property
    def name(self) -> str:
        return str(self.plain["metadata"]["name"])

    @property
    def collection(self) -> str:
        one = self.resource
        root = f"/apis/{one.api_version}" if one.group else f"/api/{one.version}"
        return f"{root}/namespaces/{self.namespace}/{one.plural}" if one.namespaced else f"{root}/{one.plural}"

    @property
    def address(self) -> str:
        return f"{self.collection}/{self.name}"

    def body(self, changes: tuple[Change, ...] | None = None) -> Json:
        found = copy.deepcopy(self.plain)
        for one in self.changes if changes is None else changes:
            apply(found, self.root, one)
        return found

    @property
    def root(self) -> Type:
        return root_of(self.resource)


def encode(value: Any) -> bytes:
    """As JSON, with numbers that Python does not write, and half surrogate pairs as escapes."""
    return _RAW.sub(r"\1", json.dumps(value)).encode()


def root_of(resource: Resource) -> Type:
    found = message_of(resource.api_version, resource.kind)
    if found is None:
        raise KeyError(resource.kind)
    return Type("message", found.name, "")


# ── fields ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def paths_of(root: Type) -> tuple[tuple[Path, Type], ...]:
    """Every field of a kind, however deep."""
    return tuple(_paths(root, (), ()))


def _paths(kind: Type, path: Path, through: tuple[str, ...]) -> Iterator[tuple[Path, Type]]:
    if len(path) > DEEPEST:
        return
    if path:
        yield path, kind
    if kind.form == "message" and kind.name not in through:
        for field in fields_of(message(kind.name)):
            yield from _paths(field.type, (*path, field.name), (*through, kind.name))
    elif kind.form in ("list", "map") and kind.of is not None:
        yield from _paths(kind.of, (*path, ITEM if kind.form == "list" else ENTRY), through)


def apply(obj: Json, root: Type, change: Change) -> None:
    """Put the value there, making what is missing on the way."""
    at: Any = obj
    kind = root
    for step, following in zip(change.path, (*change.path[1:], None), strict=True):
        key: Any = step
        if kind.form == "list":
            key, inner = 0, kind.of
            if not at:
                at.append(None)
        elif kind.form == "map":
            key, inner = (min(at) if at else "k"), kind.of
        else:
            inner = next((field.type for field in fields_of(message(kind.name)) if field.name == step), None)
        if following is None or inner is None:
            at[key] = copy.deepcopy(change.value)
            return
        held = at[key] if isinstance(at, list) else at.get(key)
        if not isinstance(held, list if inner.form == "list" else dict):
            at[key] = held = [] if inner.form == "list" else {} if inner.form == "map" else minimal(inner)
        at, kind = held, inner


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_NAMED = (("metadata", "name"), ("metadata", "namespace"))
OFTEN = frozenset(
    "CronJob DaemonSet Deployment Job Lease Node PersistentVolumeClaim Pod PodDisruptionBudget PodGroup ReplicaSet "
    "StatefulSet".split()
)
"""Kinds that controllers, the scheduler or agents act upon come three times as often as the others."""


class Generator:
    """Object number `n` is always the same one for a seed, whatever was asked before."""

    def __init__(self, seed: int, run: str = "") -> None:
        self._seed = seed
        self._run = run
        often = [one for one in kinds() if one.kind in OFTEN]
        self._kinds = [*kinds(), *often, *often]

    @property
    def kinds(self) -> frozenset[tuple[str, str]]:
        return frozenset((one.api_version, one.kind) for one in self._kinds)

    def dice(self, number: int, what: str = "") -> random.Random:
        return random.Random(f"{self._seed}/{number}/{what}")

    def subject(self, number: int, namespace: str) -> Subject:
        dice = self.dice(number, "object")
        resource = self._kinds[number % len(self._kinds)]
        plain = base(resource, f"fz{self._run}-{number}", namespace)
        count = dice.choice((0, 1, 1, 1, 2, 2, 3))
        changes = tuple(self.change(resource, plain, dice) for _ in range(count))
        return Subject(number, resource, namespace, plain, changes)

    def change(self, resource: Resource, plain: Json, dice: random.Random, top: str = "") -> Change:
        """A change of any field; `top`: of one inside this field."""
        if dice.random() < 0.15 and not top:
            return dice.choice(self.recipes(plain))
        root = root_of(resource)
        found = self._near(root, dice, top) if dice.random() < 0.6 else dice.choice(_inside(root, top))
        path, kind = found
        if path[:2] in _NAMED and dice.random() < 0.8:
            path, kind = dice.choice(_inside(root, top))
        return Change(path, Values(dice).odd(kind, path[-1]))

    def _near(self, root: Type, dice: random.Random, top: str) -> tuple[Path, Type]:
        """A field found by going down by chance, which finds the upper ones more often."""
        path: Path = (top,) if top else ()
        kind = root
        if top:
            kind = next(field.type for field in fields_of(message(root.name)) if field.name == top)
        while True:
            if kind.form == "message" and (found := fields_of(message(kind.name))):
                one = dice.choice(found)
                path, kind = (*path, one.name), one.type
            elif kind.form in ("list", "map") and kind.of is not None:
                path, kind = (*path, ITEM if kind.form == "list" else ENTRY), kind.of
            else:
                return path, kind
            if len(path) > DEEPEST or dice.random() < 0.25:
                return path, kind

    @staticmethod
    def recipes(plain: Json) -> list[Change]:
        """What no single field shows: owners in a circle, selectors of everything, finalizers, old names."""
        metadata = plain["metadata"]
        owner = {"apiVersion": plain["apiVersion"], "kind": plain["kind"], "name": metadata["name"], "uid": "u"}
        return [
            Change(("metadata", "ownerReferences"), [owner]),
            Change(("metadata", "ownerReferences"), [owner, owner]),
            Change(("metadata", "ownerReferences"), [{**owner, "controller": True, "blockOwnerDeletion": True}]),
            Change(("metadata", "ownerReferences"), [{**owner, "uid": f"u{n}"} for n in range(200)]),
            Change(("metadata", "finalizers"), ["fuzz.test/keep"]),
            Change(("metadata", "finalizers"), ["foregroundDeletion", "orphan"]),
            Change(("metadata", "finalizers"), [f"fuzz.test/{n}" for n in range(200)]),
            Change(("metadata", "deletionTimestamp"), "0001-01-01T00:00:01Z"),
            Change(("metadata", "deletionGracePeriodSeconds"), 2**63 - 1),
            Change(("metadata", "generation"), 2**63 - 1),
            Change(("metadata", "resourceVersion"), "9" * 30),
            Change(("metadata", "uid"), "not-a-uid"),
            Change(("metadata", "generateName"), "a" * 250),
            Change(("metadata", "labels"), {f"l{n}": "x" for n in range(1_000)}),
            Change(("metadata", "annotations"), {"a": "x" * 200_000}),
            Change(("spec", "selector"), {}),
            Change(("spec", "template"), {}),
            Change(("spec", "replicas"), 2**31 - 1),
            Change(("status",), {}),
        ][: None if "spec" in plain else -4]


@cache
def _inside(root: Type, top: str) -> tuple[tuple[Path, Type], ...]:
    return tuple(one for one in paths_of(root) if not top or one[0][0] == top) or paths_of(root)
