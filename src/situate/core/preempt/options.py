"""How preemption is configured."""

from __future__ import annotations

from dataclasses import dataclass

from situate.core.versions import DEFAULT, KubernetesRules


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """Kubernetes' DefaultPreemptionArgs, and one option of ours."""

    min_candidate_nodes_percentage: int = 10
    """At least this percentage of the nodes where evictions may help is tried; see `wanted_candidates`."""
    min_candidate_nodes_absolute: int = 100
    """The same as a number; the larger of the two counts."""
    never_break_budgets: bool = False
    """Skip a node if evictions there would break a disruption budget. Kubernetes only tries to."""
    rules: KubernetesRules = DEFAULT

    def wanted_candidates(self, nodes: int) -> int:
        """After how many candidates the search among this many nodes may stop."""
        return min(nodes, max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute))
