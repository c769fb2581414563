"""Budgets that let nobody go: a drain of any node with such a pod waits for ever."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from situate.cli.commands.check.rules import NO_DRAIN, Finding
from situate.cli.input.workloads import Budget, Checked
from situate.core.model.labels import LabelSelector, Selector, SelectorError, parse_selector
from situate.core.reconcile.api_values import scaled_value
from situate.wire.errors import InputError


def check_budgets(read: Checked) -> Iterator[Finding]:
    for budget in read.budgets:
        selector = _selector(budget)
        covered = [
            one
            for one in read.workloads
            if one.namespace == budget.namespace and selector.matches(one.pod.metadata.labels)
        ]
        total = sum(one.replicas for one in covered)
        problem = _problem(budget, total)
        if problem is not None:
            field, told, change = problem
            subject = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
            yield Finding(NO_DRAIN, subject, budget.file, f"spec.{field}", told, change)


def _selector(budget: Budget) -> Selector:
    try:
        return parse_selector(msgspec.convert(budget.selector, LabelSelector | None))
    except (msgspec.ValidationError, SelectorError) as error:
        subject = f"PodDisruptionBudget {budget.namespace}/{budget.name}"
        raise InputError(str(error), file=budget.file, subject=subject, path="spec.selector") from None


def _problem(budget: Budget, pods: int) -> tuple[str, str, str] | None:
    """Field, problem and change; None if somebody may go, or the budget speaks of nobody that was read."""
    if budget.max_unavailable is not None:
        if scaled_value(budget.max_unavailable, max(pods, 1), up=True) > 0:
            return None
        told = f"is {budget.max_unavailable}: no pod of it may ever be evicted"
        return "maxUnavailable", told, "set it to 1 or more"
    least = budget.min_available
    if least is None or not pods or scaled_value(least, pods, up=True) < pods:
        return None
    if least == "100%":
        return "minAvailable", "is 100%: no pod of it may ever be evicted", "set maxUnavailable to 1 instead"
    told = f"is {least}, and there are {pods}: no pod of it may ever be evicted"
    change = f"set it to {pods - 1} or less, or run more replicas" if pods > 1 else "run more replicas, or remove it"
    return "minAvailable", told, change
