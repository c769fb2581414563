"""Resolves profiles: which plugins run where, in which order, with which weights and arguments.

The configuration has its defaults and is valid. `known` maps each plugin to the extension points it implements; the
caller adds the out-of-tree plugins that it has loaded, under their names in the file.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from situate.core.config.defaults import enabled_names
from situate.core.config.errors import ConfigError
from situate.core.config.merge import ALL, expand
from situate.core.config.types import (
    EXTENSION_POINTS,
    POD_GROUP_POST_FILTER,
    Extender,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginConfig,
    Plugins,
    PluginSet,
)
from situate.core.model.base import INT64_MAX, INT64_MIN, Model
from situate.core.model.duration import SECOND
from situate.core.model.field_errors import child, index, quoted
from situate.core.plugins.node_resources_fit import NodeResourcesFitArgs
from situate.core.plugins.support.arguments import PluginArgs

EXTENDER_TIMEOUT: Final = 5 * SECOND
MAX_NODE_SCORE: Final = 100

_FIELDS: Final = dict(
    zip(Plugins.__struct_encode_fields__, Plugins.__struct_fields__, strict=True),
)
_WEIGHTED: Final = ("score", "placementScore")

ArgsT = TypeVar("ArgsT", bound=PluginArgs)


class ResolvedProfile(Model, frozen=True, kw_only=True):
    """A resolved profile. `points` has every extension point, with plugins in the order in which they run.

    `weights` and `placement_weights` have the plugins that score, without zeros. `args` is by plugin: a `PluginArgs`
    for built-in plugins, as in the file for others. `percentage_of_nodes_to_score` is the profile's or the
    configuration's; 0 leaves the choice to the scheduler. `node_sample` is 0 without sampling.
    """

    scheduler_name: str
    percentage_of_nodes_to_score: int
    node_sample: int
    points: Mapping[str, tuple[str, ...]]
    weights: Mapping[str, int]
    placement_weights: Mapping[str, int]
    args: Mapping[str, Any]

    @property
    def queue_sort(self) -> str:
        return self.points["queueSort"][0]

    @property
    def filters(self) -> tuple[str, ...]:
        """The filter plugins, in order."""
        return self.points["filter"]

    @property
    def scorers(self) -> tuple[tuple[str, int], ...]:
        """The score plugins, in order, with their weights."""
        return tuple((name, self.weights[name]) for name in self.points["score"])

    def points_of(self, name: str) -> frozenset[str]:
        """The extension points at which the profile runs this plugin."""
        return frozenset(point for point, names in self.points.items() if name in names)

    def args_of(self, kind: type[ArgsT]) -> ArgsT:
        """The arguments of this type: the file's or the defaults."""
        found = next((args for args in self.args.values() if isinstance(args, kind)), None)
        return kind() if found is None else found


def resolve(config: KubeSchedulerConfiguration, known: Mapping[str, frozenset[str]]) -> tuple[ResolvedProfile, ...]:
    """Each profile, in the file's order. Raises ConfigError with all problems."""
    config = complete(config)
    added = config.rules.added_points
    known = {name: points | added.get(name, frozenset()) for name, points in known.items()}
    problems: list[str] = []
    resolved: list[ResolvedProfile] = []
    for i, profile in enumerate(config.profiles):
        path = index("profiles", i)
        found = _resolved(profile, path, known, config.percentage_of_nodes_to_score)
        if isinstance(found, ResolvedProfile) and not config.rules.pod_group_post_filter:
            points = {point: names for point, names in found.points.items() if point != POD_GROUP_POST_FILTER}
            found = replace(found, points=MappingProxyType(points))
        if isinstance(found, ResolvedProfile):
            resolved.append(found)
            problems += _other_queue_sort(path, found, resolved[0])
        else:
            problems += found
    if problems:
        raise ConfigError(problems)
    return tuple(resolved)


