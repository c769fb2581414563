"""Objects whose rows kube-apiserver was asked for: each kind, and each way a pod's status can read.

`ago(s)` is a time so many seconds before the recording. A `status` is written by the subresource; an object with
`deletionTimestamp` is deleted and held back by a finalizer.
"""

from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Ago = Callable[[int], str]

HOLD = "example.com/hold"
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [{"name": "one", "image": "registry.test/one:1"}, {"name": "two", "image": "registry.test/two"}]
    },
}
ENDING: Json = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "one", "image": "registry.test/one:1"}]},
}
SELECTOR: Json = {
    "matchLabels": {"app": "a"},
    "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["b", "a"]},
        {"key": "a-tier", "operator": "Exists"},
        {"key": "z", "operator": "DoesNotExist"},
        {"key": "n", "operator": "NotIn", "values": ["x"]},
    ],
}


def thing(api: str, kind: str, name: str, **fields: Any) -> Json:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def pod(name: str, status: Json | None = None, *, going: bool = False, init: Any = (), **spec: Any) -> Json:
    containers = [{"name": name, "image": "registry.test/a"} for name in spec.pop("containers", ("one",))]
    declared = {"initContainers": [{"image": "registry.test/i", **one} for one in init]} if init else {}
    found = thing("v1", "Pod", name, spec={"containers": containers, **declared, **spec})
    if status:
        found["status"] = status
    if going:
        found["metadata"]["deletionTimestamp"] = "now"
    return found


def container(
    name: str = "one", *, ready: bool = False, restarts: int = 0, last: Json | None = None, **state: Json
) -> Json:
    return {
        "name": name,
        "ready": ready,
        "restartCount": restarts,
        "image": "registry.test/a",
        "imageID": "",
        **({"started": True} if "running" in state else {}),
        **({"state": state} if state else {}),
        **({"lastState": {"terminated": last}} if last else {}),
    }


def ended(code: int, reason: str = "", **more: Any) -> Json:
    return {"exitCode": code, **({"reason": reason} if reason else {}), **more}


def conditions(**these: str) -> list[Json]:
    return [{"type": kind, "status": status} for kind, status in these.items()]


