"""The defaults of kube-scheduler v1.36, and the plugins that it enables by default."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec.structs import replace

from situate.core.config.merge import merge_plugins
from situate.core.config.types import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElection,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
)
from situate.core.model.base import Model
from situate.core.model.pod import DEFAULT_SCHEDULER
from situate.core.plugins.support.arguments import PluginArgs
from situate.core.plugins.table import ARGS, BUILT_IN, FILTER, SCORE

S = TypeVar("S", bound=Model)

# The extension points that each built-in plugin implements.
BUILT_IN_POINTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {spec.name: frozenset(spec.points) for spec in BUILT_IN.values()}
)

# The extension points that an out-of-tree plugin can implement.
OUT_OF_TREE_POINTS: Final = frozenset((*FILTER, *SCORE, "reserve"))

DEFAULT_PLUGINS: Final = Plugins(
    multi_point=PluginSet(
        enabled=tuple(PluginRef(name=spec.name, weight=spec.weight) for spec in BUILT_IN.values() if spec.default)
    )
)


def default_configuration() -> KubeSchedulerConfiguration:
    """The configuration without a file."""
    return with_defaults(KubeSchedulerConfiguration())


def with_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Fill in all defaults as kube-scheduler does."""
    contention = config.enable_contention_profiling
    return replace(
        config,
        leader_election=_filled(config.leader_election, *LeaderElection.__struct_fields__[1:]),
        client_connection=_filled(config.client_connection, "content_type", "qps", "burst"),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
        profiles=tuple(_profile(profile) for profile in _named(config.profiles)),
    )


def _filled(given: S, *names: str) -> S:
    """Zero and empty values of these fields count as absent."""
    default = type(given)()
    return replace(given, **{name: getattr(given, name) or getattr(default, name) for name in names})


def _named(profiles: Sequence[KubeSchedulerProfile]) -> Sequence[KubeSchedulerProfile]:
    """Without profiles there is one; a single profile needs no name. Of several, each needs a name."""
    if not profiles:
        profiles = (KubeSchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        return (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER),)
    return profiles


def _profile(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    plugins = merge_plugins(DEFAULT_PLUGINS, profile.plugins)
    given = [
        replace(entry, args=entry.args.with_defaults()) if isinstance(entry.args, PluginArgs) else entry
        for entry in profile.plugin_config
    ]
    named = {entry.name for entry in given}
    enabled = enabled_names(plugins)
    missing = [
        PluginConfig(name=name, args=ARGS[name]()) for name in sorted(ARGS) if name in enabled and name not in named
    ]
    return replace(profile, plugins=plugins, plugin_config=(*given, *missing))


def enabled_names(plugins: Plugins) -> dict[str, None]:
    """Every plugin that is enabled anywhere, once."""
    sets = (getattr(plugins, field) for field in Plugins.__struct_fields__)
    return {ref.name: None for plugin_set in sets for ref in plugin_set.enabled}