def _resolved(
    profile: KubeSchedulerProfile, path: str, known: Mapping[str, frozenset[str]], percentage: int
) -> ResolvedProfile | list[str]:
    """The profile or its problems. Later steps rely on earlier checks, so the first failing step is the last."""
    plugins = profile.plugins or Plugins()
    own = profile.percentage_of_nodes_to_score
    plugins_path = child(path, "plugins")
    problems = _point_problems(plugins_path, plugins, known)
    if problems:
        return problems
    points, problems = _expanded(plugins_path, plugins, known)
    problems = problems or _count_problems(plugins_path, profile.scheduler_name or "", points)
    if problems:
        return problems
    weights = {point: _weights(_sets(plugins)[point], plugins.multi_point, point, known) for point in _WEIGHTED}
    for point, text in (("score", "score plugins"), ("placementScore", "placement score plugins")):
        if weights[point] is None:
            return [f"{child(plugins_path, point)}: {text}: total score of Score plugins could overflow"]
    return ResolvedProfile(
        scheduler_name=profile.scheduler_name or "",
        percentage_of_nodes_to_score=percentage if own is None else own,
        node_sample=profile.node_sample or 0,
        points=MappingProxyType(points),
        weights=MappingProxyType(weights["score"] or {}),
        placement_weights=MappingProxyType(weights["placementScore"] or {}),
        args=MappingProxyType({entry.name: entry.args for entry in profile.plugin_config}),
    )


def _sets(plugins: Plugins) -> dict[str, PluginSet]:
    return {point: getattr(plugins, _FIELDS[point]) for point in EXTENSION_POINTS}


def _interface(point: str) -> str:
    """The name of kube-scheduler's interface for this point."""
    return f"{point[0].upper()}{point[1:]}Plugin"


# ── the plugins at each point ───────────────────────────────────────────────────────────────────────────────────────


def _point_problems(path: str, plugins: Plugins, known: Mapping[str, frozenset[str]]) -> list[str]:
    """Plugins named at a point must exist, implement it, and occur once."""
    problems = []
    for point, plugin_set in _sets(plugins).items():
        seen: set[str] = set()
        for ref in plugin_set.enabled:
            fault = _fault_at(point, ref.name, known, seen)
            if fault:
                problems.append(f"{child(path, point)}: {fault}")
            seen.add(ref.name)
    return problems


def _fault_at(point: str, name: str, known: Mapping[str, frozenset[str]], seen: set[str]) -> str:
    if name not in known:
        return f"{_interface(point)} {quoted(name)} does not exist"
    if point not in known[name]:
        return f"plugin {quoted(name)} does not extend {_interface(point)} plugin"
    if name in seen:
        return f"plugin {quoted(name)} already registered as {quoted(_interface(point))}"
    return ""