def pods(ago: Ago) -> Iterator[Json]:
    running = {"startedAt": ago(60)}
    yield pod("pending")
    yield pod("gated", schedulingGates=[{"name": "example.com/g"}])
    yield pod("evicted", {"phase": "Failed", "reason": "Evicted"})
    yield pod("succeeded", {"phase": "Succeeded", "containerStatuses": [container(terminated=ended(0, "Completed"))]})
    yield pod("plain-running", {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]})
    yield pod(
        "running",
        {
            "phase": "Running",
            "conditions": conditions(Ready="True"),
            "containerStatuses": [container(ready=True, running=running)],
        },
        nodeName="n1",
    )
    crash = container(restarts=7, waiting={"reason": "CrashLoopBackOff"}, last=ended(1, "Error", finishedAt=ago(300)))
    yield pod("crashing", {"phase": "Running", "containerStatuses": [crash]})
    yield pod("pulling", {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ImagePullBackOff"})]})
    yield pod(
        "creating", {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ContainerCreating"})]}
    )
    yield pod("signalled", {"phase": "Failed", "containerStatuses": [container(terminated=ended(137, signal=9))]})
    yield pod("exited", {"phase": "Failed", "containerStatuses": [container(terminated=ended(3))]})
    yield pod("oom", {"phase": "Failed", "containerStatuses": [container(terminated=ended(137, "OOMKilled"))]})
    two = [container("one", terminated=ended(0, "Completed")), container("two", ready=True, running=running)]
    yield pod(
        "half-done",
        {"phase": "Running", "conditions": conditions(Ready="True"), "containerStatuses": two},
        containers=("one", "two"),
    )
    yield pod("half-unready", {"phase": "Running", "containerStatuses": two}, containers=("one", "two"))
    failed = [container("one", terminated=ended(0, "Completed")), container("two", terminated=ended(2, "Error"))]
    yield pod("half-failed", {"phase": "Failed", "containerStatuses": failed}, containers=("one", "two"))
    yield pod(
        "both-wait",
        {
            "phase": "Pending",
            "containerStatuses": [
                container("one", waiting={"reason": "First"}),
                container("two", waiting={"reason": "Second"}),
            ],
        },
        containers=("one", "two"),
    )
    yield pod(
        "restarted",
        {
            "phase": "Running",
            "containerStatuses": [
                container("one", ready=True, restarts=2, running=running, last=ended(0, finishedAt=ago(4000))),
                container("two", ready=True, restarts=1, running=running, last=ended(0, finishedAt=ago(90_000))),
            ],
        },
        containers=("one", "two"),
    )
    yield pod(
        "restarted-unknown",
        {"phase": "Running", "containerStatuses": [container(ready=True, restarts=4, running=running)]},
    )
    yield pod("waiting-no-reason", {"phase": "Pending", "containerStatuses": [container(waiting={"message": "m"})]})
    init = [{"name": "i1"}, {"name": "i2"}]
    yield pod(
        "init-0",
        {"phase": "Pending", "initContainerStatuses": [container("i1", running=running), container("i2")]},
        init=init,
    )
    yield pod(
        "init-1",
        {
            "phase": "Pending",
            "initContainerStatuses": [
                container("i1", terminated=ended(0)),
                container("i2", waiting={"reason": "PodInitializing"}),
            ],
        },
        init=init,
    )
    yield pod(
        "init-error",
        {
            "phase": "Pending",
            "initContainerStatuses": [
                container("i1", restarts=3, terminated=ended(1, "Error"), last=ended(1, finishedAt=ago(30)))
            ],
        },
        init=init,
    )
    yield pod(
        "init-exit", {"phase": "Pending", "initContainerStatuses": [container("i1", terminated=ended(5))]}, init=init
    )
    yield pod(
        "init-signal",
        {"phase": "Pending", "initContainerStatuses": [container("i1", terminated=ended(5, signal=11))]},
        init=init,
    )
    yield pod(
        "init-crash",
        {
            "phase": "Pending",
            "initContainerStatuses": [
                container("i1", restarts=5, waiting={"reason": "CrashLoopBackOff"}, last=ended(1, finishedAt=ago(7200)))
            ],
        },
        init=init,
    )
    yield pod(
        "init-done",
        {
            "phase": "Running",
            "conditions": conditions(Initialized="True", Ready="True"),
            "initContainerStatuses": [
                container("i1", restarts=2, terminated=ended(0), last=ended(1, finishedAt=ago(50))),
                container("i2", terminated=ended(0)),
            ],
            "containerStatuses": [container(ready=True, running=running)],
        },
        init=init,
    )
    side = [{"name": "s1", "restartPolicy": "Always"}, {"name": "i2"}]
    yield pod(
        "sidecar",
        {
            "phase": "Running",
            "conditions": conditions(Initialized="True", Ready="True"),
            "initContainerStatuses": [
                container("s1", ready=True, restarts=2, running=running, last=ended(1, finishedAt=ago(200))),
                container("i2", terminated=ended(0)),
            ],
            "containerStatuses": [
                container(ready=True, restarts=1, running=running, last=ended(1, finishedAt=ago(500)))
            ],
        },
        init=side,
    )
    yield pod(
        "sidecar-starting",
        {
            "phase": "Pending",
            "initContainerStatuses": [container("s1", ready=False, running=running), container("i2", running=running)],
        },
        init=side,
    )
    yield pod(
        "initialised-and-init-crash",
        {
            "phase": "Running",
            "conditions": conditions(Initialized="True"),
            "initContainerStatuses": [container("i1", restarts=9, waiting={"reason": "CrashLoopBackOff"})],
            "containerStatuses": [container(ready=True, running=running)],
        },
        init=init,
    )
    yield pod(
        "terminating", {"phase": "Running", "containerStatuses": [container(ready=True, running=running)]}, going=True
    )
    yield pod("terminating-done", {"phase": "Succeeded"}, going=True)
    yield pod("terminating-lost", {"phase": "Running", "reason": "NodeLost"}, going=True)
    yield pod(
        "readiness",
        {"phase": "Running", "conditions": conditions(**{"example.com/a": "True", "example.com/b": "False"})},
        readinessGates=[
            {"conditionType": "example.com/a"},
            {"conditionType": "example.com/b"},
            {"conditionType": "example.com/c"},
        ],
    )
    yield pod("nominated", {"phase": "Pending", "nominatedNodeName": "n9"})


def core(ago: Ago) -> Iterator[Json]:
    yield thing("v1", "ConfigMap", "empty")
    yield thing("v1", "ConfigMap", "full", data={"a": "1", "b": "2"}, binaryData={"c": "eA=="})
    yield thing("v1", "Secret", "opaque", data={"a": "eA=="}, stringData={"b": "x"})
    yield thing("v1", "ServiceAccount", "robot")
    yield thing("v1", "LimitRange", "limits", spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}}]})
    yield thing("v1", "Namespace", "tables-other")
    info = {
        "kubeletVersion": "v1.36.4",
        "osImage": "An OS",
        "kernelVersion": "6.1",
        "architecture": "amd64",
        "containerRuntimeVersion": "cri://2",
    }
    addresses = [
        {"type": "Hostname", "address": "n"},
        {"type": "InternalIP", "address": "10.1.1.1"},
        {"type": "ExternalIP", "address": "1.2.3.4"},
    ]
    yield thing("v1", "Node", "bare")
    yield thing(
        "v1",
        "Node",
        "ready",
        metadata={"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
        status={
            "conditions": conditions(Ready="True", MemoryPressure="False"),
            "nodeInfo": info,
            "addresses": addresses,
        },
    )
    yield thing(
        "v1", "Node", "cordoned", spec={"unschedulable": True}, status={"conditions": conditions(Ready="Unknown")}
    )
    subset = {
        "addresses": [{"ip": f"10.0.0.{n}"} for n in range(1, 4)],
        "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}],
    }
    yield thing("v1", "Endpoints", "none")
    yield thing("v1", "Endpoints", "many", subsets=[subset])
    yield thing(
        "v1",
        "Endpoints",
        "portless",
        subsets=[{"addresses": [{"ip": "fd00::1"}]}, {"addresses": [{"ip": "fd00::2"}], "ports": [{"port": 9}]}],
    )
    about = {"kind": "Pod", "name": "p", "namespace": "default", "fieldPath": "spec.containers{one}"}
    yield thing(
        "v1",
        "Event",
        "old",
        metadata={"namespace": "default"},
        involvedObject=about,
        reason="Because",
        message=" hello \n",
        type="Normal",
        count=3,
        firstTimestamp=ago(3700),
        lastTimestamp=ago(60),
        source={"component": "kubelet", "host": "n1"},
    )
    yield thing(
        "v1",
        "Event",
        "bare",
        metadata={"namespace": "default"},
        involvedObject={"kind": "Pod", "namespace": "default"},
        reason="R",
        message="m",
    )
    yield thing(
        "events.k8s.io/v1",
        "Event",
        "new",
        metadata={"namespace": "default"},
        regarding=about,
        reason="Because",
        note="hello",
        type="Warning",
        action="Doing",
        eventTime=ago(600).replace("Z", ".000000Z"),
        reportingController="example.com/c",
        reportingInstance="c-1",
    )
    yield thing(
        "events.k8s.io/v1",
        "Event",
        "series",
        metadata={"namespace": "default"},
        regarding=about,
        reason="Because",
        note="hello",
        type="Warning",
        action="Doing",
        eventTime=ago(600).replace("Z", ".000000Z"),
        reportingController="example.com/c",
        reportingInstance="c-1",
        series={"count": 5, "lastObservedTime": ago(30).replace("Z", ".000000Z")},
    )
    claim = {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}
    yield thing("v1", "PersistentVolumeClaim", "waiting", spec={**claim, "storageClassName": "fast"})
    yield thing(
        "v1",
        "PersistentVolumeClaim",
        "bound",
        spec={**claim, "volumeName": "vol"},
        status={"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOncePod"]},
    )
    yield thing(
        "v1",
        "PersistentVolumeClaim",
        "going",
        metadata={"deletionTimestamp": "now"},
        spec={**claim, "volumeMode": "Block"},
    )
    volume = {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    yield thing("v1", "PersistentVolume", "free", spec=volume)
    yield thing(
        "v1",
        "PersistentVolume",
        "claimed",
        spec={
            **volume,
            "claimRef": {"namespace": "default", "name": "c"},
            "storageClassName": "slow",
            "persistentVolumeReclaimPolicy": "Delete",
        },
        status={"phase": "Failed", "reason": "Broke"},
    )
    yield thing("v1", "PodTemplate", "template", template=TEMPLATE)
    yield thing(
        "v1",
        "ReplicationController",
        "rc",
        spec={"replicas": 2, "selector": {"app": "a"}, "template": TEMPLATE},
        status={"replicas": 2, "readyReplicas": 1},
    )
    yield thing(
        "v1",
        "ResourceQuota",
        "quota",
        spec={"hard": {"pods": "3", "limits.cpu": "2", "requests.memory": "1Gi"}},
        status={
            "hard": {"pods": "3", "limits.cpu": "2", "requests.memory": "1Gi"},
            "used": {"pods": "1", "limits.cpu": "500m"},
        },
    )
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
    yield thing(
        "v1", "Service", "inside", spec={"ports": ports, "selector": {"b": "2", "a": "1"}, "clusterIP": "10.96.0.100"}
    )
    yield thing("v1", "Service", "headless", spec={"clusterIP": "None", "selector": {"a": "1"}})
    yield thing(
        "v1",
        "Service",
        "outside",
        spec={
            "type": "NodePort",
            "ports": [{"port": 80, "nodePort": 30080}],
            "clusterIP": "10.96.0.101",
            "externalIPs": ["5.5.5.5", "6.6.6.6"],
        },
    )
    yield thing(
        "v1",
        "Service",
        "balanced",
        spec={"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30081}], "clusterIP": "10.96.0.102"},
    )
    yield thing(
        "v1",
        "Service",
        "balanced-well",
        spec={
            "type": "LoadBalancer",
            "ports": [{"port": 80, "nodePort": 30082}],
            "clusterIP": "10.96.0.103",
            "externalIPs": ["7.7.7.7"],
        },
        status={"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a-very-long-name.example.com"}]}},
    )
    yield thing("v1", "Service", "elsewhere", spec={"type": "ExternalName", "externalName": "example.com"})


