"""The policies that are in effect: those with a binding, from the watch cache.

A policy is compiled when the first request matches it, once for each of its revisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from situate.loop.drive import describe_error
from situate.loop.logs import Log
from situate.server.admission.matching import Equivalents, RequestMatcher
from situate.server.apiextensions.served import CustomKinds
from situate.server.registry.cache import Cache
from situate.server.registry.stored_object import StoredObject
from situate.server.registry.user_admission import Operation
from situate.server.resources import Resource

MOST_REMEMBERED: Final = 10_000
"""Resources, subresources and operations of which the index remembers whether a policy is about them."""
NOT_UNDERSTOOD: Final = "An admission policy or binding cannot be understood; the others stay in effect"

_log = Log(__name__)
C = TypeVar("C")


class PolicyBinding:
    __slots__ = ("matcher", "name", "spec")

    def __init__(self, name: str, spec: Mapping[str, Any]) -> None:
        self.name = name
        self.spec = spec
        resources = spec.get("matchResources")
        self.matcher = None if resources is None else _binding_matcher(resources)


class BoundPolicy(Generic[C]):
    """A policy with its bindings."""

    def __init__(self, name: str, revision: int, spec: Mapping[str, Any], compile_spec: Callable[[Any], C]) -> None:
        self.name = name
        self.revision = revision
        self.spec = spec
        self.matcher = _matcher(spec.get("matchConstraints") or {})
        self.bindings: Sequence[PolicyBinding] = ()
        self._compile = compile_spec
        self._compiled: C | None = None

    @property
    def fails(self) -> bool:
        """Whether an error refuses the request."""
        return bool(self.spec.get("failurePolicy") != "Ignore")

    @property
    def compiled(self) -> C:
        if self._compiled is None:
            self._compiled = self._compile(self.spec)
        return self._compiled


def _matcher(resources: Mapping[str, Any]) -> RequestMatcher:
    return RequestMatcher(
        resources.get("resourceRules") or (),
        resources.get("namespaceSelector"),
        resources.get("objectSelector"),
        resources.get("matchPolicy") or "",
        resources.get("excludeResourceRules") or (),
    )


EVERYTHING: Final = ({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]},)


def _binding_matcher(resources: Mapping[str, Any]) -> RequestMatcher:
    """A binding without rules is about all that its policy is about."""
    return _matcher(resources if resources.get("resourceRules") else {**resources, "resourceRules": EVERYTHING})


class PolicyIndex(Generic[C]):
    def __init__(
        self,
        cache: Cache,
        policies: Resource,
        bindings: Resource,
        custom: CustomKinds,
        compile_spec: Callable[[Any], C],
    ) -> None:
        self._cache = cache
        self._policies, self._bindings = policies, bindings
        self._custom = custom
        self.equivalents: Final = Equivalents(lambda: custom.resources)
        self._compile = compile_spec
        self._seen = (-1, -1, -1)
        self._bound: Sequence[BoundPolicy[C]] = ()
        self._concerned: dict[tuple[str, str, str, str, Operation], bool] = {}

    @property
    def bound(self) -> Sequence[BoundPolicy[C]]:
        """In the order of their names."""
        self._refresh()
        return self._bound

    def concerns(self, resource: Resource, subresource: str, operation: Operation) -> bool:
        self._refresh()
        if not self._bound:
            return False
        key = (resource.group, resource.version, resource.plural, subresource, operation)
        if key not in self._concerned:
            if len(self._concerned) >= MOST_REMEMBERED:
                self._concerned.clear()
            others = self.equivalents.of(resource)
            found = any(one.matcher.concerns(resource, subresource, operation, others) for one in self._bound)
            self._concerned[key] = found
        return self._concerned[key]

    def _refresh(self) -> None:
        policies, bindings_of = self._cache.of(self._policies), self._cache.of(self._bindings)
        now = (policies.last_change, bindings_of.last_change, self._custom.version)
        if now == self._seen:
            return
        known = {one.name: one for one in self._bound}
        bindings: dict[str, list[PolicyBinding]] = {}
        for stored in self._cache.all(self._bindings):
            if (binding := self._binding(stored)) is not None:
                bindings.setdefault(binding.spec.get("policyName", ""), []).append(binding)
        found = []
        for stored in self._cache.all(self._policies):
            if stored.name in bindings and (policy := self._policy(stored, known.get(stored.name))) is not None:
                policy.bindings = bindings[stored.name]
                found.append(policy)
        self._bound = sorted(found, key=lambda one: one.name)
        self._concerned.clear()
        self._seen = now

    def _binding(self, stored: StoredObject) -> PolicyBinding | None:
        try:
            return PolicyBinding(stored.name, stored.object(self._bindings).get("spec") or {})
        except Exception as error:  # noqa: BLE001 - whatever is odd about it, the others stay in effect
            _log.error(NOT_UNDERSTOOD, name=stored.name, err=describe_error(error))
            return None

    def _policy(self, stored: StoredObject, known: BoundPolicy[C] | None) -> BoundPolicy[C] | None:
        if known is not None and known.revision == stored.revision:
            return known
        try:
            spec = stored.object(self._policies).get("spec") or {}
            return BoundPolicy(stored.name, stored.revision, spec, self._compile)
        except Exception as error:  # noqa: BLE001 - whatever is odd about it, the others stay in effect
            _log.error(NOT_UNDERSTOOD, name=stored.name, err=describe_error(error))
            return None