def _expanded(
    path: str, plugins: Plugins, known: Mapping[str, frozenset[str]]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Expand multiPoint into the points that its plugins implement."""
    multi_point = [ref.name for ref in plugins.multi_point.enabled]
    multi_path = child(path, "multiPoint")
    strangers = [name for name in dict.fromkeys(multi_point) if name not in known]
    if strangers:
        kept = (point for point, here in _sets(plugins).items() if ALL not in (ref.name for ref in here.disabled))
        first = next(kept, EXTENSION_POINTS[0])
        return {}, [f"{multi_path}: {_interface(first)} {quoted(name)} does not exist" for name in strangers]
    points: dict[str, tuple[str, ...]] = {}
    problems: dict[str, str] = {}
    for point, plugin_set in _sets(plugins).items():
        here = frozenset(name for name in multi_point if point in known[name])
        names, twice = expand(plugin_set, multi_point, here.__contains__)
        points[point] = tuple(names)
        for name in twice:
            problem = f"{multi_path}: plugin {quoted(name)} already registered as {quoted(_interface(point))}"
            problems.setdefault(name, problem)
    return points, list(problems.values())


def _count_problems(path: str, scheduler: str, points: Mapping[str, tuple[str, ...]]) -> list[str]:
    profile = f"profile with scheduler name {quoted(scheduler)}"
    sorts = len(points["queueSort"])
    problems = []
    if sorts != 1:
        text = f"only one queue sort plugin required for {profile}, but got {sorts}"
        problems.append(f"{child(path, 'queueSort')}: {text}")
    if not points["bind"]:
        problems.append(f"{child(path, 'bind')}: at least one bind plugin is needed for {profile}")
    if len(points["placementGenerate"]) > 1:
        text = f"at most one placement generate plugin is allowed for {profile}"
        problems.append(f"{child(path, 'placementGenerate')}: {text}")
    return problems


def _other_queue_sort(path: str, profile: ResolvedProfile, first: ResolvedProfile) -> list[str]:
    name, sort, wanted = profile.scheduler_name, profile.queue_sort, first.queue_sort
    here = child(path, "plugins", "queueSort")
    if sort != wanted:
        text = f"different queue sort plugins for profile {quoted(name)}: {quoted(sort)}, first: {quoted(wanted)}"
        return [f"{here}: {text}"]
    if profile.args.get(sort) != first.args.get(wanted):
        return [f"{here}: different queue sort plugin args for profile {quoted(name)}"]
    return []


# ── weights ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _weights(
    point: PluginSet, multi_point: PluginSet, name: str, known: Mapping[str, frozenset[str]]
) -> dict[str, int] | None:
    """The point's weight wins over multiPoint's, default 1; None if the sum of scores may overflow."""
    weights: dict[str, int] = {}
    total = 0
    for ref in (*point.enabled, *multi_point.enabled):
        if name not in known[ref.name] or ref.name in weights:
            continue
        weights[ref.name] = ref.weight or 1
        most = weights[ref.name] * MAX_NODE_SCORE
        if most > _int64(INT64_MAX - total):
            return None
        total += most
    return weights


def _int64(number: int) -> int:
    # kube-scheduler subtracts in 64 bits, so it refuses a negative weight if another weight follows.
    return (number - INT64_MIN) % 2**64 + INT64_MIN


# ── what kube-scheduler does to a configuration when it starts ──────────────────────────────────────────────────────


def complete(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """As `kube-scheduler --write-config-to` writes it: extenders applied, and only the arguments of enabled plugins.

    Raises ConfigError if an extender manages resources and a profile has no NodeResourcesFitArgs.
    """
    extenders = (replace(one, http_timeout=one.http_timeout or EXTENDER_TIMEOUT) for one in config.extenders)
    config = replace(config, extenders=tuple(extenders))
    profiles = _with_ignored_resources(_ignored_resources(config.extenders), config.profiles)
    return replace(config, profiles=tuple(_in_use(profile) for profile in profiles))


def _ignored_resources(extenders: Iterable[Extender]) -> tuple[str, ...]:
    resources = (resource for extender in extenders for resource in extender.managed_resources)
    return tuple(resource.name for resource in resources if resource.ignored_by_scheduler)


def _with_ignored_resources(
    ignored: tuple[str, ...], profiles: Sequence[KubeSchedulerProfile]
) -> Sequence[KubeSchedulerProfile]:
    """NodeResourcesFit ignores the resources that extenders manage; their list replaces the file's."""
    if not ignored:
        return profiles
    changed = []
    for i, profile in enumerate(profiles):
        if not any(isinstance(entry.args, NodeResourcesFitArgs) for entry in profile.plugin_config):
            text = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
            raise ConfigError([f"{child(index('profiles', i), 'pluginConfig')}: {text}"])
        changed.append(
            replace(profile, plugin_config=tuple(_ignoring(entry, ignored) for entry in profile.plugin_config))
        )
    return changed


def _ignoring(entry: PluginConfig, ignored: tuple[str, ...]) -> PluginConfig:
    if not isinstance(entry.args, NodeResourcesFitArgs):
        return entry
    return replace(entry, args=replace(entry.args, ignored_resources=ignored))


def _in_use(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    enabled = enabled_names(profile.plugins or Plugins())
    used = (entry for entry in profile.plugin_config if entry.name in enabled and entry.args is not None)
    return replace(profile, plugin_config=tuple(sorted(used, key=lambda entry: entry.name)))
