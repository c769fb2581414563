"""ImageLocality: prefer nodes that have the pod's images already, the bigger and more common the better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from situate.core.contract import MAX_SCORE, Scores
from situate.core.model.pod import PodSpec
from situate.core.plugins.support.normalize import constant
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, sealed
from situate.core.state.view import View
from situate.core.versions import KubernetesRules

MIB: Final = 1 << 20
LEAST: Final = 23 * MIB
"""Images up to this size count nothing."""
MOST_A_CONTAINER: Final = 1000 * MIB
"""Above this average over the containers, the score does not rise."""


@dataclass(frozen=True, slots=True)
class ImageLocality:
    """An image counts with its size times the share of nodes that have it, so that a rare image attracts no crowd."""

    volumes_raise_threshold: bool = False
    """Image volumes count like containers."""

    name: ClassVar[str] = "ImageLocality"

    def with_rules(self, rules: KubernetesRules) -> ImageLocality:
        return ImageLocality(rules.image_volumes_raise_threshold)

    def score(self, pod: PodClass, view: View) -> Scores:
        if not view.cluster.images.sizes:
            return constant(0, view)
        images = images_of(pod.spec)
        counted = len(images) if self.volumes_raise_threshold else _containers(pod.spec)
        if not any(view.image_holders(image) for image in images):
            return constant(0, view)
        scores = view.memo((self.name, images, counted), lambda whole: sealed(_scores(images, counted, whole)))
        return scores[view.rows]


def _containers(spec: PodSpec) -> int:
    return len(spec.init_containers) + len(spec.containers)


def images_of(spec: PodSpec) -> tuple[str, ...]:
    """The images that a node would need, one for each container and each image volume, under their full names."""
    volumes = (volume.image.reference for volume in spec.volumes if volume.image is not None)
    containers = (container.image for container in (*spec.init_containers, *spec.containers))
    return tuple(full_name(image) for image in (*containers, *volumes))


def full_name(image: str) -> str:
    """The name under which nodes list an image: one without a tag has the tag `latest`."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def _scores(images: tuple[str, ...], counted: int, whole: View) -> Scores:
    sums = np.zeros(whole.size, np.int64)
    for image in images:
        rows, worth = _worth(image, whole)
        sums[rows] += worth
    most = MOST_A_CONTAINER * counted
    return (np.clip(sums, LEAST, most) - LEAST) * MAX_SCORE // (most - LEAST)


def _worth(image: str, view: View) -> tuple[IdColumn, int]:
    """The rows that hold an image, and its score there."""
    return view.memo((ImageLocality.name, image), lambda whole: _find_worth(image, whole))


def _find_worth(image: str, whole: View) -> tuple[IdColumn, int]:
    """The rows that hold an image, and its size times its spread.

    As in Kubernetes, the first node that lists an image determines its size.
    """
    holders = whole.image_holders(image)
    if not holders:
        return np.zeros(0, np.intp), 0
    rows = np.fromiter(holders, np.intp, len(holders))
    spread = len(holders) / whole.node_count
    return rows, int(holders[int(rows.min())] * spread)
