"""Profiles from a configuration: the built-in plugins by the table, those of others by the classes handed in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from situate.core.config.defaults import KNOWN, default_configuration
from situate.core.config.resolve import ResolvedProfile, resolve
from situate.core.config.types import DefaultPreemptionArgs, KubeSchedulerConfiguration
from situate.core.place.profile import Profile, Weighted
from situate.core.plugins.one_at_a_time import as_filter, as_scorer
from situate.core.plugins.table import BUILDERS
from situate.core.preempt.options import PreemptionOptions


@dataclass(frozen=True, slots=True)
class Deciding:
    """All that deciding for one scheduler name takes: its plugins, and how it preempts."""

    profile: Profile
    preemption: PreemptionOptions


def build_profiles(config: KubeSchedulerConfiguration, others: Mapping[str, type] | None = None) -> dict[str, Deciding]:
    """By scheduler name. `others` are plugin classes that are not ours, under the names the configuration uses."""
    others = others or {}
    known = {**KNOWN, **{name: points_of(kind) for name, kind in others.items()}}
    return {profile.scheduler_name: _deciding(profile, others) for profile in resolve(config, known)}


def default_profile() -> Deciding:
    """What decides where nobody configured anything."""
    return next(iter(build_profiles(default_configuration()).values()))


def points_of(kind: type) -> frozenset[str]:
    """The extension points that a plugin class of others implements, by the methods that it has."""
    points = set()
    if hasattr(kind, "check") or hasattr(kind, "check_one"):
        points |= {"preFilter", "filter"}
    if hasattr(kind, "score") or hasattr(kind, "score_one"):
        points |= {"preScore", "score"}
    return frozenset(points)


def _deciding(resolved: ResolvedProfile, others: Mapping[str, type]) -> Deciding:
    made: dict[str, object] = {}
    for name in dict.fromkeys((*resolved.points["filter"], *resolved.points["score"])):
        if name in BUILDERS:
            made[name] = BUILDERS[name](resolved)
        elif name in others:
            made[name] = others[name](**_arguments(resolved.args.get(name)))
    filters = [as_filter(name, made[name]) for name in resolved.points["filter"] if name in made]
    scorers = [(as_scorer(name, made[name]), weight) for name, weight in resolved.scorers if name in made]
    args = resolved.args_of(DefaultPreemptionArgs)
    return Deciding(
        Profile(
            scheduler_name=resolved.scheduler_name,
            filters=tuple(plugin for plugin in filters if plugin is not None),
            scorers=tuple(Weighted(scorer, weight) for scorer, weight in scorers if scorer is not None),
            before_nodes=resolved.points["preFilter"],
            remedies=resolved.points["postFilter"],
        ),
        PreemptionOptions(
            args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute, args.never_break_budgets
        ),
    )


def _arguments(given: Any) -> dict[str, Any]:
    """The arguments of a plugin of others: its constructor's keywords, as they stand in the file."""
    return dict(given) if isinstance(given, Mapping) else {}
