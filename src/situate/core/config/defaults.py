"""The defaults of kube-scheduler, and the plugins that it enables by default."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from msgspec.structs import replace

from situate.core.config.merge import ALL, merge_plugins
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
from situate.core.versions import DEFAULT, RULES, KubernetesRules

S = TypeVar("S", bound=Model)

# The extension points that each built-in plugin implements.
BUILT_IN_POINTS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {spec.name: frozenset(spec.points) for spec in BUILT_IN.values()}
)

# The extension points that an out-of-tree plugin can implement.
OUT_OF_TREE_POINTS: Final = frozenset((*FILTER, *SCORE, "reserve"))


def default_plugins(rules: KubernetesRules) -> Plugins:
    """The plugins that are enabled by default, in order."""
    first = iter(rules.first_filters)
    names = [next(first) if name in rules.first_filters else name for name in BUILT_IN]
    specs = (BUILT_IN[name] for name in names)
    enabled = (PluginRef(name=spec.name, weight=spec.weight) for spec in specs if spec.default)
    return Plugins(multi_point=PluginSet(enabled=tuple(enabled)))


DEFAULT_PLUGINS: Final = MappingProxyType({version: default_plugins(rules) for version, rules in RULES.items()})
"""By version of Kubernetes."""


def default_configuration(rules: KubernetesRules = DEFAULT) -> KubeSchedulerConfiguration:
    """The configuration without a file."""
    return with_defaults(KubeSchedulerConfiguration(kubernetes_version=rules.version))


def with_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Fill in all defaults as kube-scheduler does."""
    contention = config.enable_contention_profiling
    return replace(
        config,
        leader_election=_filled(config.leader_election, *LeaderElection.__struct_fields__[1:]),
        client_connection=_filled(config.client_connection, "content_type", "qps", "burst"),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
        profiles=tuple(_profile(profile, config.rules) for profile in _named(config.profiles)),
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


def _profile(profile: KubeSchedulerProfile, rules: KubernetesRules) -> KubeSchedulerProfile:
    plugins = merge_plugins(DEFAULT_PLUGINS[rules.version], profile.plugins)
    given = [
        replace(entry, args=entry.args.with_defaults().with_rules(rules))
        if isinstance(entry.args, PluginArgs)
        else entry
        for entry in profile.plugin_config
    ]
    named = {entry.name for entry in given}
    enabled = enabled_names(plugins)
    missing = [
        PluginConfig(name=name, args=ARGS[name]().with_rules(rules))
        for name in sorted(ARGS)
        if name in enabled and name not in named
    ]
    return replace(profile, plugins=plugins, plugin_config=(*given, *missing))


def under_rules(config: KubeSchedulerConfiguration, rules: KubernetesRules) -> KubeSchedulerConfiguration:
    """A configuration that has its defaults, with those of another version of Kubernetes."""
    if config.rules is rules:
        return config
    return replace(
        config,
        kubernetes_version=rules.version,
        profiles=tuple(_profile_under(profile, config.rules, rules) for profile in config.profiles),
    )


def _profile_under(
    profile: KubeSchedulerProfile, before: KubernetesRules, after: KubernetesRules
) -> KubeSchedulerProfile:
    """Plugins that are in the default order of one version get that of the other."""
    plugins = profile.plugins or Plugins()
    multi_point = plugins.multi_point
    kept = {ref.name for ref in multi_point.disabled}
    first = [ref for ref in multi_point.enabled if ref.name in before.first_filters]
    if ALL not in kept and not kept.intersection(before.first_filters) and len(first) == len(after.first_filters):
        by_name = {ref.name: ref for ref in first}
        order = iter(after.first_filters)
        enabled = [by_name[next(order)] if ref.name in by_name else ref for ref in multi_point.enabled]
        plugins = replace(plugins, multi_point=replace(multi_point, enabled=tuple(enabled)))
    args = (
        replace(entry, args=entry.args.with_rules(after)) if isinstance(entry.args, PluginArgs) else entry
        for entry in profile.plugin_config
    )
    return replace(profile, plugins=plugins, plugin_config=tuple(args))


def enabled_names(plugins: Plugins) -> dict[str, None]:
    """Every plugin that is enabled anywhere, once."""
    sets = (getattr(plugins, field) for field in Plugins.__struct_fields__)
    return {ref.name: None for plugin_set in sets for ref in plugin_set.enabled}
