"""How preemption is configured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PreemptionOptions:
    """Kubernetes' DefaultPreemptionArgs, and one option of ours."""

    min_candidate_nodes_percentage: int = 10
    """Of the nodes where evictions may help, how many are tried at least, in percent; see `wanted_candidates`."""
    min_candidate_nodes_absolute: int = 100
    """The same as a number; the larger of the two counts."""
    never_break_budgets: bool = False
    """Leave a node alone if room there cannot be made within the disruption budgets. Kubernetes only tries to."""

    def wanted_candidates(self, nodes: int) -> int:
        """After how many candidates, out of so many nodes, the search may stop."""
        return min(nodes, max(nodes * self.min_candidate_nodes_percentage // 100, self.min_candidate_nodes_absolute))
