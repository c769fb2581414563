"""The columns of each resource's table, one line a resource. Names, types and order are kube-apiserver's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["COLUMNS", "PLAIN"]

# `group/plural: column, column`. Before a name `+` is for a column that only `-o wide` shows; after it `#` is an
# integer, `?` a boolean, `@` a date and `!` a name. `=` is as another resource.
_TABLE: Final = """
/configmaps: Name!, Data, Age
/endpoints: Name!, Endpoints, Age
/events: Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name!
/namespaces: Name!, Status, Age
/nodes: Name!, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime
/persistentvolumeclaims: Name!, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, \
+VolumeMode
/persistentvolumes: Name!, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, \
VolumeAttributesClass, Reason, Age, +VolumeMode
/pods: Name!, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates
/podtemplates: Name!, Containers, Images, Pod Labels
/replicationcontrollers: Name!, Desired#, Current#, Ready#, Age, +Containers, +Images, +Selector
/resourcequotas: Name!, Request, Limit, Age
/secrets: Name!, Type, Data, Age
/serviceaccounts: Name!, Age
/services: Name!, Type, Cluster-IP, External-IP, Port(s), Age, +Selector
apps/controllerrevisions: Name!, Controller, Revision, Age
apps/daemonsets: Name!, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age, +Containers, +Images, \
+Selector
apps/deployments: Name!, Ready, Up-to-date, Available, Age, +Containers, +Images, +Selector
apps/replicasets: = /replicationcontrollers
apps/statefulsets: Name!, Ready, Age, +Containers, +Images
batch/cronjobs: Name!, Schedule, Timezone, Suspend?, Active#, Last Schedule, Age, +Containers, +Images, +Selector
batch/jobs: Name!, Status, Completions, Duration, Age, +Containers, +Images, +Selector
policy/poddisruptionbudgets: Name!, Min Available, Max Unavailable, Allowed Disruptions#, Age
scheduling.k8s.io/priorityclasses: Name!, Value#, Global-Default?, Age, PreemptionPolicy
scheduling.k8s.io/podgroups: Name!, Policy, Workload, Status, Age
scheduling.x-k8s.io/podgroups: Name!, Phase, MinMember#, Running#, Succeeded#, Failed#, Age@
coordination.k8s.io/leases: Name!, Holder, Age
events.k8s.io/events: = /events
storage.k8s.io/csidrivers: Name!, AttachRequired?, PodInfoOnMount?, StorageCapacity?, TokenRequests, \
RequiresRepublish?, Modes, Age
storage.k8s.io/csinodes: Name!, Drivers#, Age
storage.k8s.io/storageclasses: Name!, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age
storage.k8s.io/volumeattachments: Name!, Attacher!, PV, Node, Attached?, Age
resource.k8s.io/deviceclasses: = /serviceaccounts
resource.k8s.io/resourceclaims: Name!, State, Age
resource.k8s.io/resourceclaimtemplates: = /serviceaccounts
resource.k8s.io/resourceslices: Name!, Node, Driver, Pool, Age
discovery.k8s.io/endpointslices: Name!, AddressType, Ports, Endpoints, Age
node.k8s.io/runtimeclasses: Name!, Handler, Age
rbac.authorization.k8s.io/clusterrolebindings: Name!, Role, Age, +Users, +Groups, +ServiceAccounts
rbac.authorization.k8s.io/rolebindings: = rbac.authorization.k8s.io/clusterrolebindings
situate.dev/namespaceviews: Name!, Phase, Workloads#, Pods#, Running#, Waiting#, Failed#, +CPU, +Memory
situate.dev/nodesnapshots: Name!, Version, Pods#, Age
situate.dev/nodeviews: Name!, Ready?, Schedulable?, Pods#, Running#, CPU, Memory, +Version
situate.dev/placementevents: Revision, Time@, Event, Pod!, Node, +Version#, +Scheduler, +Reason
situate.dev/workloadviews: Name!, Kind, Desired#, Running#, Ready#, Waiting#, Succeeded#, Failed#, Nodes#, \
+CPU, +Memory, +Reason
situate.dev/placementdecisions: Name!, Node, Phase, Version#, Age, +Score, +Reason
"""

_PLAIN: Final = "Name!, Created At@"

_DESCRIPTIONS: Final = {
    "Access Modes": "The ways in which the volume can be mounted.",
    "Active": "How many jobs run now.",
    "Age": "The time since the object was created.",
    "Allowed Disruptions": "How many more pods may be evicted now.",
    "Available": "How many pods have been ready for long enough.",
    "Capacity": "The size of the volume.",
    "Claim": "The claim that the volume is bound to.",
    "Cluster-IP": "The address of the service inside the cluster.",
    "Completions": "How many pods succeeded, of how many that should.",
    "Containers": "The containers of the template.",
    "Controller": "The owner that controls the object.",
    "Count": "How often it happened.",
    "Created At": "The time at which the object was created.",
    "Current": "How many pods exist.",
    "Data": "How many entries it holds.",
    "Desired": "How many pods should exist.",
    "Driver": "The driver whose devices these are.",
    "Drivers": "How many CSI drivers are registered on the node.",
    "Duration": "How long the job ran, or has been running.",
    "Endpoints": "The addresses behind the service.",
    "External-IP": "The address that is reachable from outside.",
    "First Seen": "The time since it first happened.",
    "Global-Default": "Whether pods that name no class get this one.",
    "Handler": "The runtime's configuration for such pods.",
    "Holder": "Who holds the lease.",
    "IP": "The address of the pod.",
    "Images": "The images of the template's containers.",
    "Internal-IP": "The address of the node inside the cluster.",
    "Last Schedule": "The time since a job was last started.",
    "Last Seen": "The time since it last happened.",
    "Message": "What happened, in words.",
    "MinMember": "How many pods must be placed together.",
    "Name": "The name of the object, unique among its kind in its namespace.",
    "Node": "The node in question.",
    "Node Selector": "The labels that a node must have.",
    "Nominated Node": "The node that the pod waits for, while others make room.",
    "Object": "What it happened to.",
    "Phase": "The step of its life that the object is in.",
    "Pods": "How many pods are counted against the node.",
    "Policy": "How the pods of the group are scheduled.",
    "PreemptionPolicy": "Whether pods of the class may displace others.",
    "Readiness Gates": "How many of the conditions that the pod waits for are true.",
    "Ready": "How many are ready.",
    "Reason": "Why, in one word.",
    "Restarts": "How often containers were restarted, and how long ago the last time was.",
    "Roles": "The roles of the node, by its labels.",
    "Schedule": "When jobs are started, in the notation of cron.",
    "Score": "The score of the chosen node.",
    "Selector": "The labels of the pods that belong to it.",
    "State": "Whether the claim is allocated and reserved.",
    "Status": "The state that it is in.",
    "Type": "The type of the object.",
    "Up-to-date": "How many pods are of the newest template.",
    "Value": "The priority of pods of the class.",
    "Version": "The version in question.",
    "Workload": "The workload that the group is part of.",
}

_TYPES: Final = {"#": ("integer", ""), "?": ("boolean", ""), "@": ("date", ""), "!": ("string", "name")}


def _column(text: str) -> dict[str, Any]:
    wide = text.startswith("+")
    text = text.lstrip("+")
    kind, form = _TYPES.get(text[-1], ("string", ""))
    name = text.rstrip("#?@!")
    description = _DESCRIPTIONS.get(name, f"The object's {name}.")
    return {"name": name, "type": kind, "format": form, "description": description, "priority": int(wide)}


def _columns(text: str) -> list[dict[str, Any]]:
    return [_column(one) for one in text.split(", ")]


def _parsed() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in _TABLE.strip().splitlines():
        resource, _, text = line.partition(": ")
        found[resource] = found[text[2:]] if text.startswith("= ") else _columns(text)
    return found


COLUMNS: Final[Mapping[str, list[dict[str, Any]]]] = _parsed()
"""By `group/plural`."""
PLAIN: Final = _columns(_PLAIN)
"""Of a resource without columns of its own."""
