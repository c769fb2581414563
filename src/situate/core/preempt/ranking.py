"""Which candidate node is chosen: the one with the least harm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from situate.core.preempt.evictable import Evictable

ABOVE_ALL_NEGATIVE: Final = 1 << 31
"""Added to each priority before they are summed, so that one more victim never looks better than one less."""


@dataclass(frozen=True, slots=True)
class Candidate:
    row: int
    victims: tuple[Evictable, ...]
    """The most important first."""
    violations: int
    """How many of them a disruption budget protects."""


def harm(candidate: Candidate) -> tuple[int, int, int, int, int, int]:
    """The criteria, first to last; less is better. Kubernetes chooses at random if all are equal."""
    victims = candidate.victims
    highest = victims[0].kind.priority
    return (
        candidate.violations,
        highest,
        sum(pod.kind.priority + ABOVE_ALL_NEGATIVE for pod in victims),
        len(victims),
        -min(pod.started for pod in victims if pod.kind.priority == highest),
        candidate.row,
    )


def least_harmful(candidates: Sequence[Candidate]) -> Candidate:
    return min(candidates, key=harm)
