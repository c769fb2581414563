"""Classes that differ only in labels that nothing selects share their verdicts: one of them stands in for all.

Pods of a StatefulSet or an indexed Job have a label of their own each, and so each is a class of its own. Plugins read
a pod's labels only through selectors: those of affinity terms and spread constraints, of services and of controllers.
The keys that any of these selectors has named are collected here. They only become more; when one does, the classes are
told apart anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from situate.core.model.labels import LabelSelector
from situate.core.model.named import NamedObject
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from situate.core.state.classes import PodClass, signature_with

MOST_KEYS: Final = 4096
"""How many keys are collected. With more, every label counts."""


class StandIns:
    """Which class stands in for which. `version` moves when a selector names a new key."""

    __slots__ = ("_by_signature", "_keys", "version")

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}
        self._by_signature: dict[bytes, PodClass] = {}
        self.version = 0

    def of(self, pod_class: PodClass) -> PodClass:
        """The class whose verdicts are this one's too."""
        found = pod_class.stand_in
        if found is None or pod_class.stand_in_version != self.version:
            found = pod_class.stand_in = self._by_signature.setdefault(self._selected(pod_class), pod_class)
            pod_class.stand_in_version = self.version
        return found

    def _selected(self, pod_class: PodClass) -> bytes:
        """The signature without the labels that nothing selects."""
        labels = pod_class.labels
        if len(self._keys) > MOST_KEYS:
            return pod_class.signature
        selected = {key: value for key, value in labels.items() if key in self._keys}
        return pod_class.signature if len(selected) == len(labels) else signature_with(pod_class, selected)

    def forget(self, pod_class: PodClass) -> None:
        """The class is dropped. Those that it stood in for may still ask about it."""
        if pod_class.stand_in is pod_class and pod_class.stand_in_version == self.version:
            self._by_signature.pop(self._selected(pod_class), None)

    def class_came(self, pod_class: PodClass) -> None:
        if pod_class.terms or pod_class.spec.topology_spread_constraints:
            self._select(_keys_of_class(pod_class))

    def object_came(self, item: NamedObject) -> None:
        self._select(_keys_of_object(item))

    def _select(self, keys: Iterable[str]) -> None:
        known = len(self._keys)
        for key in keys:
            self._keys[key] = None
        if len(self._keys) != known:
            self.version += 1
            self._by_signature.clear()


def _keys_of_class(pod_class: PodClass) -> Iterator[str]:
    for term in pod_class.terms:
        for requirement in term.pods.selector.requirements:
            yield requirement.key
    for constraint in pod_class.spec.topology_spread_constraints:
        yield from _keys_of_selector(constraint.label_selector)
        yield from constraint.match_label_keys


def _keys_of_object(item: NamedObject) -> Iterator[str]:
    match item:
        case Service():
            yield from item.spec.selector
        case ReplicationController():
            yield from item.spec.selector
            if item.spec.template is not None:
                yield from item.spec.template.metadata.labels
        case ReplicaSet() | StatefulSet():
            yield from _keys_of_selector(item.spec.selector)
        case _:
            pass


def _keys_of_selector(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        for requirement in selector.match_expressions:
            yield requirement.key
