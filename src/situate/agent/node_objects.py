"""Node and Lease objects, as agents write them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from situate import __version__
from situate.agent.control_plane import AcquiredLease, LeaseLostError, LeaseRenewal
from situate.core.reconcile.nodes.fencing import PROMISE
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT, AgentReport
from situate.wire.bodies import seconds_time

LEASES: Final = "kube-node-lease"
"""The namespace of the nodes' leases."""
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"

_HOLLOW_CONDITIONS: Final = (
    ("MemoryPressure", False, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", False, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", False, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", True, "KubeletReady", "the node is ready"),
)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """The size and the labels of a hollow node."""

    cpu: str = "4"
    memory: str = "16Gi"
    pods: int = 110
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def hollow_names(count: int, prefix: str = "node") -> list[str]:
    width = max(1, len(str(count)))
    return [f"{prefix}-{number:0{width}d}" for number in range(1, count + 1)]


def hollow_shapes(count: int, zones: int, shape: NodeShape, prefix: str = "node") -> list[tuple[str, NodeShape]]:
    """Named nodes of one shape, spread evenly over zones."""
    return [
        (name, replace(shape, labels={**shape.labels, ZONE: f"zone-{number % zones + 1}"}) if zones > 1 else shape)
        for number, name in enumerate(hollow_names(count, prefix))
    ]


def hollow_node(name: str, shape: NodeShape, now_ns: int, address: str) -> dict[str, Any]:
    now = seconds_time(now_ns)
    resources = {"cpu": shape.cpu, "memory": shape.memory, "pods": str(shape.pods), **shape.extended}
    info = dict.fromkeys(("kernelVersion", "machineID", "systemUUID", "bootID", "kubeProxyVersion"), "")
    info |= {"architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": f"situate-{__version__}"}
    info |= {"osImage": "hollow", "containerRuntimeVersion": "hollow://1"}
    conditions = [node_condition({}, *one, now) for one in _HOLLOW_CONDITIONS]
    status = {"capacity": resources, "allocatable": resources, "conditions": conditions}
    return node_object(name, address, info, shape.labels, status)


def node_object(
    name: str, address: str, info: Mapping[str, str], labels: Mapping[str, str], status: Mapping[str, Any]
) -> dict[str, Any]:
    own = {HOSTNAME: name, "kubernetes.io/os": info["operatingSystem"], "kubernetes.io/arch": info["architecture"]}
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**own, **labels}},
        "spec": {},
        "status": {**status, "addresses": addresses, "nodeInfo": dict(info)},
    }


def node_condition(
    before: Mapping[str, Mapping[str, Any]], kind: str, value: bool, reason: str, message: str, now: str
) -> dict[str, Any]:
    """`before`: the conditions as last reported, by type."""
    status, old = "True" if value else "False", before.get(kind, {})
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message or reason,
        "lastHeartbeatTime": now,
        "lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == status else now,
    }


def lease_body(name: str, renewal: LeaseRenewal, now: str) -> dict[str, Any]:
    annotations = lease_annotations({}, renewal, now)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASES, **({"annotations": annotations} if annotations else {})},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": renewal.lease_s,
            "leaseTransitions": renewal.term,
            "renewTime": now,
        },
    }


def lease_annotations(held: Mapping[str, str], renewal: LeaseRenewal, now: str) -> dict[str, str]:
    """The annotations of a lease after a renewal with the renewTime `now`."""
    annotations = {key: value for key, value in held.items() if key != PROMISE}
    if renewal.acknowledged:
        annotations[ACKNOWLEDGED] = str(renewal.acknowledged)
    if renewal.fenced:
        annotations[PROMISE] = now
    return annotations


def acquisition(acquired: AcquiredLease, lease_s: int, least: int, *, fenced: bool) -> LeaseRenewal:
    """The first write of a term. An agent cannot promise anything for another one that had the lease before."""
    return LeaseRenewal(acquired.term, lease_s, fenced=fenced and acquired.before in (0, least - 1))


def acquired_after(spec: Mapping[str, Any], least: int) -> AcquiredLease:
    """The next term of a lease with this spec."""
    before = spec.get("leaseTransitions", 0)
    return AcquiredLease(max(least, before + 1), before, spec.get("leaseDurationSeconds", 0))


def check_term(node: str, spec: Mapping[str, Any], renewal: LeaseRenewal) -> None:
    """Raises LeaseLostError if the lease is in another term than the renewal."""
    term = spec.get("leaseTransitions", 0)
    if term != renewal.term:
        raise LeaseLostError(f"the lease of node {node} is in term {term}, and was acquired in {renewal.term}")


def with_report(body: Mapping[str, Any], report: AgentReport | None) -> dict[str, Any]:
    """The object with its report in an annotation."""
    if report is None:
        return dict(body)
    meta = body["metadata"]
    return {**body, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), REPORT: str(report)}}}


def with_own(found: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A node's status updated with its agent's own fields. Conditions of other writers stay."""
    conditions: Sequence[Mapping[str, Any]] = own.get("conditions", ())
    kinds = {one["type"] for one in conditions}
    others = [one for one in found.get("conditions", ()) if one["type"] not in kinds]
    return {**found, **own, "conditions": [*others, *conditions]}


def token_request(pod: dict[str, Any], audience: str, life_s: int) -> dict[str, Any]:
    """A request for a token of a pod's ServiceAccount, valid while the pod exists."""
    meta = pod["metadata"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            **({"audiences": [audience]} if audience else {}),
            "expirationSeconds": life_s,
            "boundObjectRef": bound,
        },
    }
