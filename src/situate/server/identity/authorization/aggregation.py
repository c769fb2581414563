"""Aggregated ClusterRoles: the rules of a role with an aggregationRule are those of the roles that it selects. Pure.

A selected role may aggregate others, itself included. Each role is visited once for an aggregated role, so roles that
all select each other cost their number, not the number of paths between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from situate.server.identity.authorization.rules import Rule, rules_of
from situate.server.requests import Object


class Aggregation:
    """The rules of ClusterRoles, each computed when it is first asked for."""

    def __init__(self, roles: Mapping[str, Object]) -> None:
        self._roles = roles
        self._names = sorted(roles)
        self._labels = [roles[name].get("metadata", {}).get("labels") or {} for name in self._names]
        self._selected: dict[bytes, int] = {}
        """By selector: the roles that it selects, a bit each, in the order of their names."""
        self._rules: dict[str, tuple[Rule, ...]] = {}

    def rules(self, name: str) -> tuple[Rule, ...] | None:
        """The rules of a role: its own, or, with an aggregationRule, those of the roles that it selects."""
        role = self._roles.get(name)
        if role is None:
            return None
        found = self._rules.get(name)
        if found is None:
            found = self._aggregated(name) if role.get("aggregationRule") else rules_of(role)
            self._rules[name] = found
        return found

    def _aggregated(self, name: str) -> tuple[Rule, ...]:
        found: dict[Rule, None] = {}
        visited = 1 << self._names.index(name)
        ahead = [(0, self._selections(self._roles[name]))]
        while ahead:
            left, selections = ahead.pop()
            left &= ~visited
            if not left:
                following = next(selections, None)
                if following is not None:
                    ahead.append((following, selections))
                continue
            ahead.append((left, selections))
            first = left & -left
            visited |= first
            other = self._names[first.bit_length() - 1]
            if self._roles[other].get("aggregationRule"):
                ahead.append((0, self._selections(self._roles[other])))
            else:
                found.update(dict.fromkeys(self.rules(other) or ()))
        return tuple(found)

    def _selections(self, role: Object) -> Iterator[int]:
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
            key = msgspec.json.encode(selector)
            if key not in self._selected:
                bits = (1 << at for at, labels in enumerate(self._labels) if _selects(selector, labels))
                self._selected[key] = sum(bits)
            yield self._selected[key]


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(term, labels) for term in selector.get("matchExpressions") or ())


def _meets(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = term.get("key", ""), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