def workloads(ago: Ago) -> Iterator[Json]:
    template = {**TEMPLATE, "metadata": {"labels": {"app": "a", "a-tier": "x"}}}
    counts = {"replicas": 3, "readyReplicas": 2, "updatedReplicas": 1, "availableReplicas": 1}
    yield thing(
        "apps/v1", "Deployment", "d", spec={"replicas": 3, "selector": SELECTOR, "template": template}, status=counts
    )
    yield thing(
        "apps/v1", "Deployment", "fresh", spec={"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
    )
    yield thing(
        "apps/v1",
        "ReplicaSet",
        "r",
        spec={"replicas": 3, "selector": SELECTOR, "template": template},
        status={"replicas": 3, "readyReplicas": 2},
    )
    yield thing(
        "apps/v1",
        "StatefulSet",
        "s",
        spec={"serviceName": "s", "selector": SELECTOR, "template": template},
        status={"replicas": 1, "readyReplicas": 1},
    )
    onto = {**template, "spec": {**template["spec"], "nodeSelector": {"b": "1", "a": "2"}}}
    yield thing(
        "apps/v1",
        "DaemonSet",
        "ds",
        spec={"selector": SELECTOR, "template": onto},
        status={
            "currentNumberScheduled": 3,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 4,
            "numberReady": 2,
            "updatedNumberScheduled": 1,
            "numberAvailable": 2,
        },
    )
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
    yield thing(
        "apps/v1", "ControllerRevision", "owned", metadata={"ownerReferences": [owner]}, data={"spec": 1}, revision=7
    )
    yield thing("apps/v1", "ControllerRevision", "free", data={"spec": 1}, revision=0)
    yield thing(
        "batch/v1",
        "Job",
        "running",
        spec={"template": ENDING, "completions": 3},
        status={"startTime": ago(100), "active": 1, "succeeded": 2},
    )
    yield thing("batch/v1", "Job", "queue", spec={"template": ENDING, "parallelism": 4})
    yield thing("batch/v1", "Job", "queue-of-one", spec={"template": ENDING, "parallelism": 1})
    yield thing("batch/v1", "Job", "going", metadata={"deletionTimestamp": "now"}, spec={"template": ENDING})
    yield thing(
        "batch/v1",
        "Job",
        "suspended",
        spec={"template": ENDING, "suspend": True},
        status={"conditions": conditions(Suspended="True")},
    )
    yield thing(
        "batch/v1",
        "Job",
        "complete",
        spec={"template": ENDING},
        status={
            "startTime": ago(5000),
            "completionTime": ago(1000),
            "succeeded": 1,
            "conditions": conditions(SuccessCriteriaMet="True", Complete="True"),
        },
    )
    yield thing(
        "batch/v1",
        "Job",
        "failed",
        spec={"template": ENDING},
        status={"startTime": ago(5000), "failed": 1, "conditions": conditions(FailureTarget="True", Failed="True")},
    )
    yield thing(
        "batch/v1",
        "Job",
        "failing",
        spec={"template": ENDING},
        status={"startTime": ago(5000), "conditions": conditions(FailureTarget="True")},
    )
    yield thing(
        "batch/v1",
        "Job",
        "winning",
        spec={"template": ENDING},
        status={"startTime": ago(5000), "conditions": conditions(SuccessCriteriaMet="True")},
    )
    yield thing(
        "batch/v1", "CronJob", "plain", spec={"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": ENDING}}}
    )
    active = [{"kind": "Job", "name": "j", "apiVersion": "batch/v1"}]
    yield thing(
        "batch/v1",
        "CronJob",
        "zoned",
        spec={
            "schedule": "@daily",
            "timeZone": "Europe/Paris",
            "suspend": True,
            "jobTemplate": {"spec": {"template": ENDING}},
        },
        status={"lastScheduleTime": ago(700), "active": active},
    )


