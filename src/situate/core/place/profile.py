"""A profile: the plugins that decide for one scheduler name, in order, with their weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from situate.core.contract import Assigner, BoundedScorer, DomainScorer, Filter, Scorer


@dataclass(frozen=True, slots=True)
class Weighted:
    scorer: Scorer
    weight: int
    bounded: BoundedScorer | None = field(init=False, repr=False, compare=False)
    """The scorer again, if it can give bounds."""
    by_domain: DomainScorer | None = field(init=False, repr=False, compare=False)
    """The scorer again, if it can score by domain."""

    def __post_init__(self) -> None:
        scorer = self.scorer
        object.__setattr__(self, "bounded", scorer if isinstance(scorer, BoundedScorer) else None)
        object.__setattr__(self, "by_domain", scorer if isinstance(scorer, DomainScorer) else None)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many nodes are sampled, or after which percentage the search for feasible nodes stops; 0 where not set."""

    nodes: int = 0
    percentage: int = 0
    for_extenders: bool = False
    """Extenders filter or score the nodes: then any feasible node is not as good as another, even without scorers."""


ALL_NODES: Final = Sampling()


@dataclass(frozen=True, slots=True)
class Profile:
    """Filters in the order that names the first refusal, scorers with weights, and PostFilter plugins."""

    scheduler_name: str
    filters: tuple[Filter, ...]
    scorers: tuple[Weighted, ...]
    before_nodes: tuple[str, ...] = ()
    """The filters that may turn a pod away before any node is filtered, in that order. Empty: in filter order."""
    post_filters: tuple[str, ...] = ("DynamicResources", "DefaultPreemption")
    """Kubernetes' PostFilter plugins, in order."""
    sampling: Sampling = ALL_NODES
    """Which nodes are considered."""
    reads_selected_labels: bool = False
    """Whether every plugin reads a pod's labels only through selectors, as all built-in ones do."""
    assigners: tuple[Assigner, ...] = ()
    """The plugins that annotate the pod with its bind. If two write the same annotation, the later one wins."""
