"""The victims on a node: all pods of lower priority, except those that can stay."""

from __future__ import annotations

from collections.abc import Sequence

from situate.core.preempt.budgets import Budgets
from situate.core.preempt.evictable import Evictable, by_importance
from situate.core.preempt.ranking import Candidate
from situate.core.preempt.trial import Texts, Trial, may_stay, refusal
from situate.core.state.classes import PodClass


def victims_on(trial: Trial, budgets: Budgets, row: int) -> Candidate | Texts:
    """Which pods to evict from a node that is not unresolvable; or why the pod would not fit even then.

    First all pods of lower priority go. Then they are reprieved one by one, first those that a disruption budget
    protects, then the others, each by importance. A pod that cannot stay beside the preemptor and those already
    reprieved is a victim. There is none only if a filter contradicts itself.
    """
    lower = trial.lower.on(row)
    if (texts := refusal(trial, row, lower)) is not None:
        return texts
    protected, others = budgets.split(lower)
    room = trial.room_at(row)
    gone = {pod.row: pod for pod in lower}
    protected_victims = _not_reprieved(trial, row, protected, room, gone)
    victims = protected_victims + _not_reprieved(trial, row, others, room, gone)
    if protected and others:
        victims = by_importance(victims, unstarted_in_order=trial.lower.unstarted_in_order, order=lower)
    return Candidate(row, tuple(victims), len(protected_victims))


def _not_reprieved(
    trial: Trial, row: int, pods: Sequence[Evictable], room: dict[int, int], gone: dict[int, Evictable]
) -> list[Evictable]:
    """Those of these pods that must go. The others are removed from `gone`, and their requests from `room`."""
    victims = []
    for pod in pods:
        if not _has_room(pod.kind, room):
            victims.append(pod)
            continue
        if trial.unsettled:
            del gone[pod.row]
            if not may_stay(trial, row, pod, list(gone.values())):
                gone[pod.row] = pod
                victims.append(pod)
                continue
        for column, amount in pod.kind.takes:
            if column in room:
                room[column] -= amount
    return victims


def _has_room(kind: PodClass, room: dict[int, int]) -> bool:
    for column, amount in kind.takes:  # noqa: SIM110 - asked of every pod; a generator costs more than the comparison
        if column in room and room[column] < amount:
            return False
    return True
