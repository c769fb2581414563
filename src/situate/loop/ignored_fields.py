"""Logs which fields of custom PodGroups have no effect here, once for each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from situate.core.changes import Change, Millis, ObjectGone, ObjectSeen
from situate.core.effects import Effect
from situate.core.engine.engine import Engine
from situate.core.model.custom_groups.kind import CustomPodGroup, IgnoredField
from situate.core.model.custom_groups.table import ignored_fields, kind_of
from situate.core.model.meta import key_of
from situate.loop.logs import Log

MOST_SAID: Final = 10_000
"""How many groups are remembered, to log each once. When there are more, the oldest are forgotten."""

_log = Log(__name__)


class IgnoredFieldsLog:
    """A StepObserver. A group is logged again only if its fields without effect are others than before."""

    def __init__(self) -> None:
        self._said: dict[tuple[type[CustomPodGroup], str], tuple[IgnoredField, ...]] = {}

    def before(self, engine: Engine, now: Millis, changes: Sequence[Change]) -> None:
        for change in changes:
            if isinstance(change, ObjectSeen) and isinstance(change.item, CustomPodGroup):
                self._seen(change.item)
            elif isinstance(change, ObjectGone) and isinstance(change.item, CustomPodGroup):
                self._said.pop((type(change.item), key_of(change.item.metadata)), None)

    def after(self, engine: Engine, now: Millis, effects: Sequence[Effect], seconds: float) -> None:
        """Nothing: only what is seen matters."""

    def _seen(self, group: CustomPodGroup) -> None:
        key, ignored = (type(group), key_of(group.metadata)), ignored_fields(group)
        if self._said.get(key, ()) == ignored:
            return
        self._said.pop(key, None)
        self._said[key] = ignored
        if len(self._said) > MOST_SAID:
            del self._said[next(iter(self._said))]
        if ignored:
            fields = "; ".join(map(str, ignored))
            _log.info("Fields of a PodGroup have no effect", group=kind_of(group).group, name=key[1], fields=fields)
