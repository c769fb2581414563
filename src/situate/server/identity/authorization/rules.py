"""RBAC rules: what a rule allows, which rules cover which, and how to describe missing ones. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Object

ALL: Final = "*"


class Rule(NamedTuple):
    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def shown(self) -> Object:
        """The rule as in a Role."""
        fields = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.paths,
        }
        return {key: list(value) for key, value in fields.items() if value or key == "verbs"}


EVERYTHING: Final = (Rule((ALL,), (ALL,), (ALL,)), Rule((ALL,), paths=(ALL,)))


def parse_rule(rule: Mapping[str, Any]) -> Rule:
    fields = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")
    return Rule(*(tuple(rule.get(field) or ()) for field in fields))


def rules_of(role: Object) -> tuple[Rule, ...]:
    return tuple(parse_rule(rule) for rule in role.get("rules") or ())


# ── what a rule allows ───────────────────────────────────────────────────────────────────────────────────────────────


def matches(rule: Rule, attributes: Attributes) -> bool:
    """Whether the rule covers a request. The caller checks resourceNames."""
    if ALL not in rule.verbs and attributes.verb not in rule.verbs:
        return False
    if not attributes.resource:
        return any(_path_covers(path, attributes.path) for path in rule.paths)
    if ALL not in rule.groups and attributes.group not in rule.groups:
        return False
    if ALL in rule.resources:
        return True
    if not attributes.subresource:
        return attributes.resource in rule.resources
    return (
        f"{attributes.resource}/{attributes.subresource}" in rule.resources
        or f"*/{attributes.subresource}" in rule.resources
    )


def _path_covers(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith(ALL) and path.startswith(owned.rstrip(ALL)))


# ── which rules cover which ──────────────────────────────────────────────────────────────────────────────────────────


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """The parts of the wanted rules, a verb on a resource each, that no owned rule covers."""
    return [piece for rule in wanted for piece in _pieces(rule) if not any(_covers(one, piece) for one in owned)]


def _pieces(rule: Rule) -> Iterator[Rule]:
    for group in rule.groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                if not rule.names:
                    yield Rule((verb,), (group,), (resource,))
                for name in rule.names:
                    yield Rule((verb,), (group,), (resource,), (name,))
    for path in rule.paths:
        for verb in rule.verbs:
            yield Rule((verb,), paths=(path,))


def _covers(owned: Rule, piece: Rule) -> bool:
    return (
        (ALL in owned.verbs or piece.verbs[0] in owned.verbs)
        and (ALL in owned.groups or all(group in owned.groups for group in piece.groups))
        and all(_resource_covers(owned.resources, resource) for resource in piece.resources)
        and (not owned.names or (bool(piece.names) and piece.names[0] in owned.names))
        and all(any(_path_covers(mine, path) for mine in owned.paths) for path in piece.paths)
    )


def _resource_covers(owned: Sequence[str], resource: str) -> bool:
    if ALL in owned or resource in owned:
        return True
    _, parted, subresource = resource.partition("/")
    return bool(parted) and f"*/{subresource}" in owned


def described(missing: Iterable[Rule]) -> str:
    """Missing rules, a line each, as kube-apiserver lists them: those that differ only by verb together."""
    verbs: dict[Rule, list[str]] = {}
    for piece in missing:
        # kube-apiserver does not group paths.
        key = piece if piece.paths else piece._replace(verbs=())
        verbs.setdefault(key, []).extend(piece.verbs)
    return "\n".join(sorted({_line(key._replace(verbs=tuple(found))) for key, found in verbs.items()}))


def _line(rule: Rule) -> str:
    parts = (
        ("APIGroups", rule.groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.paths),
        ("ResourceNames", rule.names),
        ("Verbs", rule.verbs),
    )
    return "{" + ", ".join(f"{key}:{quoted(values)}" for key, values in parts if values) + "}"


def quoted(values: Iterable[str]) -> str:
    """A list as Go shows it: `["a" "b"]`."""
    return "[" + " ".join(json.dumps(value, ensure_ascii=False) for value in values) + "]"
