"""How fast the engine steps: `python bench/engine.py KIND [NODES] [PODS]`, one line of JSON.

    basic        pods of one template, all of which fit
    confirmed    the same, and every pod is seen bound afterwards, as in a real cluster
    refused      the same, but every tenth pod fits nowhere: it is too large for any node, or asks for a label that no
                 node has, or for more than is left where there is nobody to evict
    preempt      full nodes, four pods on each, and preemptors of one class
    preempters   the same, and every preemptor is a class of its own

Reading and building objects is not timed; everything else is: folding changes in, waking, deciding, preempting, and
the list of effects. The world answers every bind in the next step.
"""

from __future__ import annotations

import gc
import json
import resource
import sys
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any

import msgspec
import workloads

from situate.core.changes import BindDone, Change, NodeSeen, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.effects import Bind, Evict, SetCondition
from situate.core.engine.engine import Engine
from situate.core.model.defaults import defaulted
from situate.core.model.node import Node
from situate.core.model.pod import Pod

BATCH = 1_000
"""How many pods come between two steps."""
STEP_MS = 10
PODS_A_NODE = 4
"""How many running pods fill a node, for preemption."""

Object = dict[str, Any]


def as_pod(made: Object) -> Pod:
    return defaulted(msgspec.convert(made, Pod))


def running(at: int, nodes: int, cpu: str) -> Object:
    made = workloads.pod(f"running-{at}", cpu=cpu, memory="10Gi")
    made["spec"].update(nodeName=f"node-{at % nodes}", priority=0)
    made["status"] = {"phase": "Running", "startTime": f"2026-01-01T00:{at // 60 % 60:02}:{at % 60:02}Z"}
    return made


def unplaceable(at: int) -> Object:
    """One of three kinds of pods that fit nowhere."""
    made = workloads.pod(f"refused-{at}", cpu=("64", "1", "32")[at % 3], memory="1Gi", color="green")
    if at % 3 == 1:
        made["spec"]["nodeSelector"] = {"disktype": "tape"}
    return made


def preemptor(at: int, *, alone: bool) -> Object:
    made = workloads.pod(f"preemptor-{at}", cpu=f"{7_000 + at % 1_000 * alone}m", memory="10Gi", color="red")
    made["spec"]["priority"] = 100
    return made


def basic(count: int) -> Iterator[Object]:
    return (workloads.basic(at) for at in range(count))


def refused(count: int) -> Iterator[Object]:
    return (unplaceable(at // 10) if at % 10 == 9 else workloads.basic(at) for at in range(count))


def preempt(count: int) -> Iterator[Object]:
    return (preemptor(at, alone=False) for at in range(count))


def preempters(count: int) -> Iterator[Object]:
    return (preemptor(at, alone=True) for at in range(count))


KINDS: dict[str, Callable[[int], Iterator[Object]]] = {
    "basic": basic, "confirmed": basic, "refused": refused, "preempt": preempt, "preempters": preempters,
}  # fmt: skip


def started(kind: str, nodes: int) -> Engine:
    """An engine that knows the nodes and what runs on them."""
    engine = Engine(default_configuration())
    engine.step(0, [NodeSeen(defaulted(msgspec.convert(workloads.node(at), Node))) for at in range(nodes)])
    each, cpu = (PODS_A_NODE, "8") if kind.startswith("preempt") else (1, "1")
    if kind not in ("basic", "confirmed"):
        engine.step(0, [PodSeen(as_pod(running(at, nodes, cpu))) for at in range(nodes * each)])
    return engine


def measure(kind: str, nodes: int, count: int) -> dict[str, float]:
    engine = started(kind, nodes)
    pods = [as_pod(made) for made in KINDS[kind](count)]
    bound = {} if kind != "confirmed" else {pod.metadata.name: pod for pod in pods}
    gc.collect()
    gc.freeze()  # what was read stays: looking through it again and again would only take time
    wall = cpu = 0.0
    counts = {Bind: 0, SetCondition: 0, Evict: 0}
    now = STEP_MS
    answers: list[Change] = []
    for begin in range(0, count + 2 * BATCH, BATCH):  # the last steps have answers alone to hear
        changes = [*answers, *(PodSeen(pod) for pod in pods[begin : begin + BATCH])]
        started_at, cpu_at = perf_counter(), process_time()
        effects = engine.step(now, changes)
        while engine.next_due_ms(now) == now:  # a step refuses a limited number of pods
            effects += engine.step(now, [])
        wall, cpu = wall + perf_counter() - started_at, cpu + process_time() - cpu_at
        answers = []
        for effect in effects:
            if type(effect) in counts:
                counts[type(effect)] += 1
            if isinstance(effect, Bind):
                answers.append(BindDone(effect.pod, effect.attempt))
                if bound:
                    pod = bound[effect.pod.name]
                    spec = msgspec.structs.replace(pod.spec, node_name=effect.node)
                    answers.append(PodSeen(msgspec.structs.replace(pod, spec=spec)))
        now += STEP_MS
    return {
        "pods": count,
        "bound": counts[Bind],
        "refusals": counts[SetCondition],
        "evictions": counts[Evict],
        "seconds": round(wall, 4),
        "pods_per_s": round(count / wall),
        "pods_per_cpu_s": round(count / cpu),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    arguments = sys.argv[1:]
    if not 1 <= len(arguments) <= 3 or arguments[0] not in KINDS or not all(word.isdigit() for word in arguments[1:]):
        sys.exit(f"usage: engine.py {{{','.join(KINDS)}}} [NODES] [PODS]")
    kind = arguments[0]
    sizes = [int(word) for word in arguments[1:]]
    nodes = sizes[0] if sizes else 5_000
    pods = sizes[1] if len(sizes) > 1 else 1_000 if kind.startswith("preempt") else 20_000
    print(json.dumps(measure(kind, nodes, pods)))


if __name__ == "__main__":
    main()
