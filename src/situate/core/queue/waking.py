"""What may wake a parked pod: a change, told in the words that plugins wait for.

A plugin lists the kinds of change it waits for (`wakes_on`). One that can tell more exactly has `wakes`: of all the
nodes that came, only one that the pod would fit on is worth waking it for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from situate.core.contract import Filter, Wake
from situate.core.model.base import Model
from situate.core.model.node import Node
from situate.core.queue.waiting import Waiting
from situate.core.state.classes import PodClass


@dataclass(frozen=True, slots=True)
class WakeEvent:
    """Something happened that parked pods may have waited for. What is not about a node has no node, and so on."""

    kind: Wake
    node: Node | None = None
    node_before: Node | None = None
    pod: PodClass | None = None
    """The bound pod that came, changed or left; or, for changes of the waiting pod itself, that pod."""
    pod_before: PodClass | None = None
    node_name: str = ""
    """Where that pod is or was."""
    item: Model | None = None


@runtime_checkable
class Discerning(Protocol):
    """A filter that can tell whether an event of a kind it waits for could help a pod that it refused."""

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool: ...


def worth_waking(entry: Waiting, event: WakeEvent, filters: Mapping[str, Filter]) -> bool:
    """Whether any of the plugins that refused the pod waits for this."""
    if not entry.refused_by:
        return True
    for name in entry.refused_by:
        plugin = filters.get(name)
        if plugin is None:
            return True  # refused by something that cannot say what it waits for, such as an extender
        if event.kind in plugin.wakes_on and (not isinstance(plugin, Discerning) or plugin.wakes(entry.kind, event)):
            return True
    return False
