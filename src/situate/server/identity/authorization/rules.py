"""RBAC rules: what a rule allows, which rules cover which, and how to describe missing ones. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from situate.server.identity.authorization.attributes import Attributes
from situate.server.requests import Object

ALL: Final = "*"
STEPS_PER_PIECE: Final = 10
"""What a part of a rule counts besides the comparisons, because each that is missing is a line of the answer."""


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


class TooManyRulesError(Exception):
    """Comparing these rules would take too long."""


def uncovered(owned: Sequence[Rule], wanted: Iterable[Rule], most: float = inf) -> list[Rule]:
    """The parts of the wanted rules, a verb on a resource each, that no owned rule covers. A short rule may have
    millions of parts: raises TooManyRulesError after `most` comparisons, or so."""
    sets = [_OwnedRule(one) for one in owned]
    by_group: dict[str, list[_OwnedRule]] = {}
    for one in sets:
        for group in one.groups:
            by_group.setdefault(group, []).append(one)
    missing: list[Rule] = []
    steps = 0
    for rule in wanted:
        for part in (rule._replace(paths=()), Rule(rule.verbs, paths=rule.paths)):
            if part.resources:
                groups = dict.fromkeys((ALL, *part.groups))
                near = list(dict.fromkeys(one for group in groups for one in by_group.get(group, ())))
            else:
                near = sets if part.paths else []
            steps += sum(one.steps(part) for one in near)
            if steps > most:
                raise TooManyRulesError
            if any(one.covers(part) for one in near):
                continue
            each = STEPS_PER_PIECE + sum(one.steps(Rule(paths=part.paths[:1])) for one in near)
            for piece in _pieces(part):
                steps += each
                if steps > most:
                    raise TooManyRulesError
                if not any(one.covers(piece) for one in near):
                    missing.append(piece)
    return missing


class _OwnedRule:
    __slots__ = ("groups", "names", "paths", "prefixes", "resources", "verbs")

    def __init__(self, rule: Rule) -> None:
        self.verbs, self.groups, self.resources, self.names, self.paths = map(frozenset, rule)
        self.prefixes = tuple(path.rstrip(ALL) for path in sorted(self.paths) if path.endswith(ALL))

    def covers(self, wanted: Rule) -> bool:
        return (
            (ALL in self.verbs or self.verbs.issuperset(wanted.verbs))
            and (ALL in self.groups or self.groups.issuperset(wanted.groups))
            and all(_resource_covers(self.resources, resource) for resource in wanted.resources)
            and (not self.names or (bool(wanted.names) and self.names.issuperset(wanted.names)))
            and all(path in self.paths or path.startswith(self.prefixes) for path in wanted.paths)
        )

    def steps(self, wanted: Rule) -> int:
        """How long `covers` takes: a step is about a microsecond."""
        names = len(wanted.verbs) + len(wanted.groups) + len(wanted.names)
        return 1 + names // 32 + len(wanted.resources) // 4 + len(wanted.paths) * (1 + len(self.prefixes) // 32)


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


def _resource_covers(owned: frozenset[str], resource: str) -> bool:
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
