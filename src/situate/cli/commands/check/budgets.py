"""Budgets that allow no disruption: a drain of any node with such a pod never finishes."""

from collections.abc import Iterator

import msgspec

from situate.cli.commands.check.input import CheckInput
from situate.cli.commands.check.rules import NO_DRAIN, Finding
from situate.cli.input.manifests import Manifest, at_path
from situate.core.model.labels import LabelSelector, Selector, SelectorError, parse_selector
from situate.core.reconcile.api_values import scaled_value
from situate.wire.errors import InputError


def check_budgets(read: CheckInput) -> Iterator[Finding]:
    for budget in read.budgets:
        space = budget.namespace or "default"
        subject = f"PodDisruptionBudget {space}/{budget.name}"
        selector = _selector(budget, subject)
        pods = sum(
            one.replicas
            for one in read.workloads
            if one.namespace == space and selector.matches(one.pod.metadata.labels)
        )
        problem = _problem(
            at_path(budget.body, "spec", "maxUnavailable"), at_path(budget.body, "spec", "minAvailable"), pods
        )
        if problem is not None:
            field, text, change = problem
            yield Finding(NO_DRAIN, subject, budget.file, f"spec.{field}", text, change)


def _selector(budget: Manifest, subject: str) -> Selector:
    try:
        return parse_selector(msgspec.convert(at_path(budget.body, "spec", "selector"), LabelSelector | None))
    except (msgspec.ValidationError, SelectorError) as error:
        raise InputError(str(error), file=budget.file, subject=subject, path="spec.selector") from None


def _problem(most: int | str | None, least: int | str | None, pods: int) -> tuple[str, str, str] | None:
    """Field, problem and change; None if a pod may be evicted, or no workload that was read has such pods."""
    if most is not None:
        if scaled_value(most, max(pods, 1), up=True) > 0:
            return None
        return "maxUnavailable", f"is {most}: none of its pods can ever be evicted", "set it to 1 or more"
    if least is None or not pods or scaled_value(least, pods, up=True) < pods:
        return None
    if least == "100%":
        return "minAvailable", "is 100%: none of its pods can ever be evicted", "set maxUnavailable to 1 instead"
    text = f"is {least}, and there are {pods}: none of its pods can ever be evicted"
    change = f"set it to {pods - 1} or less, or run more replicas" if pods > 1 else "run more replicas, or remove it"
    return "minAvailable", text, change
