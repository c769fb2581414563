"""Whether one node may have one pod, and why not. Pure.

The scheduler's plugins check the same for all nodes at once; a test compares the two. The ledger checks room and host
ports.

A bind is refused what a scheduler must not do. A pod that is created with a nodeName is refused only what a kubelet
would not run: cordons and NoSchedule taints do not apply.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from situate.core.model.node import Node
from situate.core.model.nodeselector import NodeSelector, matches
from situate.core.model.pod import Pod, PodSpec
from situate.core.model.tolerations import NO_EXECUTE, NO_SCHEDULE, Taint, any_tolerates

CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
NODE_TAINTS: Final = "node.kubernetes.io/"
"""The control plane sets these taints itself: cordons, pressure."""
CORDONED: Final = "it is unschedulable"
NOT_SELECTED: Final = "its labels do not have {}, which the pod's nodeSelector asks for"
NOT_MATCHED: Final = "it does not match the pod's required node affinity"
NOT_TOLERATED: Final = "it has the taint {}, which the pod does not tolerate"


def bind_refusals(pod: Pod, node: Node) -> list[str]:
    """Why this pod must not be bound to this node."""
    refusals = []
    tolerations = pod.spec.tolerations
    if node.spec.unschedulable and not any_tolerates(tolerations, CORDON):
        refusals.append(CORDONED)
    refusals.extend(_untolerated(pod, node, (NO_SCHEDULE, NO_EXECUTE)))
    refusals.extend(_unmatched(pod.spec, node))
    return refusals


def run_refusals(pod: Pod, node: Node) -> list[str]:
    """Why this pod, which names this node itself, cannot run there."""
    return [*_untolerated(pod, node, (NO_EXECUTE,)), *_unmatched(pod.spec, node)]


def drift_refusals(pod: Pod, node: Node) -> list[str]:
    """Why this pod, which runs there, would not be bound to this node again. Cordons and the taints that the control
    plane sets itself do not count: Kubernetes leaves running pods alone with them, and NoExecute has its own
    controller."""
    return [*_unmatched(pod.spec, node), *_untolerated(pod, node, (NO_SCHEDULE,), but=NODE_TAINTS)]


def _untolerated(pod: Pod, node: Node, effects: Iterable[str], *, but: str | None = None) -> list[str]:
    """`but`: taints whose keys begin with this do not count."""
    if not node.spec.taints:
        return []
    return [
        NOT_TOLERATED.format(_written(taint))
        for taint in node.spec.taints
        if taint.effect in effects
        and not (but is not None and taint.key.startswith(but))
        and not any_tolerates(pod.spec.tolerations, taint)
    ]


def _unmatched(spec: PodSpec, node: Node) -> list[str]:
    labels = node.metadata.labels
    refusals = [
        NOT_SELECTED.format(f"{key}={value}") for key, value in spec.node_selector.items() if labels.get(key) != value
    ]
    required = _required(spec)
    if required is not None and not matches(required, labels, node.metadata.name):
        refusals.append(NOT_MATCHED)
    return refusals


def _required(spec: PodSpec) -> NodeSelector | None:
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution


def _written(taint: Taint) -> str:
    """In the form of `kubectl taint`."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
