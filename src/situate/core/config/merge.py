"""Merges a profile's plugin sets: with the defaults, and `multiPoint` with the single extension points.

It handles names only; the caller knows which plugins exist and what they implement.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from situate.core.config.types import PluginRef, Plugins, PluginSet

ALL = "*"


def merge_plugins(default: Plugins, given: Plugins | None) -> Plugins:
    """Merge the file's plugin sets into the defaults, point by point."""
    if given is None:
        return default
    return Plugins(
        **{
            field: merge_plugin_set(getattr(default, field), getattr(given, field))
            for field in Plugins.__struct_fields__
        }
    )


def merge_plugin_set(default: PluginSet, given: PluginSet) -> PluginSet:
    """Defaults first, in their order, without disabled ones; a default that is enabled again is reconfigured in place.

    The other enabled plugins follow in the file's order, including duplicates, which are detected later. A default that
    is both disabled and enabled goes to the end, with the others of the file.
    """
    disabled = tuple(PluginRef(name=ref.name) for ref in (*given.disabled, *default.disabled))
    left_out = {ref.name for ref in disabled}
    again = {ref.name: i for i, ref in enumerate(given.enabled)}
    in_place: set[int] = set()
    enabled: list[PluginRef] = []
    for ref in () if ALL in left_out else default.enabled:
        if ref.name in left_out:
            continue
        i = again.get(ref.name)
        if i is not None:
            in_place.add(i)
        enabled.append(ref if i is None else given.enabled[i])
    enabled += [ref for i, ref in enumerate(given.enabled) if i not in in_place]
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def expand(
    point: PluginSet, multi_point: Sequence[str], implements: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """The plugins that run at a point, in order, and the duplicates.

    First the plugins that both the point and multiPoint name (the point's order and weight win), then those that only
    multiPoint names, then those that only the point names.
    """
    here = dict.fromkeys(ref.name for ref in point.enabled)
    disabled = {ref.name for ref in point.disabled}
    if ALL in disabled:
        return list(here), []
    brought = [name for name in multi_point if name not in disabled and implements(name)]
    overridden = set(brought)
    first = [name for name in here if name in overridden]
    last = [name for name in here if name not in overridden]
    added = Counter(name for name in brought if name not in here)
    return [*first, *added, *last], [name for name, times in added.items() if times > 1]
