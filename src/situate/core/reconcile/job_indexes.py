"""Completion indexes of a Job, written as "0,2-4,7"."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from situate.core.model.batch import SuccessPolicy
from situate.core.model.integers import parse_count
from situate.core.model.managed import ManagedPod

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: ManagedPod) -> int | None:
    return parse_count(pod.metadata.annotations.get(INDEX, ""))


class Indexes:
    """A set of indexes, as ranges: "0-2147483646" takes no more room or time than "0"."""

    __slots__ = ("_ends", "_starts", "count")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Ranges include both ends, may overlap, and come in any order."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(ranges):
            if self._ends and start <= self._ends[-1] + 1:
                self._ends[-1] = max(self._ends[-1], end)
            elif start <= end:
                self._starts.append(start)
                self._ends.append(end)
        self.count = sum(self._ends) - sum(self._starts) + len(self._starts)

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self._starts, index) - 1
        return at >= 0 and index <= self._ends[at]

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes((*self.ranges(), *other.ranges()))

    def ranges(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)

    def common(self, other: Indexes) -> int:
        """How many indexes are in both."""
        return self.count + other.count - (self | other).count

    def missing(self, below: int) -> Iterator[int]:
        """The indexes below a number that are not in the set, one by one."""
        start = 0
        for first, last in self.ranges():
            yield from range(start, min(first, below))
            start = last + 1
        yield from range(start, below)

    def __str__(self) -> str:
        """Runs of three or more become ranges."""
        parts = (str(a) if a == b else f"{a},{b}" if a + 1 == b else f"{a}-{b}" for a, b in self.ranges())
        return ",".join(parts)


def indexes_of(them: Iterable[int]) -> Indexes:
    return Indexes((one, one) for one in them)


def indexes_in(text: str | None, completions: int) -> Indexes:
    """The indexes below `completions`. Invalid parts are ignored."""
    found: list[tuple[int, int]] = []
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        start, end = parse_count(first), parse_count(last if dash else first)
        if start is not None and end is not None:
            found.append((start, min(end, completions - 1)))
    return Indexes(one for one in found if one[0] <= one[1])


def success_rule(policy: SuccessPolicy | None, succeeded: Indexes, completions: int) -> str | None:
    """The message of the first success rule that is met."""
    for at, rule in enumerate(policy.rules if policy is not None else ()):
        wanted = indexes_in(rule.succeeded_indexes, completions)
        met = succeeded.count if rule.succeeded_indexes is None else succeeded.common(wanted)
        needed = wanted.count if rule.succeeded_count is None else rule.succeeded_count
        if met and met >= needed:
            return f"Matched rules at index {at}"
    return None