def others(ago: Ago) -> Iterator[Json]:
    yield thing(
        "policy/v1",
        "PodDisruptionBudget",
        "least",
        spec={"minAvailable": 2, "selector": {}},
        status={"disruptionsAllowed": 3, "currentHealthy": 5, "desiredHealthy": 2, "expectedPods": 5},
    )
    yield thing("policy/v1", "PodDisruptionBudget", "most", spec={"maxUnavailable": "20%", "selector": {}})
    yield thing("policy/v1", "PodDisruptionBudget", "neither", spec={"selector": {}})
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000, globalDefault=True)
    yield thing("scheduling.k8s.io/v1", "PriorityClass", "never", value=-5, preemptionPolicy="Never")
    gang: Json = {"gang": {"minCount": 2}}
    basic: Json = {"basic": {}}
    api = "scheduling.k8s.io/v1alpha2"
    when = {"lastTransitionTime": ago(10), "message": ""}
    yield thing(api, "PodGroup", "gang", spec={"schedulingPolicy": gang})
    yield thing(
        api,
        "PodGroup",
        "basic",
        spec={"schedulingPolicy": basic},
        status={"conditions": [{"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled", **when}]},
    )
    yield thing(
        api,
        "PodGroup",
        "stuck",
        spec={"schedulingPolicy": gang},
        status={"conditions": [{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", **when}]},
    )
    yield thing("coordination.k8s.io/v1", "Lease", "held", spec={"holderIdentity": "me"})
    yield thing("coordination.k8s.io/v1", "Lease", "free")
    yield thing("storage.k8s.io/v1", "CSIDriver", "plain.example.com")
    yield thing(
        "storage.k8s.io/v1",
        "CSIDriver",
        "other.example.com",
        spec={
            "attachRequired": False,
            "podInfoOnMount": True,
            "storageCapacity": True,
            "requiresRepublish": True,
            "volumeLifecycleModes": ["Persistent", "Ephemeral"],
            "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
        },
    )
    yield thing("storage.k8s.io/v1", "CSINode", "n", spec={"drivers": [{"name": "d.example.com", "nodeID": "n"}]})
    yield thing("storage.k8s.io/v1", "CSIStorageCapacity", "c", storageClassName="fast", capacity="1Gi")
    yield thing("storage.k8s.io/v1", "StorageClass", "fast", provisioner="example.com/p")
    yield thing(
        "storage.k8s.io/v1",
        "StorageClass",
        "slow",
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        provisioner="example.com/p",
        reclaimPolicy="Retain",
        volumeBindingMode="WaitForFirstConsumer",
        allowVolumeExpansion=True,
    )
    yield thing(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "va",
        spec={"attacher": "d.example.com", "nodeName": "n", "source": {"persistentVolumeName": "vol"}},
        status={"attached": True},
    )
    yield thing(
        "storage.k8s.io/v1", "VolumeAttributesClass", "gold", driverName="d.example.com", parameters={"iops": "1"}
    )
    yield thing("resource.k8s.io/v1", "DeviceClass", "gpus")
    requests = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpus"}}]}}
    yield thing("resource.k8s.io/v1", "ResourceClaim", "pending", spec=requests)
    yield thing("resource.k8s.io/v1", "ResourceClaimTemplate", "t", spec={"spec": requests})
    yield thing(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "rs",
        spec={
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0"}],
        },
    )
    yield thing("discovery.k8s.io/v1", "EndpointSlice", "none", addressType="IPv4", endpoints=[])
    yield thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "some",
        addressType="IPv4",
        endpoints=[{"addresses": [f"10.2.0.{n}"]} for n in range(1, 6)],
        ports=[{"name": f"p{n}", "port": 80 + n} for n in range(4)],
    )
    yield thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "nameless",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.2.0.1"]}],
        ports=[{"name": "any"}, {}],
    )
    yield thing("node.k8s.io/v1", "RuntimeClass", "sandbox", handler="sandboxed")
    rbac = "rbac.authorization.k8s.io"
    subjects = [
        {"kind": "User", "name": "u", "apiGroup": rbac},
        {"kind": "User", "name": "v", "apiGroup": rbac},
        {"kind": "Group", "name": "g", "apiGroup": rbac},
        {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
    ]
    yield thing(f"{rbac}/v1", "Role", "reader", rules=[{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])
    yield thing(f"{rbac}/v1", "ClusterRole", "tables-reader", rules=[{"verbs": ["get"], "nonResourceURLs": ["/x"]}])
    yield thing(
        f"{rbac}/v1",
        "RoleBinding",
        "bound",
        roleRef={"apiGroup": rbac, "kind": "Role", "name": "reader"},
        subjects=subjects,
    )
    yield thing(
        f"{rbac}/v1",
        "ClusterRoleBinding",
        "tables-bound",
        roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": "tables-reader"},
    )


def everything(ago: Ago) -> list[Json]:
    return [one for kind in (pods, core, workloads, others) for one in kind(ago)]
