"""What a node says of itself when it comes: the Node object, hollow or of this machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from situate import __version__
from situate.agent.control_plane import AcquiredLease, LeaseRenewal
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT, AgentReport
from situate.wire.bodies import seconds_time

__all__ = [
    "LEASES",
    "NodeShape",
    "hollow_names",
    "hollow_shapes",
    "lease_body",
    "node_body",
    "taken_after",
    "with_own",
    "with_report",
]

LEASES: Final = "kube-node-lease"
"""The namespace of the nodes' leases."""
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"

_CONDITIONS: Final = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "the node is ready"),
)


@dataclass(frozen=True, slots=True)
class NodeShape:
    """How large a node is, and how it is labelled."""

    cpu: str = "4"
    memory: str = "16Gi"
    pods: int = 110
    extended: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def hollow_names(count: int, prefix: str = "node") -> list[str]:
    width = max(1, len(str(count)))
    return [f"{prefix}-{number:0{width}d}" for number in range(1, count + 1)]


def hollow_shapes(count: int, zones: int, shape: NodeShape, prefix: str = "node") -> list[tuple[str, NodeShape]]:
    """So many nodes of one shape, dealt out to zones, each with its name."""
    return [
        (name, replace(shape, labels={**shape.labels, ZONE: f"zone-{number % zones + 1}"}) if zones > 1 else shape)
        for number, name in enumerate(hollow_names(count, prefix))
    ]


def node_body(name: str, shape: NodeShape, now_ns: int, address: str) -> dict[str, Any]:
    now = seconds_time(now_ns)
    room = {"cpu": shape.cpu, "memory": shape.memory, "pods": str(shape.pods), **shape.extended}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                HOSTNAME: name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                **shape.labels,
            },
        },
        "spec": {},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
                for kind, status, reason, message in _CONDITIONS
            ],
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": f"situate-{__version__}",
                "osImage": "hollow",
                "kernelVersion": "",
                "containerRuntimeVersion": "hollow://1",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kubeProxyVersion": "",
            },
        },
    }


def lease_body(name: str, renewal: LeaseRenewal, now: str) -> dict[str, Any]:
    annotations = {"annotations": {ACKNOWLEDGED: str(renewal.acknowledged)}} if renewal.acknowledged else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASES, **annotations},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": renewal.lease_s,
            "leaseTransitions": renewal.term,
            "renewTime": now,
        },
    }


def taken_after(spec: Mapping[str, Any], least: int) -> AcquiredLease:
    """The next term of a lease like this."""
    before = spec.get("leaseTransitions", 0)
    return AcquiredLease(max(least, before + 1), before, spec.get("leaseDurationSeconds", 0))


def with_report(body: Mapping[str, Any], report: AgentReport | None) -> dict[str, Any]:
    """The object, with the report that it is from."""
    if report is None:
        return dict(body)
    meta = body["metadata"]
    return {**body, "metadata": {**meta, "annotations": {**meta.get("annotations", {}), REPORT: str(report)}}}


def with_own(found: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """A node's status with what its agent says of it: conditions that are others' stay."""
    own = {one["type"] for one in said.get("conditions", ())}
    others = [one for one in found.get("conditions", ()) if one["type"] not in own]
    return {**found, **said, "conditions": [*others, *said.get("conditions", ())]}
