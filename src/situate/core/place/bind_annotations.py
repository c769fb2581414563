"""The annotations that a bind writes on a pod: what the profile's assigners chose on the node."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec.structs import replace

from situate.core.model.annotations import GPU_DEVICES
from situate.core.model.pod import Pod
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.view import View

BindAnnotations: TypeAlias = tuple[tuple[str, str], ...]
"""Annotations, by name."""
NOTHING: Final[BindAnnotations] = ()


def bind_annotations(profile: Profile, pod: PodClass, view: View, row: int) -> BindAnnotations:
    """What the assigners choose for a pod on a row. If two write the same annotation, the last one wins."""
    said: dict[str, str] = {}
    for assigner in profile.assigners:
        said.update(assigner.assign(pod, view, row))
    return tuple(sorted(said.items()))


def assigned_devices(said: BindAnnotations) -> str:
    """The value of the device annotation, as an overlay takes it; empty if there is none."""
    return next((value for key, value in said if key == GPU_DEVICES), "")


def with_annotations(pod: Pod, said: BindAnnotations) -> Pod:
    """The pod as it will be seen once it is bound."""
    if not said:
        return pod
    return replace(pod, metadata=replace(pod.metadata, annotations={**pod.metadata.annotations, **dict(said)}))
