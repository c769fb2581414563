"""Priority: sets the priority of a new pod from its class, and allows one default class."""

from __future__ import annotations

from typing import Final

import msgspec

from situate.core.model.policy import PriorityClass
from situate.core.model.priority import PriorityClasses, priority_classes
from situate.core.reconcile.admission import AdmissionError, with_pod_priority
from situate.server.errors import forbidden
from situate.server.objects import shown_name
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import BY_KIND

CLASS: Final = BY_KIND["scheduling.k8s.io/v1", "PriorityClass"]
POD: Final = BY_KIND["v1", "Pod"]
ONE_DEFAULT: Final = "PriorityClass {name} is already marked as default. Only one default can exist"
_KEPT: Final = ("priority", "preemptionPolicy")


class Priority:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._classes = priority_classes(())
        self._read_at = -1

    async def admit(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        if new is None or target.subresource:
            return
        if target.resource is CLASS:
            self._one_default(new)
        elif target.resource is POD and old is None:
            try:
                new["spec"] = with_pod_priority(new.get("spec", {}), self._newest())
            except AdmissionError as error:
                raise forbidden("pods", "", shown_name(new), str(error)) from None
        elif target.resource is POD and old is not None:
            spec, was = new.get("spec", {}), old.get("spec", {})
            new["spec"] = {**{name: was[name] for name in _KEPT if name in was}, **spec}

    def version(self, target: Target) -> int | None:
        return self._cache.of(CLASS).last_change if target.resource is POD else None

    def _newest(self) -> PriorityClasses:
        """Decoded again only after a class has changed."""
        changed = self._cache.of(CLASS).last_change
        if changed != self._read_at:
            found = [msgspec.json.decode(stored.value, type=PriorityClass) for stored in self._cache.all(CLASS)]
            self._classes, self._read_at = priority_classes(found), changed
        return self._classes

    def _one_default(self, new: Object) -> None:
        default = self._newest().default
        name = new["metadata"].get("name", "")
        if new.get("globalDefault") and default is not None and default.metadata.name != name:
            raise forbidden(CLASS.plural, CLASS.group, shown_name(new), ONE_DEFAULT.format(name=default.metadata.name))
