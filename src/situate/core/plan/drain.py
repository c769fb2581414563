"""Simulates a drain within the budgets, in waves, like `kubectl drain`.

The drain cordons the nodes first. Then every pod that may leave is evicted and rescheduled at once; a pod that a budget
blocks waits until earlier ones run elsewhere. A wave ends when no more pods may leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.plan.disruptions import Allowances
from situate.core.plan.eviction_rules import DrainRules, EvictionOutcome, PodEviction
from situate.core.plan.rescheduling import Rescheduled, Rescheduler
from situate.core.plan.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class SkippedPod:
    """A pod that the drain does not move, and why."""

    key: str
    node: str
    why: str


@dataclass(slots=True)
class DrainResult:
    """The result of a drain, with pods in the order in which they leave."""

    nodes: tuple[str, ...]
    waves: list[list[Rescheduled]] = field(default_factory=list)
    """The pods of each wave and their new nodes; an empty node means unschedulable."""
    stay: list[SkippedPod] = field(default_factory=list)
    """The nodes' own pods, which stay."""
    ended: list[SkippedPod] = field(default_factory=list)
    """Pods that are deleted for good."""
    refused: list[SkippedPod] = field(default_factory=list)
    """Pods that cannot leave: the drain would not finish."""

    @property
    def unschedulable(self) -> list[Rescheduled]:
        return [one for wave in self.waves for one in wave if not one.node]

    @property
    def complete(self) -> bool:
        return not self.refused and not self.unschedulable


def drain(sandbox: Sandbox, names: Sequence[str], rules: DrainRules) -> DrainResult:
    """Drain nodes in a sandbox; they stay drained there."""
    drained = DrainResult(tuple(names))
    allowances = Allowances(sandbox.cluster.objects.budgets.values())
    for name in names:
        sandbox.cordon(name)
    leaving: list[Pod] = []
    for name in names:
        for key in sandbox.pods_on(name):
            pod = sandbox.pods[key]
            eviction = rules.judge(pod)
            if eviction.outcome is EvictionOutcome.MOVES:
                leaving.append(pod)
            else:
                _pass_over(sandbox, drained, pod, eviction, allowances)
    while leaving:
        wave, leaving = _wave(sandbox, leaving, allowances)
        if not wave:
            break
        drained.waves.append(wave)
    drained.refused += [
        SkippedPod(key_of(pod.metadata), pod.spec.node_name, allowances.refusal(pod)) for pod in leaving
    ]
    return drained


def _pass_over(sandbox: Sandbox, drained: DrainResult, pod: Pod, eviction: PodEviction, allowances: Allowances) -> None:
    skipped = SkippedPod(key_of(pod.metadata), pod.spec.node_name, eviction.why)
    if eviction.outcome is EvictionOutcome.STAYS:
        drained.stay.append(skipped)
    elif eviction.outcome is EvictionOutcome.REFUSED:
        drained.refused.append(skipped)
    elif refusal := allowances.refusal(pod):
        drained.refused.append(SkippedPod(skipped.key, skipped.node, refusal))
    else:
        allowances.use(pod)
        sandbox.evict(skipped.key)
        drained.ended.append(skipped)


def _wave(sandbox: Sandbox, leaving: Sequence[Pod], allowances: Allowances) -> tuple[list[Rescheduled], list[Pod]]:
    """The pods that leave now, rescheduled, and those that must wait. Pods that run again free their budget."""
    wave: list[Rescheduled] = []
    later: list[Pod] = []
    running: list[Pod] = []
    for pod in leaving:
        key = key_of(pod.metadata)
        if key not in sandbox.pods or sandbox.pods[key].spec.node_name != pod.spec.node_name:
            continue  # preempted meanwhile by a pod with higher priority
        if allowances.refusal(pod):
            later.append(pod)
            continue
        allowances.use(pod)
        sandbox.evict(key)
        rescheduled = Rescheduler(sandbox).reschedule([pod])
        wave += rescheduled
        running += [pod for one in rescheduled if one.key == key and one.node]
    for pod in running:
        allowances.give_back(pod)
    return wave, later
