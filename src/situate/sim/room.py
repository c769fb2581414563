"""The room on nodes, recomputed from pods without any of the scheduler's sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.requests import allocatable, pod_requests
from situate.core.state.cluster import FINISHED_PHASES
from situate.sim.devices.drawing import ACCELERATOR


def overfull(node: Node, pods: Sequence[Pod], asked: Pod, unwatched: frozenset[str] = frozenset()) -> str:
    """The resources of the pod that the node has too little of for all pods; not those in `unwatched`."""
    room = allocatable(node)
    requests = [pod_requests(pod) for pod in pods]
    sums: dict[str, tuple[int, int]] = {
        "cpu": (sum(one.milli_cpu for one in requests), room.milli_cpu),
        "memory": (sum(one.memory for one in requests), room.memory),
        "pods": (len(pods), room.pods),
    }
    for name in dict.fromkeys(name for one in requests for name in one.scalar):
        sums[name] = (sum(one.scalar.get(name, 0) for one in requests), room.scalar.get(name, 0))
    own = pod_requests(asked)
    wanted = {"cpu": own.milli_cpu, "memory": own.memory, "pods": 1, **own.scalar}
    return ", ".join(
        f"{total} of {most} {name}"
        for name, (total, most) in sums.items()
        if total > most and wanted.get(name) and name not in unwatched and not (name == ACCELERATOR and most == 0)
    )


def running_on(node: str, pods: Iterable[Pod]) -> list[Pod]:
    """The pods that use resources of a node."""
    return [pod for pod in pods if pod.spec.node_name == node and pod.status.phase not in FINISHED_PHASES]
