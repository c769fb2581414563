"""DefaultPreemption: its arguments. `situate.core.preempt` finds the pods to evict."""

from __future__ import annotations

from situate.core.model.base import Int32
from situate.core.model.field_errors import child, invalid
from situate.core.plugins.support.arguments import PluginArgs, range_problems


class DefaultPreemptionArgs(PluginArgs, frozen=True, kw_only=True):
    """`never_break_budgets` is ours: preemption drops every candidate that would violate a disruption budget."""

    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100
    never_break_budgets: bool = False

    omit_empty = ("never_break_budgets",)

    def validate(self, path: str) -> list[str]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path = child(path, "minCandidateNodesPercentage")
        absolute_path = child(path, "minCandidateNodesAbsolute")
        problems = range_problems(percentage_path, percentage, 0, 100)
        if absolute < 0:
            problems.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
        if percentage == absolute == 0:
            both = "cannot be zero at the same time as "
            problems.append(invalid(percentage_path, percentage, f"{both}minCandidateNodesAbsolute"))
            problems.append(invalid(absolute_path, absolute, f"{both}minCandidateNodesPercentage"))
        return problems
