"""Which parked pods an event is worth waking for.

A plugin lists the kinds of change it waits for (`wakes_on`). One that can tell more exactly has `wakes`: of all the
nodes that came, only one that the pod would fit on is worth waking it for.
"""

from __future__ import annotations

from collections.abc import Mapping

from situate.core.contract import Discerning, Filter, Wake, WakeEvent
from situate.core.state.classes import PodClass


def waits_for(rejected_by: tuple[str, ...], kind: Wake, filters: Mapping[str, Filter]) -> bool:
    """Whether any of the plugins that refused a pod waits for this kind of event.

    Nobody in particular refused it, or somebody who cannot say what it waits for, such as an extender: anything may
    help.
    """
    return not rejected_by or any(name not in filters or kind in filters[name].wakes_on for name in rejected_by)


def may_help(pod: PodClass, rejected_by: tuple[str, ...], event: WakeEvent, filters: Mapping[str, Filter]) -> bool:
    """Whether the event could make any of the plugins that refused the pod take a node that it refused."""
    if event.up_to is not None and pod.priority > event.up_to:
        return False
    return not rejected_by or any(_could_help(filters.get(name), pod, event) for name in rejected_by)


def _could_help(plugin: Filter | None, pod: PodClass, event: WakeEvent) -> bool:
    if plugin is None:
        return True
    if event.kind not in plugin.wakes_on:
        return False
    # Not isinstance(plugin, Discerning): it is asked for every parked class, and that takes ten times as long.
    discerning: Discerning | None = plugin if hasattr(plugin, "wakes") else None  # type: ignore[assignment]
    return discerning is None or discerning.wakes(pod, event)
