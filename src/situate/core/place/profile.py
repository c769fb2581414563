"""A profile: the plugins that decide for one scheduler name, in order, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from situate.core.contract import Assigner, Filter, Scorer


@dataclass(frozen=True, slots=True)
class Weighted:
    """A scorer and what its scores count for."""

    scorer: Scorer
    weight: int


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many nodes are drawn, or the percentage after which enough were found that fit; 0 where not given."""

    nodes: int = 0
    percentage: int = 0
    for_extenders: bool = False
    """Extenders filter or score what is found: then one node is not as good as another, even if nothing here scores."""


ALL_NODES: Final = Sampling()


@dataclass(frozen=True, slots=True)
class Profile:
    """Filters in the order that names the first refusal; scorers with weights; what is tried when nothing fits."""

    scheduler_name: str
    filters: tuple[Filter, ...]
    scorers: tuple[Weighted, ...]
    before_nodes: tuple[str, ...] = ()
    """The filters that may turn a pod away before any node is looked at, in that order. Empty: in filter order."""
    post_filters: tuple[str, ...] = ("DynamicResources", "DefaultPreemption")
    """What is tried when nothing fits (Kubernetes' PostFilter), in order."""
    sampling: Sampling = ALL_NODES
    """Which nodes are looked at."""
    assigners: tuple[Assigner, ...] = ()
    """Who writes something on the pod with its bind. Of two that write the same, the later one has the say."""
