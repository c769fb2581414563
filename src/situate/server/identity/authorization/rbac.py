"""RBAC over the Roles, ClusterRoles and bindings in the cache.

Changed roles are decoded again when one is needed. A decision is computed once for a caller and the attributes of a
request without the object's name, which few rules mention; after that it is a look-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from situate.server.errors import not_found
from situate.server.identity.authorization.aggregation import Aggregation
from situate.server.identity.authorization.attributes import NO, YES, Attributes, AuthorizerDecision
from situate.server.identity.authorization.rules import Rule, matches, rules_of
from situate.server.identity.ports import ObjectReader, resource_of
from situate.server.requests import Caller, Object
from situate.server.resources import Resource

MASTERS: Final = "system:masters"
API: Final = "rbac.authorization.k8s.io/v1"
GROUP: Final = "rbac.authorization.k8s.io"
CLUSTER_ROLES: Final = resource_of(API, "clusterroles")
ROLES: Final = resource_of(API, "roles")
CLUSTER_BINDINGS: Final = resource_of(API, "clusterrolebindings")
BINDINGS: Final = resource_of(API, "rolebindings")
KINDS: Final = (CLUSTER_ROLES, ROLES, CLUSTER_BINDINGS, BINDINGS)

MAX_CACHED_DECISIONS: Final = 50_000
"""When the cache is full, the oldest decision is dropped."""
MAX_CACHED_LENGTH: Final = 256
"""Of the text of a request in the cache. A decision about a longer path or namespace is computed each time."""


class GrantedRule(NamedTuple):
    """A rule of a caller, and the binding that grants it."""

    rule: Rule
    by: str


class CachedDecision(NamedTuple):
    any_name: AuthorizerDecision
    by_name: Mapping[str, AuthorizerDecision]


class Rbac:
    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._revisions: tuple[int, ...] = ()
        self._decoded: dict[tuple[str, str, str], tuple[int, Object]] = {}
        self._policy = _Policy(Aggregation({}), {}, {})
        self._decisions: dict[tuple[object, ...], CachedDecision] = {}

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        # Hot path: every request runs this.
        if MASTERS in caller.groups:
            return YES
        state = self._objects.of
        revisions = (
            state(CLUSTER_ROLES).last_change,
            state(ROLES).last_change,
            state(CLUSTER_BINDINGS).last_change,
            state(BINDINGS).last_change,
        )
        if revisions != self._revisions:
            self._read(revisions)
        key = (
            caller.name,
            caller.groups,
            attributes.verb,
            attributes.resource,
            attributes.namespace,
            attributes.subresource,
            attributes.group,
            attributes.path,
        )
        found = self._decisions.get(key)
        if found is None:
            found = self._decide(key, caller, attributes)
        return found.by_name.get(attributes.name, found.any_name) if found.by_name else found.any_name

    def rules_for(self, caller: Caller, namespace: str) -> tuple[list[GrantedRule], list[str]]:
        """Every rule of the caller in a namespace, and errors of bindings without a role."""
        self._refresh()
        return self._policy.granted(caller, namespace)

    def rules_of_role(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...]:
        """The rules of a role that a binding in this namespace refers to. Raises 404 if there is none."""
        self._refresh()
        found = self._policy.rules(kind, name, namespace)
        if found is None:
            raise not_found("rolebindings" if namespace else "clusterrolebindings", GROUP, name)
        return found

    def _refresh(self) -> None:
        revisions = tuple(self._objects.of(kind).last_change for kind in KINDS)
        if revisions != self._revisions:
            self._read(revisions)

    def _read(self, revisions: tuple[int, ...]) -> None:
        before, self._decoded = self._decoded, {}
        found: dict[str, list[Object]] = {}
        for resource in KINDS:
            found[resource.plural] = [*self._objects_of(resource, before)]
        self._policy = _policy_of(found)
        self._decisions.clear()
        self._revisions = revisions

    def _objects_of(
        self, resource: Resource, before: Mapping[tuple[str, str, str], tuple[int, Object]]
    ) -> Iterator[Object]:
        for cached in self._objects.all(resource):
            key = (resource.plural, cached.namespace, cached.name)
            old = before.get(key)
            entry = old if old is not None and old[0] == cached.revision else (cached.revision, cached.object(resource))
            self._decoded[key] = entry
            yield entry[1]

    def _decide(self, key: tuple[object, ...], caller: Caller, attributes: Attributes) -> CachedDecision:
        granted, wrong = self._policy.granted(caller, attributes.namespace)
        otherwise = AuthorizerDecision(False, f"RBAC: {_joined_errors(wrong)}") if wrong else NO
        named: dict[str, AuthorizerDecision] = {}
        for rule, by in granted:
            if not matches(rule, attributes):
                continue
            yes = AuthorizerDecision(True, f"RBAC: allowed by {by}")
            if not rule.names or not attributes.resource:
                # Earlier rules with names allow a subset of this one.
                otherwise = yes
                break
            for name in rule.names:
                named.setdefault(name, yes)
        found = CachedDecision(otherwise, named)
        if _length(attributes) <= MAX_CACHED_LENGTH:
            if len(self._decisions) >= MAX_CACHED_DECISIONS:
                del self._decisions[next(iter(self._decisions))]
            self._decisions[key] = found
        return found


@dataclass(frozen=True, slots=True)
class _Policy:
    """All roles and bindings at one time."""

    cluster_roles: Aggregation
    roles: dict[tuple[str, str], tuple[Rule, ...]]
    """By namespace and name."""
    bound: dict[tuple[str, str, str], list[tuple[str, Object]]]
    """Descriptions and bindings, by the binding's namespace ("": the cluster) and the subject's kind and name."""

    def rules(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        if kind == "ClusterRole":
            return self.cluster_roles.rules(name)
        return self.roles.get((namespace, name)) if kind == "Role" else None

    def granted(self, caller: Caller, namespace: str) -> tuple[list[GrantedRule], list[str]]:
        found: list[GrantedRule] = []
        wrong: list[str] = []
        for where in ("", namespace) if namespace else ("",):
            bindings: dict[str, tuple[str, Object]] = {}
            for subject in (("User", caller.name), *(("Group", group) for group in caller.groups)):
                for by, binding in self.bound.get((where, *subject), ()):
                    bindings.setdefault(binding["metadata"]["name"], (by, binding))
            for _, (by, binding) in sorted(bindings.items()):
                reference = binding["roleRef"]
                kind, name = reference.get("kind", ""), reference.get("name", "")
                rules = self.rules(kind, name, where)
                if rules is None:
                    wrong.append(f'{kind.lower()}.{GROUP} "{name}" not found')
                    continue
                found += [GrantedRule(rule, by) for rule in rules]
        return found, wrong


def _policy_of(found: Mapping[str, list[Object]]) -> _Policy:
    cluster_roles = {role["metadata"]["name"]: role for role in found["clusterroles"]}
    roles = {(role["metadata"]["namespace"], role["metadata"]["name"]): rules_of(role) for role in found["roles"]}
    bound: dict[tuple[str, str, str], list[tuple[str, Object]]] = {}
    for binding in [*found["clusterrolebindings"], *found["rolebindings"]]:
        where = binding["metadata"].get("namespace", "")
        for subject in binding.get("subjects") or ():
            key = _subject(subject, where)
            if key is not None:
                bound.setdefault((where, *key), []).append((_described(binding, subject, where), binding))
    return _Policy(Aggregation(cluster_roles), roles, bound)


def _subject(subject: Mapping[str, str], where: str) -> tuple[str, str] | None:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        namespace = subject.get("namespace") or where
        return ("User", f"system:serviceaccount:{namespace}:{name}") if namespace else None
    return (kind, name) if kind in ("User", "Group") else None


def _described(binding: Object, subject: Mapping[str, str], where: str) -> str:
    name, reference = binding["metadata"]["name"], binding["roleRef"]
    kind, who = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or where}"
    shown = f'RoleBinding "{name}/{where}"' if where else f'ClusterRoleBinding "{name}"'
    return f'{shown} of {reference.get("kind", "")} "{reference.get("name", "")}" to {kind} "{who}"'


def _length(attributes: Attributes) -> int:
    """Of the text that the client chose."""
    named = attributes.namespace, attributes.resource, attributes.subresource, attributes.group
    return sum(map(len, named), len(attributes.path))


def _joined_errors(wrong: list[str]) -> str:
    different = list(dict.fromkeys(wrong))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"
