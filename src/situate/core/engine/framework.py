"""Frameworks from a configuration: the built-in plugins by the table, out-of-tree ones by their classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from situate.core.config.defaults import BUILT_IN_POINTS, default_configuration
from situate.core.config.resolve import ResolvedProfile, resolve
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.contract import Assigner, Filter, Scorer
from situate.core.model.duration import SECOND
from situate.core.model.refs import Millis
from situate.core.place.profile import ALL_NODES, Profile, Sampling, Weighted
from situate.core.plugins.default_preemption import DefaultPreemptionArgs
from situate.core.plugins.dynamic_resources import DynamicResources, DynamicResourcesArgs
from situate.core.plugins.support.errors import PluginError
from situate.core.plugins.support.out_of_tree import as_assigner, as_filter, as_scorer, construct
from situate.core.plugins.support.single_stage import filter_only, pre_filter_only
from situate.core.plugins.table import BUILT_IN
from situate.core.plugins.volume_binding import VolumeBinding, VolumeBindingArgs
from situate.core.preempt.options import PreemptionOptions
from situate.core.versions import DEFAULT, KubernetesRules

LATE: Final = ("VolumeRestrictions", "VolumeBinding", "VolumeZone")
"""Filters of ours that turn pods away at preFilter; without that extension point, they do so node by node."""


ASKED_AT: Final = ("filter", "score", "preFilter", "reserve")
"""The extension points at which a plugin may be called."""


@dataclass(frozen=True, slots=True)
class Framework:
    """All that decisions for one scheduler name take: its plugins, and how it preempts."""

    profile: Profile
    preemption: PreemptionOptions
    binds_volumes: bool = True
    """Whether volumes are bound before the pod is: VolumeBinding is enabled at preBind."""
    volumes_ms: Millis = 600_000
    """How long volumes may take to become ready."""
    devices: DynamicResources | None = None
    """The plugin that chooses devices, if the profile enables it at reserve."""
    devices_ms: Millis = 600_000
    """How long devices may take to become ready."""
    rules: KubernetesRules = DEFAULT
    """The rules of the version of Kubernetes that it follows."""


def build_frameworks(
    config: KubeSchedulerConfiguration, others: Mapping[str, type] | None = None
) -> dict[str, Framework]:
    """By scheduler name. `others` are out-of-tree plugin classes, under the names the configuration uses."""
    others = others or {}
    known = {**BUILT_IN_POINTS, **{name: points_of(kind) for name, kind in others.items()}}
    extended = any(extender.filter_verb or extender.prioritize_verb for extender in config.extenders)
    made = {profile.scheduler_name: _framework(profile, others, config.rules) for profile in resolve(config, known)}
    return {name: _for_extenders(framework) for name, framework in made.items()} if extended else made


def default_framework(rules: KubernetesRules = DEFAULT) -> Framework:
    return next(iter(build_frameworks(default_configuration(rules)).values()))


def points_of(kind: type) -> frozenset[str]:
    """The extension points that an out-of-tree plugin class implements, by its methods."""
    points = set()
    if hasattr(kind, "check") or hasattr(kind, "check_one"):
        points |= {"preFilter", "filter"}
    if hasattr(kind, "score") or hasattr(kind, "score_one"):
        points |= {"preScore", "score"}
    if hasattr(kind, "assign"):
        points.add("reserve")
    return frozenset(points)


def _framework(resolved: ResolvedProfile, others: Mapping[str, type], rules: KubernetesRules) -> Framework:
    filters: dict[str, Filter | None] = {}
    scorers: dict[str, Scorer | None] = {}
    assigners: dict[str, Assigner | None] = {}
    for name in dict.fromkeys(name for point in ASKED_AT for name in resolved.points[point]):
        if name in BUILT_IN:
            plugin = BUILT_IN[name].build(resolved.args.get(name), resolved.points_of(name), rules)
            filters[name] = plugin if isinstance(plugin, Filter) else None
            scorers[name] = plugin if isinstance(plugin, Scorer) else None
            assigners[name] = plugin if isinstance(plugin, Assigner) else None
        elif name in others:
            plugin = construct(name, others[name], resolved.args.get(name))
            filters[name], scorers[name] = as_filter(name, plugin), as_scorer(name, plugin)
            assigners[name] = as_assigner(name, plugin)
    _nobody_left_out(resolved, others)
    args = resolved.args_of(DefaultPreemptionArgs)
    devices = filters.get(DynamicResources.name) if DynamicResources.name in resolved.points["reserve"] else None
    return Framework(
        Profile(
            scheduler_name=resolved.scheduler_name,
            filters=_asked(resolved, filters),
            scorers=tuple(
                Weighted(scorer, weight)
                for name, weight in resolved.scorers
                if (scorer := scorers.get(name)) is not None
            ),
            before_nodes=_before_nodes(resolved, others),
            post_filters=resolved.points["postFilter"],
            sampling=_sampling(resolved),
            reads_selected_labels=all(name in BUILT_IN for name in (*filters, *scorers)),
            assigners=tuple(
                assigner for name in resolved.points["reserve"] if (assigner := assigners.get(name)) is not None
            ),
        ),
        PreemptionOptions(
            args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute, args.never_break_budgets, rules
        ),
        binds_volumes=VolumeBinding.name in resolved.points["preBind"],
        volumes_ms=resolved.args_of(VolumeBindingArgs).bind_timeout_seconds * 1_000,
        devices=devices if isinstance(devices, DynamicResources) else None,
        devices_ms=resolved.args_of(DynamicResourcesArgs).binding_timeout * 1_000 // SECOND,
        rules=rules,
    )


def _for_extenders(framework: Framework) -> Framework:
    profile = framework.profile
    if profile.sampling is ALL_NODES:
        return framework
    return replace(framework, profile=replace(profile, sampling=replace(profile.sampling, for_extenders=True)))


def _sampling(resolved: ResolvedProfile) -> Sampling:
    """A sample in the profile overrides a percentage in the configuration."""
    percentage = 0 if resolved.node_sample else resolved.percentage_of_nodes_to_score
    return Sampling(resolved.node_sample, percentage) if resolved.node_sample or percentage else ALL_NODES


def _asked(resolved: ResolvedProfile, filters: Mapping[str, Filter | None]) -> tuple[Filter, ...]:
    """The filters; after them, for what they do at preFilter, those that are enabled there only."""
    asked: list[Filter] = []
    for name in resolved.points["filter"]:
        if (plugin := filters.get(name)) is not None:
            late = name in LATE and name not in resolved.points["preFilter"]
            asked.append(filter_only(plugin) if late else plugin)
    for name in resolved.points["preFilter"]:
        if name not in resolved.points["filter"] and (plugin := filters.get(name)) is not None:
            asked.append(pre_filter_only(plugin))
    return tuple(asked)


def _nobody_left_out(resolved: ResolvedProfile, others: Mapping[str, type]) -> None:
    """`check` runs at filter and `score` at score. Enabled elsewhere only, an out-of-tree plugin would never run."""
    for at, runs in (("preFilter", "filter"), ("preScore", "score")):
        for name in resolved.points[at]:
            if name in others and name not in resolved.points[runs]:
                raise PluginError(name, f"is enabled at {at} and not at {runs}, where it would run")


def _before_nodes(resolved: ResolvedProfile, others: Mapping[str, type]) -> tuple[str, ...]:
    """The plugins that may turn a pod away before any node is filtered. One `check` of an out-of-tree plugin does
    both."""
    named = resolved.points["preFilter"]
    return (*named, *(name for name in resolved.points["filter"] if name in others and name not in named))
