"""How a profile's plugin sets combine: with the defaults, and `multiPoint` with the single extension points.

Names only: whether a plugin exists, or does anything at a point, is for the caller to say.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from situate.core.config.types import PluginRef, Plugins, PluginSet

ALL = "*"


def merge_plugins(default: Plugins, given: Plugins | None) -> Plugins:
    """The defaults with what the file says laid over them, point by point."""
    if given is None:
        return default
    return Plugins(
        **{
            field: merge_plugin_set(getattr(default, field), getattr(given, field))
            for field in Plugins.__struct_fields__
        }
    )


def merge_plugin_set(default: PluginSet, given: PluginSet) -> PluginSet:
    """Defaults first, in their order, less the disabled; one that is listed again is re-configured in its place.

    What else is listed follows in the file's order, a name that is there twice among it: that is found out later.
    A default that is both disabled and enabled goes to the end, with the others of the file.
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
    """The plugins that run at a point, in order, and those that are there twice.

    First those that the point names although multiPoint brings them (the point's own order and weight win), then
    those that only multiPoint brings, then those that only the point names.
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
