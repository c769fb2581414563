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
    annotations: dict[str, str] = {}
    for assigner in profile.assigners:
        annotations.update(assigner.assign(pod, view, row))
    return tuple(sorted(annotations.items()))


def assigned_devices(annotations: BindAnnotations) -> str:
    """The value of the device annotation, as an overlay takes it; empty if there is none."""
    return next((value for key, value in annotations if key == GPU_DEVICES), "")


def with_annotations(pod: Pod, annotations: BindAnnotations) -> Pod:
    """The pod as it will be seen once it is bound."""
    if not annotations:
        return pod
    return replace(pod, metadata=replace(pod.metadata, annotations={**pod.metadata.annotations, **dict(annotations)}))
