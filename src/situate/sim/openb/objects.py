"""Nodes and pods of the trace as Kubernetes objects."""

from __future__ import annotations

from typing import Final

from situate.core.model.annotations import GPU_MILLI
from situate.core.model.gpu import DEVICE_MILLI, GPU_RESOURCE
from situate.core.model.meta import ObjectMeta
from situate.core.model.node import Node, NodeStatus
from situate.core.model.nodeselector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from situate.core.model.pod import Affinity, Container, NodeAffinitySpec, Pod, PodSpec, ResourceRequirements
from situate.sim.openb.trace_files import TraceNode, TraceRequest

MODEL_LABEL: Final = "alibabacloud.com/gpu-card-model"
"""The authors' label."""
TOTAL_RESOURCE: Final = "alibabacloud.com/gpu-milli"
"""Thousandths of GPUs, shares and whole ones together, for policies that score sums. It rejects no pod: what fits on
devices fits the sum."""
NAMESPACE: Final = "openb"
PODS: Final = "1000"
"""The trace has no pod limit."""


def node_object(node: TraceNode) -> Node:
    room = {"cpu": f"{node.milli_cpu}m", "memory": f"{node.memory_mib}Mi", "pods": PODS}
    room |= {GPU_RESOURCE: str(node.gpus), TOTAL_RESOURCE: str(node.gpus * DEVICE_MILLI)}
    labels = {MODEL_LABEL: node.model} if node.model else {}
    return Node(metadata=ObjectMeta(name=node.name, labels=labels), status=NodeStatus(allocatable=room))


def pod_object(name: str, ask: TraceRequest) -> Pod:
    asked = {"cpu": f"{ask.milli_cpu}m", "memory": f"{ask.memory_mib}Mi"}
    notes = {}
    if ask.demand:
        asked[TOTAL_RESOURCE] = str(ask.demand)
    if 0 < ask.demand < DEVICE_MILLI:
        notes[GPU_MILLI] = str(ask.gpu_milli)
    elif ask.gpus:
        asked[GPU_RESOURCE] = str(ask.gpus)
    return Pod(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=name, annotations=notes),
        spec=PodSpec(
            containers=(Container(name="main", resources=ResourceRequirements(requests=asked)),),
            affinity=_affinity(ask.models),
        ),
    )


def _affinity(models: tuple[str, ...]) -> Affinity | None:
    if not models:
        return None
    one_of = NodeSelectorRequirement(key=MODEL_LABEL, operator="In", values=models)
    term = NodeSelectorTerm(match_expressions=(one_of,))
    required = NodeSelector(node_selector_terms=(term,))
    return Affinity(node_affinity=NodeAffinitySpec(required_during_scheduling_ignored_during_execution=required))
