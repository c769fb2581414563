"""Which nodes a DaemonSet is eligible for, and how its pods are pinned to them."""

from typing import Any

import msgspec

from situate.core.model.apps import DaemonSet
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.nodeselector import METADATA_NAME, NodeSelector, matches
from situate.core.model.stored import Raw
from situate.core.model.tolerations import NO_EXECUTE, NO_SCHEDULE, Toleration, any_tolerates

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TAINTS = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_NO_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class Fit(msgspec.Struct, frozen=True):
    """`runs`: the node should have a pod. `stays`: an existing pod may stay."""

    runs: bool
    stays: bool


class _Wishes(msgspec.Struct, frozen=True):
    node_name: str
    node_selector: dict[str, str]
    required: NodeSelector | None
    tolerations: tuple[Toleration, ...]


def _added(spec: Raw) -> list[dict[str, Any]]:
    """The tolerations that every DaemonSet pod gets."""
    keys = (*_TAINTS, _NO_NETWORK) if spec.get("hostNetwork") else _TAINTS
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in keys]


def _tolerations(spec: Raw) -> list[dict[str, Any]]:
    held = list(spec.get("tolerations") or ())
    return [*held, *(one for one in _added(spec) if one not in held)]


def _wishes(one: DaemonSet) -> _Wishes:
    spec = one.spec.template.spec
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED)
    return _Wishes(
        spec.get("nodeName") or "",
        dict(spec.get("nodeSelector") or {}),
        None if affinity is None else msgspec.convert(affinity, NodeSelector),
        msgspec.convert(_tolerations(spec), tuple[Toleration, ...]),
    )


def fit(one: DaemonSet, nodes: list[ManagedNode]) -> dict[str, Fit]:
    """By node name. NoSchedule keeps new pods away but lets existing ones stay."""
    wishes = _wishes(one)
    return {node.metadata.name: _fit(wishes, node) for node in nodes}


def _fit(wishes: _Wishes, node: ManagedNode) -> Fit:
    name, labels = node.metadata.name, node.metadata.labels
    if wishes.node_name not in ("", name) or not wishes.node_selector.items() <= labels.items():
        return Fit(False, False)
    if wishes.required is not None and not matches(wishes.required, labels, name):
        return Fit(False, False)
    against = [taint.effect for taint in node.spec.taints if not any_tolerates(wishes.tolerations, taint)]
    return Fit(NO_SCHEDULE not in against and NO_EXECUTE not in against, NO_EXECUTE not in against)


def node_of(pod: ManagedPod) -> str:
    """The node that a pod is bound or pinned to."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = (pod.spec.affinity.get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == METADATA_NAME and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def pinned_spec(one: DaemonSet, node: str) -> dict[str, Any]:
    """The spec fields that pin a pod to a node by affinity; the scheduler still places it."""
    spec = one.spec.template.spec
    affinity = dict(spec.get("affinity") or {})
    own = {"matchFields": [{"key": METADATA_NAME, "operator": "In", "values": [node]}]}
    affinity["nodeAffinity"] = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [own]}}
    return {"affinity": affinity, "tolerations": _tolerations(spec)}
