"""How much work the search for devices may be.

A count stands for kube-scheduler's deadline, because the core has no clock. A claim may be exponentially hard, and
nothing else happens in the process while devices are searched.
"""

from __future__ import annotations

from typing import Final

from situate.core.devices.errors import AllocationError

WORK_PER_SECOND: Final = 30_000
"""How much work one second of filterTimeout allows. A unit is one device that is looked at; it takes one or two µs."""

WORK_PER_NODE: Final = 400
"""How much more is allowed for each node: enough to ask a simple selector about every device of it."""

WORK_PER_COST: Final = 2
"""What one unit of CEL's cost counts."""

NO_LIMIT: Final = 0


class TimedOutError(AllocationError):
    """The search is more work than it may be."""


class SearchBudget:
    """The work that is left, for all nodes of one attempt."""

    __slots__ = ("left", "whole")

    def __init__(self, work: int = NO_LIMIT) -> None:
        self.whole = self.left = work

    @property
    def is_fresh(self) -> bool:
        """Whether most of it is left: what is too much work now will be too much again."""
        return 2 * self.left >= self.whole

    def spend(self, work: int) -> None:
        """Raises TimedOutError."""
        self.left -= work
        if self.left < 0 and self.whole:
            raise TimedOutError

    def cost_limit(self, at_most: int) -> int:
        """The most that an expression may cost. Raises TimedOutError if nothing is left."""
        self.spend(0)
        return min(at_most, self.left // WORK_PER_COST) if self.whole else at_most


UNLIMITED: Final = SearchBudget()
