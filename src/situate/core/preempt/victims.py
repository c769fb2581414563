"""Who must leave a node: everybody of lower priority, but for those whose staying does no harm."""

from __future__ import annotations

from collections.abc import Sequence

from situate.core.preempt.budgets import Budgets
from situate.core.preempt.importance import by_importance
from situate.core.preempt.ranking import Candidate
from situate.core.preempt.trial import Texts, Trial, fits, refusal
from situate.core.state.classes import PodClass
from situate.core.state.pods import BoundPod


def victims_on(trial: Trial, budgets: Budgets, row: int) -> Candidate | Texts:
    """Whom to evict from a node that is not hopeless; or why the pod would not fit even then.

    First all pods of lower priority go. Then they are reprieved one by one, the most important first, but before all
    others those that a disruption budget protects; who cannot stay beside the pod and those already reprieved is a
    victim. That there is none is possible only if a filter contradicts itself.
    """
    lower = [pod for pod in trial.view.pods_on(row) if pod.kind.priority < trial.pod.priority]
    if trial.asked_again:
        texts = refusal(trial, trial.view.without(lower).at(row))
        if texts is not None:
            return texts
    protected, others = budgets.split(by_importance(lower))
    room = trial.room_at(row)
    gone = {pod.row: pod for pod in lower}
    protected_victims = _not_reprieved(trial, row, protected, room, gone)
    victims = protected_victims + _not_reprieved(trial, row, others, room, gone)
    if protected and others:
        victims = by_importance(victims)
    return Candidate(row, tuple(victims), len(protected_victims))


def _not_reprieved(
    trial: Trial, row: int, pods: Sequence[BoundPod], room: dict[int, int], gone: dict[int, BoundPod]
) -> list[BoundPod]:
    """Those of these pods that must go. Who need not is taken out of `gone`, and what it asks for out of `room`."""
    victims = []
    for pod in pods:
        if _may_stay(trial, row, pod, room, gone):
            del gone[pod.row]
            for column, amount in pod.kind.takes:
                if column in room:
                    room[column] -= amount
        else:
            victims.append(pod)
    return victims


def _may_stay(trial: Trial, row: int, pod: BoundPod, room: dict[int, int], gone: dict[int, BoundPod]) -> bool:
    if not _has_room(pod.kind, room):
        return False
    if not trial.asked_again:
        return True
    # An overlay frees a host port when one of its holders goes, so it cannot tell that another one came back.
    if trial.holds_wanted_port(pod.kind):
        return False
    return fits(trial, trial.view.without([one for one in gone.values() if one is not pod]).at(row))


def _has_room(kind: PodClass, room: dict[int, int]) -> bool:
    for column, amount in kind.takes:  # noqa: SIM110 - asked of every pod; a generator costs more than the comparison
        if column in room and room[column] < amount:
            return False
    return True
