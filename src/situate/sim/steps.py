"""What a scheduler was told and what it decided, in one step; and whom that concerns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from situate.core.changes import Change, Millis, NodeSeen, ObjectGone
from situate.core.effects import Effect
from situate.core.model.devices import DeviceClass, ResourceSlice
from situate.core.place.profile import Profile
from situate.core.plugins.dynamic_resources import DynamicResources


@dataclass(frozen=True, slots=True)
class SchedulerStep:
    number: int
    now: Millis
    changes: Sequence[Change]
    effects: Sequence[Effect]


def concerns_all(change: Change) -> bool:
    """Whether any pod may fit after it."""
    is_gone = isinstance(change, ObjectGone) and isinstance(change.item, DeviceClass | ResourceSlice)
    return is_gone or isinstance(change, NodeSeen)


def gates(profile: Profile) -> bool:
    """Whether pods that lack a claim for devices are gated."""
    return any(plugin.name == DynamicResources.name for plugin in profile.filters)
