"""When pods arrive: pending pods of the snapshot, pods of workloads, all at once or one by one, and pods of a trace."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from situate.core.changes import Millis
from situate.core.model.named import NamedObject
from situate.core.model.pod import Pod
from situate.sim.whatif.distributions import ArrivalRate, Distribution, draw
from situate.sim.whatif.script import Arrival, PodSet, Script, owner_name
from situate.sim.whatif.trace import Trace


@dataclass(frozen=True, slots=True)
class ArrivalOptions:
    """The defaults for pods that do not set their own."""

    rate: ArrivalRate | None = None
    """None: all pods of workloads at once."""
    pods: int | None = None
    """None: as many as the workloads have."""
    duration: Distribution | None = None
    """How long pods run; None: for ever."""


def with_duration(group: PodSet, duration: Distribution | None) -> PodSet:
    """Set how long the pods run, unless they set it themselves or are meant to run for ever."""
    return (
        group if group.duration is not None or duration is None or group.lasting else replace(group, duration=duration)
    )


def script_of(
    waiting: Sequence[Pod], groups: Sequence[PodSet], named: Sequence[NamedObject], coming: ArrivalOptions, seed: int
) -> Script:
    """Without a trace. Raises ValueError if pods are to arrive and there is no workload."""
    script = Script(groups=list(groups), named=list(named), seed=seed)
    known = {group.name: at for at, group in enumerate(script.groups)}
    numbers: dict[int, int] = {}
    for pod in waiting:
        name = owner_name(pod)
        if name not in known:
            known[name] = len(script.groups)
            script.groups.append(PodSet(name, partial(_again, pod)))
        at = known[name]
        numbers[at] = number = numbers.get(at, -1) + 1
        script.arrivals.append(Arrival(0, pod, at, number, None))
    if coming.rate is None:
        for at, group in enumerate(groups):
            script.arrivals += [_arrival(script, at, number, 0) for number in range(group.first)]
        return script
    drawn = [at for at, group in enumerate(groups) if not group.daemon and group.total]
    for at, group in enumerate(groups):
        if group.daemon:
            script.arrivals += [_arrival(script, at, number, 0) for number in range(group.first)]
    script.arrivals += _drawn(script, drawn, coming.rate, coming.pods)
    # The arrivals are drawn: no pod follows another one.
    script.groups[: len(groups)] = [replace(group, total=0) for group in groups]
    return script


def add_trace(script: Script, trace: Trace) -> None:
    """The trace's sets come after the script's; at equal times the script goes first."""
    script.groups += trace.groups
    script.arrivals = sorted([*script.arrivals, *trace.arrivals], key=lambda one: one.at_ms)
    script.deletions = sorted([*script.deletions, *trace.deletions], key=lambda one: one.at_ms)


def _again(pod: Pod, number: int) -> Pod:
    return pod


def _arrival(script: Script, at: int, number: int, when: Millis) -> Arrival:
    group = script.groups[at]
    pod = group.member(number)
    runs = None if group.duration is None else group.duration.at(draw(script.seed, "runs", pod.metadata.uid))
    return Arrival(when, pod, at, number, runs)


def _drawn(script: Script, drawn: Sequence[int], rate: ArrivalRate, pods: int | None) -> list[Arrival]:
    """Draw workloads by their number of pods. Without `pods`, all their pods in random order."""
    weights = [script.groups[at].total for at in drawn]
    order: list[int] = []
    if pods is None:
        order = [at for at, weight in zip(drawn, weights, strict=True) for _ in range(weight)]
        for last in range(len(order) - 1, 0, -1):
            other = int(draw(script.seed, "order", last) * (last + 1))
            order[last], order[other] = order[other], order[last]
    else:
        if not drawn:
            raise ValueError("there is no workload to draw pods from")
        bounds = list(accumulate(weights))
        for number in range(pods):
            lot = draw(script.seed, "which", number) * bounds[-1]
            order.append(drawn[bisect_right(bounds, lot)])
    made = dict.fromkeys(drawn, 0)
    arrivals, clock = [], 0.0
    for number, at in enumerate(order):
        clock += rate.after(draw(script.seed, "gap", number))
        arrivals.append(_arrival(script, at, made[at], int(clock)))
        made[at] += 1
    return arrivals
