"""The webhooks of all configurations, in the order in which they are asked: by the configurations' names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from situate.server.admission.expressions import MatchCondition, compile_conditions
from situate.server.admission.matching import Equivalents, RequestMatcher
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import Operation
from situate.server.resources import BY_KIND, Resource

MUTATING: Final = BY_KIND["admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"]
VALIDATING: Final = BY_KIND["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"]
MAX_REMEMBERED: Final = 4_096
"""Forms of requests for which it is remembered which webhooks they concern."""


class Webhook(Struct, frozen=True, eq=False):
    """One webhook of a configuration."""

    uid: str
    configuration: str
    name: str
    spec: Mapping[str, Any]
    matcher: RequestMatcher
    conditions: Sequence[MatchCondition]

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def is_reinvoked(self) -> bool:
        return self.spec.get("reinvocationPolicy") == "IfNeeded"

    @property
    def allows_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in ("None", "NoneOnDryRun")

    @property
    def timeout_s(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)


class Configurations:
    """The webhooks of one kind of configuration."""

    def __init__(self, cache: Cache, kind: Resource, equivalents: Equivalents) -> None:
        self._cache = cache
        self._kind = kind
        self._equivalents = equivalents
        self._seen = -1
        self._by_name: dict[str, tuple[int, tuple[Webhook, ...]]] = {}
        """The revision of a configuration and its webhooks, by its name."""
        self._all: Mapping[Webhook, int] = {}
        """Each with its number."""
        self._concerned: dict[tuple[str, str, str, str], tuple[Webhook, ...]] = {}

    def concerned(self, resource: Resource, subresource: str, operation: Operation) -> Sequence[Webhook]:
        """Those that may have to be asked about requests of this form."""
        changed = self._cache.of(self._kind).last_change
        if changed != self._seen:
            self._refresh(changed)
        if not self._all:
            return ()
        key = (resource.api_version, resource.plural, subresource, operation)
        found = self._concerned.get(key)
        if found is None or resource.custom is not None:  # the versions of a custom kind may have changed
            others = self._equivalents.of(resource)
            found = tuple(one for one in self._all if one.matcher.concerns(resource, subresource, operation, others))
            if len(self._concerned) >= MAX_REMEMBERED:
                self._concerned.clear()
            self._concerned[key] = found
        return found

    def index(self, webhook: Webhook) -> int:
        """Its number among all, for annotations; 0 if its configuration has changed meanwhile."""
        return self._all.get(webhook, 0)

    def _refresh(self, changed: int) -> None:
        found: dict[str, tuple[int, tuple[Webhook, ...]]] = {}
        for stored in sorted(self._cache.all(self._kind), key=lambda one: one.name):
            known = self._by_name.get(stored.name)
            if known is None or known[0] != stored.revision:
                known = (stored.revision, _webhooks(stored.name, stored.object(self._kind).get("webhooks") or ()))
            found[stored.name] = known
        self._by_name = found
        every = [one for _, hooks in found.values() for one in hooks]
        self._all = {one: index for index, one in enumerate(every)}
        self._concerned.clear()
        self._seen = changed


def _webhooks(configuration: str, specs: Sequence[Mapping[str, Any]]) -> tuple[Webhook, ...]:
    counts: dict[str, int] = {}
    made: list[Webhook] = []
    for spec in specs:
        name = spec.get("name", "")
        number = counts[name] = counts.get(name, -1) + 1
        matcher = RequestMatcher(
            spec.get("rules") or (),
            spec.get("namespaceSelector"),
            spec.get("objectSelector"),
            spec.get("matchPolicy") or "Equivalent",
        )
        conditions = compile_conditions(spec.get("matchConditions") or ())
        made.append(Webhook(f"{configuration}/{name}/{number}", configuration, name, spec, matcher, conditions))
    return tuple(made)
