"""Which unschedulable pods an event may help: kube-scheduler's queueing hints.

A plugin lists the kinds of events that it waits for (`wakes_on`). One that can tell more exactly has `wakes`: of all
new nodes, only one that the pod would fit on is worth waking it for.
"""

from __future__ import annotations

from collections.abc import Mapping

from situate.core.contract import Discerning, Filter, Wake, WakeEvent
from situate.core.state.classes import PodClass


def waits_for(rejected_by: tuple[str, ...], kind: Wake, filters: Mapping[str, Filter]) -> bool:
    """Whether any of the plugins that rejected a pod waits for this kind of event.

    Any event may help if no plugin in particular rejected the pod, or one that lists no events, such as an extender.
    """
    return not rejected_by or any(name not in filters or kind in filters[name].wakes_on for name in rejected_by)


def may_help(pod: PodClass, rejected_by: tuple[str, ...], event: WakeEvent, filters: Mapping[str, Filter]) -> bool:
    """Whether the event could make any of the plugins that rejected the pod accept a node that it refused."""
    if event.up_to is not None and pod.priority > event.up_to:
        return False
    return not rejected_by or any(_could_help(filters.get(name), pod, event) for name in rejected_by)


def _could_help(plugin: Filter | None, pod: PodClass, event: WakeEvent) -> bool:
    if plugin is None:
        return True
    if event.kind not in plugin.wakes_on:
        return False
    # Not isinstance(plugin, Discerning): this runs for every unschedulable class, and isinstance is ten times slower.
    discerning: Discerning | None = plugin if hasattr(plugin, "wakes") else None  # type: ignore[assignment]
    return discerning is None or discerning.wakes(pod, event)
