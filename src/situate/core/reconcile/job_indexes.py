"""Completion indexes of a Job, written as "0,2-4,7"."""

from collections.abc import Iterable, Mapping

from situate.core.model.batch import SuccessPolicy
from situate.core.model.managed import ManagedPod
from situate.core.reconcile.api_values import number_in

INDEX = "batch.kubernetes.io/job-completion-index"


def index_of(pod: ManagedPod) -> int | None:
    return number_in(pod.metadata.annotations.get(INDEX, ""))


def indexes_in(text: str | None, completions: int) -> dict[int, None]:
    """The indexes below `completions`, in order; a dict as an ordered set."""
    found: dict[int, None] = {}
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        start, end = number_in(first), number_in(last if dash else first)
        if start is not None and end is not None:
            found.update(dict.fromkeys(range(start, min(end, completions - 1) + 1)))
    return found


def text_of(indexes: Iterable[int]) -> str:
    """Runs of three or more become ranges."""
    parts: list[str] = []
    run: list[int] = []
    for one in (*sorted(indexes), None):
        if run and (one is None or one != run[-1] + 1):
            first, last = str(run[0]), str(run[-1])
            parts += [first] if len(run) == 1 else [first, last] if len(run) == 2 else [f"{first}-{last}"]
            run = []
        if one is not None:
            run.append(one)
    return ",".join(parts)


def success_rule(policy: SuccessPolicy | None, succeeded: Mapping[int, None], completions: int) -> str | None:
    """The message of the first success rule that is met."""
    for at, rule in enumerate(policy.rules if policy is not None else ()):
        wanted = indexes_in(rule.succeeded_indexes, completions)
        met = [one for one in succeeded if rule.succeeded_indexes is None or one in wanted]
        needed = len(wanted) if rule.succeeded_count is None else rule.succeeded_count
        if met and len(met) >= needed:
            return f"Matched rules at index {at}"
    return None
