"""Which kinds a scheduler configuration needs to watch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from situate.core.config.defaults import BUILT_IN_POINTS
from situate.core.config.resolve import ResolvedProfile, resolve
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.plugins.pod_topology_spread import PodTopologySpreadArgs
from situate.kube.kinds import (
    ALL_KINDS,
    ALWAYS,
    BUDGETS,
    CLAIMS,
    CSI_CAPACITIES,
    CSI_DRIVERS,
    CSI_NODES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    VOLUMES,
    WatchedKind,
)

_SPREAD: Final = "PodTopologySpread"
_BOUND: Final = (VOLUMES, CLAIMS, STORAGE_CLASSES)
_READ_BY: Final[Mapping[str, tuple[WatchedKind, ...]]] = MappingProxyType(
    {
        "DefaultPreemption": (BUDGETS,),
        "DynamicResources": (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES),
        "InterPodAffinity": (NAMESPACES,),
        "NodeVolumeLimits": (*_BOUND, CSI_NODES, CSI_DRIVERS, VOLUME_ATTACHMENTS),
        _SPREAD: (SERVICES, REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS),
        "VolumeBinding": (*_BOUND, CSI_NODES, CSI_DRIVERS, CSI_CAPACITIES),
        "VolumeRestrictions": (CLAIMS,),
        "VolumeZone": _BOUND,
    }
)


def needed_kinds(
    config: KubeSchedulerConfiguration, others: Mapping[str, frozenset[str]] | None = None
) -> tuple[WatchedKind, ...]:
    """The kinds that the profiles of a configuration read; the scheduler needs no right to any other.

    The configuration has its defaults set. `others` are third-party plugins with their extension points. What these
    read is unknown, so a profile with one needs every kind.
    """
    known = {**BUILT_IN_POINTS, **(others or {})}
    needed = [*ALWAYS]
    for profile in resolve(config, known):
        needed.extend(_read_by(profile))
    return tuple(kind for kind in ALL_KINDS if kind in needed)


def _read_by(profile: ResolvedProfile) -> Iterator[WatchedKind]:
    for name in dict.fromkeys(name for names in profile.points.values() for name in names):
        if name not in BUILT_IN_POINTS:
            yield from ALL_KINDS
        elif name != _SPREAD or _spreads_by_default(profile):
            yield from _READ_BY.get(name, ())


def _spreads_by_default(profile: ResolvedProfile) -> bool:
    """Whether pods without constraints are spread, too; only then do their owners matter."""
    args = profile.args_of(PodTopologySpreadArgs)
    return args.defaulting_type == "System" or bool(args.default_constraints)
