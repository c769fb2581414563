"""What arguments of built-in plugins share: their base, and the checks that several of them need.

A plugin declares its arguments beside itself. The configuration decodes, defaults, validates and encodes them through
`PluginArgs`, without knowing the plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, Final, TypeVar

from msgspec.structs import replace

from situate.core.model.base import Int32, Int64, Model
from situate.core.model.field_errors import child, duplicate, index, invalid, required
from situate.core.model.names import qualified_name_problems
from situate.core.versions import KubernetesRules

Args = TypeVar("Args", bound="PluginArgs")


class ArgModel(Model, frozen=True):
    """A struct in a plugin's arguments."""

    omit_empty: ClassVar[tuple[str, ...]] = ()
    """The fields that are not written while they have their default. None is never written."""


class PluginArgs(ArgModel, frozen=True):
    """A plugin's arguments in `pluginConfig`. Their kind in the file is the plugin's name and "Args"."""

    def with_defaults(self: Args) -> Args:
        """With the defaults that depend on other fields."""
        return self

    def with_rules(self: Args, rules: KubernetesRules) -> Args:
        """With the defaults that depend on the version of Kubernetes."""
        return self

    def validate(self, path: str) -> list[str]:
        """Every problem, in kube-scheduler's words and order. `path` is the field that holds the arguments."""
        return []

    def rule_problems(self, path: str, rules: KubernetesRules) -> list[str]:
        """The problems by the rules of a version of Kubernetes; they follow those of `validate`."""
        return []


class ResourceSpec(ArgModel, frozen=True):
    """A resource and its weight in the score. The weight 0 stands for 1."""

    name: str = ""
    weight: Int64 = 0


CPU_AND_MEMORY: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(ArgModel, frozen=True, kw_only=True):
    """At this utilization, 0..100, this score, 0..10; straight lines between the points."""

    utilization: Int32 = 0
    score: Int32 = 0


def with_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    """The default resources where none are given, and the default weight where it is 0."""
    if not resources:
        return CPU_AND_MEMORY
    return tuple(replace(resource, weight=resource.weight or 1) for resource in resources)


def weight_problems(path: str, resources: Sequence[ResourceSpec]) -> list[str]:
    return [
        invalid(
            child(index(path, i), "weight"),
            resource.weight,
            f"resource weight of {resource.name} not in valid range (0, 100]",
        )
        for i, resource in enumerate(resources)
        if not 0 < resource.weight <= 100
    ]


def repeated_name(path: str, resources: Sequence[ResourceSpec], i: int) -> list[str]:
    """The problem with the resource at `i` if an earlier one has its name. `path` is the resource's own."""
    name = resources[i].name
    return [duplicate(child(path, "name"), name)] if any(one.name == name for one in resources[:i]) else []


def range_problems(path: str, amount: float, least: int, most: int) -> list[str]:
    return [] if least <= amount <= most else [invalid(path, amount, f"not in valid range [{least}, {most}]")]


def shape_problems(path: str, shape: Sequence[UtilizationShapePoint]) -> list[str]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    problems = []
    for i, (last, point) in enumerate(pairwise(shape), start=1):
        if last.utilization >= point.utilization:
            detail = "values must be sorted in increasing order"
            problems.append(invalid(child(index(path, i), "utilization"), point.utilization, detail))
            break
    for i, point in enumerate(shape):
        problems += range_problems(child(index(path, i), "utilization"), point.utilization, 0, 100)
        problems += range_problems(child(index(path, i), "score"), point.score, 0, 10)
    return problems


def label_name_problems(path: str, name: str) -> list[str]:
    return [invalid(path, name, problem) for problem in qualified_name_problems(name)]
