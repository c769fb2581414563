"""What a drain would move and where to: budgets respected, in waves, as `kubectl drain` goes about it.

The nodes are cordoned first. Then whoever may leave does, and looks for another node at once; what a budget does not
allow has to wait until those before it run elsewhere. A wave ends when nobody more may leave at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from situate.core.model.meta import key_of
from situate.core.model.pod import Pod
from situate.core.plan.allowances import Allowances
from situate.core.plan.ground import Ground
from situate.core.plan.movable import Fate, Judged, Rules
from situate.core.plan.settling import Settled, Settling


@dataclass(frozen=True, slots=True)
class Left:
    """A pod that the drain does not move, and why."""

    key: str
    node: str
    why: str


@dataclass(slots=True)
class Drained:
    """What a drain comes to. Pods are told in the order in which they leave."""

    nodes: tuple[str, ...]
    waves: list[list[Settled]] = field(default_factory=list)
    """Who leaves in each wave and where it goes; without a node, it leaves and finds none."""
    stay: list[Left] = field(default_factory=list)
    """The nodes' own pods, which nobody moves."""
    ended: list[Left] = field(default_factory=list)
    """Those that are deleted for good."""
    refused: list[Left] = field(default_factory=list)
    """Those that cannot leave: the drain would not end."""

    @property
    def homeless(self) -> list[Settled]:
        return [one for wave in self.waves for one in wave if not one.node]

    @property
    def complete(self) -> bool:
        return not self.refused and not self.homeless


def drain(ground: Ground, names: Sequence[str], rules: Rules) -> Drained:
    """Drain nodes on a ground; they stay drained there."""
    drained = Drained(tuple(names))
    allowances = Allowances(ground.cluster.objects.budgets.values())
    for name in names:
        ground.cordon(name)
    leaving: list[Pod] = []
    for name in names:
        for key in ground.on(name):
            pod = ground.pods[key]
            judged = rules.judge(pod)
            if judged.fate is Fate.MOVES:
                leaving.append(pod)
            else:
                _pass_over(ground, drained, pod, judged, allowances)
    while leaving:
        wave, leaving = _wave(ground, leaving, allowances)
        if not wave:
            break
        drained.waves.append(wave)
    drained.refused += [Left(key_of(pod.metadata), pod.spec.node_name, allowances.refusal(pod)) for pod in leaving]
    return drained


def _pass_over(ground: Ground, drained: Drained, pod: Pod, judged: Judged, allowances: Allowances) -> None:
    told = Left(key_of(pod.metadata), pod.spec.node_name, judged.why)
    if judged.fate is Fate.STAYS:
        drained.stay.append(told)
    elif judged.fate is Fate.REFUSED:
        drained.refused.append(told)
    elif refusal := allowances.refusal(pod):
        drained.refused.append(Left(told.key, told.node, refusal))
    else:
        allowances.spend(pod)
        ground.take(told.key)
        drained.ended.append(told)


def _wave(ground: Ground, leaving: Sequence[Pod], allowances: Allowances) -> tuple[list[Settled], list[Pod]]:
    """Who leaves now, with what becomes of it, and who has to wait. What was taken is given back to those who run."""
    wave: list[Settled] = []
    later: list[Pod] = []
    running: list[Pod] = []
    for pod in leaving:
        key = key_of(pod.metadata)
        if key not in ground.pods or ground.pods[key].spec.node_name != pod.spec.node_name:
            continue  # driven out meanwhile by one that is more important
        if allowances.refusal(pod):
            later.append(pod)
            continue
        allowances.spend(pod)
        ground.take(key)
        told = Settling(ground).settle([pod])
        wave += told
        running += [pod for one in told if one.key == key and one.node]
    for pod in running:
        allowances.give_back(pod)
    return wave, later
