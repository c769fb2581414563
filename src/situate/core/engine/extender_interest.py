"""Which HTTP extenders have a say on which pods, by the configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from situate.core.changes import Millis
from situate.core.config.resolve import EXTENDER_TIMEOUT
from situate.core.config.types import Extender
from situate.core.state.classes import PodClass

NANOS_PER_MS: Final = 1_000_000

Verb: TypeAlias = Literal["filter", "prioritize", "preempt"]


class ExtenderInterest:
    """Extenders are called by their place in the configuration. Ignorable ones come last."""

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self.extenders = extenders
        self._order = sorted(range(len(extenders)), key=lambda at: extenders[at].ignorable)
        self._managed = [{resource.name: None for resource in one.managed_resources} for one in extenders]

    def concerned(self, pod: PodClass, verb: Verb) -> list[int]:
        """The extenders that have a say on a pod, in the order in which they are asked."""
        return [at for at in self._order if verb_of(self.extenders[at], verb) and self._interested(at, pod)]

    def has_say(self, pod: PodClass) -> bool:
        return bool(self._order) and any(
            (self.extenders[at].filter_verb or self.extenders[at].prioritize_verb) and self._interested(at, pod)
            for at in self._order
        )

    def binder(self, pod: PodClass) -> int | None:
        """The extender that binds a pod, if one does."""
        if not self._order:
            return None
        return next((at for at in self._order if self.extenders[at].bind_verb and self._interested(at, pod)), None)

    def _interested(self, at: int, pod: PodClass) -> bool:
        """An extender that manages resources is asked only about pods that ask for one of them."""
        managed = self._managed[at]
        return not managed or any(
            name in managed
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for name in (*container.resources.requests, *container.resources.limits)
        )


def verb_of(extender: Extender, verb: Verb) -> str:
    """The path under the extender's URL for this verb; empty if it has no say."""
    match verb:
        case "filter":
            return extender.filter_verb
        case "prioritize":
            return extender.prioritize_verb
        case "preempt":
            return extender.preempt_verb


def name_of(extender: Extender) -> str:
    """The extender's URL, without credentials."""
    scheme, separator, rest = extender.url_prefix.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"


def timeout_ms(extender: Extender) -> Millis:
    timeout = extender.http_timeout if extender.http_timeout > 0 else EXTENDER_TIMEOUT
    return max(1, timeout // NANOS_PER_MS)
