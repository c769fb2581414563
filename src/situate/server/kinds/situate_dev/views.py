"""The kinds that server/views computes for each request. Nothing is stored."""

from functools import partial
from typing import Final

from situate.server.kinds.kind import Kind
from situate.server.objects import Object
from situate.server.tables.cells import size


def _requested(resource: str, obj: Object) -> str:
    status = obj.get("status") or {}
    held, room = status.get("requested") or {}, status.get("allocatable") or {}
    return f"{size(held.get(resource))}/{size(room.get(resource))}"


NAMESPACE_VIEW: Final = Kind(
    "situate.dev/v1alpha1 namespaceviews NamespaceView C nsv situate ! get list ~",
    columns="""
        Name!, Phase = status.phase, Workloads# = status.workloads, Pods# = status.pods, Running# = status.running,
        Waiting# = status.waiting, Failed# = status.failed, +CPU = size(status.requested.cpu),
        +Memory = size(status.requested.memory)
        """,
    rights={"view": "get,list"},
    description="NamespaceView summarizes the pods of a namespace. It is computed, not stored.",
)

NODE_VIEW: Final = Kind(
    "situate.dev/v1alpha1 nodeviews NodeView C nov situate ! get list ~",
    columns="""
        Name!, Ready? = status.ready, Schedulable? = status.schedulable, Pods# = status.pods,
        Running# = status.running, CPU, Memory, +Version = status.snapshotVersion||<none>
        """,
    cells={"CPU": partial(_requested, "cpu"), "Memory": partial(_requested, "memory")},
    rights={"view": "get,list"},
    description="NodeView summarizes a node and its allocated resources. It is computed, not stored.",
    words={
        "NodeViewStatus.requested": "The exact sum of the requests of the pods bound to the node.",
        "NodeViewStatus.snapshotVersion": "The version of the NodeSnapshot that this view is computed from.",
    },
)

PLACEMENT_EVENT: Final = Kind(
    "situate.dev/v1alpha1 placementevents PlacementEvent N ple - ! list watch ~",
    columns="""
        Revision = metadata.resourceVersion, Time@ = time, Event = event, Pod! = pod.name, Node = node||<none>,
        +Version# = bindingVersion, +Scheduler = scheduler||<none>, +Reason = reason||<none>
        """,
    rights={"view": "list,watch"},
    description="PlacementEvent is one change of one placement, from the store's log.",
    words={
        "PlacementEvent.event": "What happened: waiting, placed, bound, running, repaired, failed, evicted and so on.",
        "PlacementEvent.phase": "The phase of the binding after the event, or its last phase.",
        "PlacementEvent.time": "When the phase began, by the server's clock, to the second.",
        "PlacementEvent.was": "The phase before the event. Absent if there was no decision about the pod.",
    },
)

WORKLOAD_VIEW: Final = Kind(
    "situate.dev/v1alpha1 workloadviews WorkloadView N wlv situate ! get list ~",
    columns="""
        Name!, Kind = status.kind, Desired# = status.desired, Running# = status.running, Ready# = status.readyPods,
        Waiting# = status.waiting, Succeeded# = status.succeeded, Failed# = status.failed, Nodes# = status.nodes,
        +CPU = size(status.requested.cpu), +Memory = size(status.requested.memory), +Reason = status.reason||<none>
        """,
    rights={"view": "get,list"},
    description="WorkloadView summarizes the pods of a workload. It is computed, not stored.",
    words={
        "WorkloadViewStatus.desired": "The desired number of pods.",
        "WorkloadViewStatus.nodes": "The number of nodes that run them.",
        "WorkloadViewStatus.reason": "Why the first waiting pod waits, in a word.",
        "WorkloadViewStatus.waiting": "The number of pods without a node.",
    },
)
