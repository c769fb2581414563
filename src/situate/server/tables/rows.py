"""The cells of a row, one short function a kind. Each has the columns of its line in columns.py, in that order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from situate.server.requests import Object
from situate.server.tables.ages import UNKNOWN, between, since
from situate.server.tables.pods import pod_cells
from situate.server.tables.words import NONE, UNSET, condition, containers, images, labels, selector, shortened

__all__ = ["ROWS", "Row", "plain_cells"]

Row: TypeAlias = Callable[[Object, int], list[Any]]

ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ROLE: Final = "kubernetes.io/role"
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
TERMINATING: Final = "Terminating"
_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _name(obj: Object) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _age(obj: Object, now_ns: int) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now_ns)


def _spec(obj: Object) -> Mapping[str, Any]:
    return obj.get("spec") or {}


def _status(obj: Object) -> Mapping[str, Any]:
    return obj.get("status") or {}


def _going(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _template(obj: Object) -> list[Any]:
    template = _spec(obj).get("template")
    return [containers(template), images(template)]


def plain_cells(obj: Object, _now_ns: int) -> list[Any]:
    created = obj["metadata"].get("creationTimestamp")
    return [_name(obj), created or "0001-01-01T00:00:00Z"]


def _name_and_age(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), _age(obj, now_ns)]


# ── core ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _config_map(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), _age(obj, now_ns)]


def _endpoints(obj: Object, now_ns: int) -> list[Any]:
    subsets = obj.get("subsets") or ()
    found: list[str] = []
    for subset in subsets:
        addresses = [one.get("ip", "") for one in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        found += [_joined(address, port.get("port", 0)) for port in ports for address in addresses]
        if not ports:
            found += addresses
    return [_name(obj), shortened(found, "") if subsets else NONE, _age(obj, now_ns)]


def _joined(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _event(obj: Object, now_ns: int) -> list[Any]:
    """Of either group: the one calls involvedObject what the other calls regarding."""
    first = since(obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime"), now_ns)
    last_seen = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    last = since(last_seen, now_ns) if last_seen else first
    count = obj.get("count") or obj.get("deprecatedCount") or 1
    series = obj.get("series")
    if series is not None:
        last, count = since(series.get("lastObservedTime"), now_ns), series.get("count", 0)
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    kind = about.get("kind", "").lower()
    message = (obj.get("message") or obj.get("note") or "").strip()
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _event_source(obj),
        message,
        first,
        count,
        _name(obj),
    ]


def _event_source(obj: Object) -> str:
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _namespace(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), _status(obj).get("phase", ""), _age(obj, now_ns)]


def _node(obj: Object, now_ns: int) -> list[Any]:
    status = _status(obj)
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel = f"{kernel} ({info['architecture']})"
    return [
        _name(obj),
        _node_status(obj),
        _roles(obj["metadata"].get("labels") or {}),
        _age(obj, now_ns),
        info.get("kubeletVersion", ""),
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(obj: Object) -> str:
    ready = ""
    for one in _status(obj).get("conditions") or ():
        if one.get("type") == "Ready":
            ready = "Ready" if one.get("status") == "True" else "NotReady"
    return f"{ready or 'Unknown'},SchedulingDisabled" if _spec(obj).get("unschedulable") else ready or "Unknown"


def _roles(found: Mapping[str, str]) -> str:
    roles = {key.removeprefix(ROLE_PREFIX) for key in found if key.startswith(ROLE_PREFIX)}
    if found.get(ROLE):
        roles.add(found[ROLE])
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(status: Mapping[str, Any], kind: str) -> str:
    found = condition(status.get("addresses"), kind)
    return found.get("address", "") if found is not None else NONE


def _modes(found: Sequence[str] | None) -> str:
    return ",".join([short for mode, short in _MODES.items() if mode in (found or ())])


def _class_of(obj: Object) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations[OLD_CLASS] if OLD_CLASS in annotations else _spec(obj).get("storageClassName") or "")


def _or_unset(value: str | None) -> str:
    return UNSET if value is None else value


def _claim(obj: Object, now_ns: int) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    volume = spec.get("volumeName", "")
    return [
        _name(obj),
        TERMINATING if _going(obj) else status.get("phase", ""),
        volume,
        str((status.get("capacity") or {}).get("storage", "0")) if volume else "",
        _modes(status.get("accessModes")) if volume else "",
        _class_of(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        _age(obj, now_ns),
        _or_unset(spec.get("volumeMode")),
    ]


def _volume(obj: Object, now_ns: int) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    claim = spec.get("claimRef")
    return [
        _name(obj),
        str((spec.get("capacity") or {}).get("storage", "0")),
        _modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        TERMINATING if _going(obj) else status.get("phase", ""),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class_of(obj),
        _or_unset(spec.get("volumeAttributesClassName")),
        status.get("reason", ""),
        _age(obj, now_ns),
        _or_unset(spec.get("volumeMode")),
    ]


def _pod_template(obj: Object, _now_ns: int) -> list[Any]:
    template = obj.get("template") or {}
    found = (template.get("metadata") or {}).get("labels")
    return [_name(obj), containers(template), images(template), labels(found)]


def _replication_controller(obj: Object, now_ns: int) -> list[Any]:
    return [*_replicas(obj), _age(obj, now_ns), *_template(obj), labels(_spec(obj).get("selector"))]


def _replicas(obj: Object) -> list[Any]:
    status = _status(obj)
    return [_name(obj), _spec(obj).get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]


def _quota(obj: Object, now_ns: int) -> list[Any]:
    status = _status(obj)
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        text = f"{resource}: {used.get(resource, '0')}/{hard[resource]}"
        (limits if resource.startswith("limits.") else requests).append(text)
    return [_name(obj), ", ".join(requests), ", ".join(limits), _age(obj, now_ns)]


def _secret(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or ()), _age(obj, now_ns)]


def _service(obj: Object, now_ns: int) -> list[Any]:
    spec = _spec(obj)
    addresses = spec.get("clusterIPs")
    return [
        _name(obj),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external(spec, _status(obj)),
        ",".join([_port(one) for one in spec.get("ports") or ()]) or NONE,
        _age(obj, now_ns),
        labels(spec.get("selector")),
    ]


def _port(one: Mapping[str, Any]) -> str:
    number = f"{one.get('port', 0)}:{one['nodePort']}" if one.get("nodePort", 0) > 0 else one.get("port", 0)
    return f"{number}/{one.get('protocol', '')}"


def _external(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    kind, given = spec.get("type", ""), spec.get("externalIPs") or []
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        ingress = (status.get("loadBalancer") or {}).get("ingress") or ()
        found = sorted({one.get("ip") or one.get("hostname") or "" for one in ingress} - {""})
        return ",".join([*found, *given]) or "<pending>"
    return spec.get("externalName", "") if kind == "ExternalName" else UNKNOWN


# ── apps and batch ───────────────────────────────────────────────────────────────────────────────────────────────────


def _controller_revision(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), _controller(obj), obj.get("revision", 0), _age(obj, now_ns)]


def _controller(obj: Object) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


def _daemon_set(obj: Object, now_ns: int) -> list[Any]:
    status, template = _status(obj), _spec(obj).get("template") or {}
    return [
        _name(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        labels((template.get("spec") or {}).get("nodeSelector")),
        _age(obj, now_ns),
        *_template(obj),
        selector(_spec(obj).get("selector")),
    ]


def _ready_of_desired(obj: Object) -> str:
    return f"{_status(obj).get('readyReplicas', 0)}/{_spec(obj).get('replicas', 0)}"


def _deployment(obj: Object, now_ns: int) -> list[Any]:
    status = _status(obj)
    return [
        _name(obj),
        _ready_of_desired(obj),
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        _age(obj, now_ns),
        *_template(obj),
        selector(_spec(obj).get("selector"), ""),
    ]


def _replica_set(obj: Object, now_ns: int) -> list[Any]:
    return [*_replicas(obj), _age(obj, now_ns), *_template(obj), selector(_spec(obj).get("selector"))]


def _stateful_set(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), _ready_of_desired(obj), _age(obj, now_ns), *_template(obj)]


def _cron_job(obj: Object, now_ns: int) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    last = status.get("lastScheduleTime")
    suspend = spec.get("suspend")
    return [
        _name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        UNSET if suspend is None else str(bool(suspend)),
        len(status.get("active") or ()),
        since(last, now_ns) if last else NONE,
        _age(obj, now_ns),
        containers(job.get("template")),
        images(job.get("template")),
        selector(job.get("selector")),
    ]


def _job(obj: Object, now_ns: int) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    return [
        _name(obj),
        _job_status(obj),
        _completions(spec, status.get("succeeded", 0)),
        _job_duration(status, now_ns),
        _age(obj, now_ns),
        *_template(obj),
        selector(spec.get("selector")),
    ]


def _job_status(obj: Object) -> str:
    conditions = _status(obj).get("conditions")
    for kind in ("Complete", "Failed"):
        if _true(conditions, kind):
            return kind
    if _going(obj):
        return TERMINATING
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if _true(conditions, kind):
            return kind
    return "Running"


def _true(conditions: Sequence[Object] | None, kind: str) -> bool:
    found = condition(conditions, kind)
    return found is not None and found.get("status") == "True"


def _completions(spec: Mapping[str, Any], succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Mapping[str, Any], now_ns: int) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return between(start, end) if end else since(start, now_ns)


# ── the other groups ─────────────────────────────────────────────────────────────────────────────────────────────────


def _budget(obj: Object, now_ns: int) -> list[Any]:
    spec = _spec(obj)
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    return [
        _name(obj),
        "N/A" if least is None else str(least),
        "N/A" if most is None else str(most),
        _status(obj).get("disruptionsAllowed", 0),
        _age(obj, now_ns),
    ]


def _priority_class(obj: Object, now_ns: int) -> list[Any]:
    default = bool(obj.get("globalDefault", False))
    return [_name(obj), obj.get("value", 0), default, _age(obj, now_ns), obj.get("preemptionPolicy", "")]


def _pod_group(obj: Object, now_ns: int) -> list[Any]:
    spec, conditions = _spec(obj), _status(obj).get("conditions")
    reference = spec.get("workloadRef")
    if "podGroupTemplateRef" in spec:
        reference = (spec["podGroupTemplateRef"] or {}).get("workload")
    scheduled, disrupted = condition(conditions, "PodGroupScheduled"), condition(conditions, "DisruptionTarget")
    status = "Pending"
    if scheduled is not None:
        status = "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"
    if disrupted is not None:
        status = disrupted.get("reason", "")
    return [
        _name(obj),
        "Basic" if (spec.get("schedulingPolicy") or {}).get("gang") is None else "Gang",
        NONE if reference is None else reference.get("workloadName", ""),
        status,
        _age(obj, now_ns),
    ]


def _plugin_pod_group(obj: Object, now_ns: int) -> list[Any]:
    """Columns that a custom resource does not fill are null."""
    status = _status(obj)
    counts = [status.get(key) for key in ("running", "succeeded", "failed")]
    return [_name(obj), status.get("phase"), _spec(obj).get("minMember"), *counts, _age(obj, now_ns)]


def _lease(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), _spec(obj).get("holderIdentity", ""), _age(obj, now_ns)]


def _csi_driver(obj: Object, now_ns: int) -> list[Any]:
    spec = _spec(obj)
    requests = spec.get("tokenRequests")
    return [
        _name(obj),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        UNSET if requests is None else ",".join([one.get("audience", "") for one in requests]),
        spec.get("requiresRepublish", False),
        ",".join(spec.get("volumeLifecycleModes") or ()) or NONE,
        _age(obj, now_ns),
    ]


def _csi_node(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), len(_spec(obj).get("drivers") or ()), _age(obj, now_ns)]


def _storage_class(obj: Object, now_ns: int) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(key) == "true" for key in DEFAULT_CLASS)
    return [
        f"{_name(obj)} (default)" if default else _name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        obj.get("allowVolumeExpansion", False),
        _age(obj, now_ns),
    ]


def _attachment(obj: Object, now_ns: int) -> list[Any]:
    spec = _spec(obj)
    volume = (spec.get("source") or {}).get("persistentVolumeName", "")
    attached = _status(obj).get("attached", False)
    return [_name(obj), spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, _age(obj, now_ns)]


def _resource_claim(obj: Object, now_ns: int) -> list[Any]:
    status = _status(obj)
    states = ["deleted"] if _going(obj) else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not states:
        states = ["pending"]
    return [_name(obj), ",".join(states), _age(obj, now_ns)]


def _resource_slice(obj: Object, now_ns: int) -> list[Any]:
    spec = _spec(obj)
    pool = (spec.get("pool") or {}).get("name", "")
    return [_name(obj), spec.get("nodeName", ""), spec.get("driver", ""), pool, _age(obj, now_ns)]


def _endpoint_slice(obj: Object, now_ns: int) -> list[Any]:
    ports = [str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()]
    addresses = [address for one in obj.get("endpoints") or () for address in one.get("addresses") or ()]
    kind = obj.get("addressType", "")
    return [_name(obj), kind, shortened(ports, UNSET), shortened(addresses, UNSET), _age(obj, now_ns)]


def _runtime_class(obj: Object, now_ns: int) -> list[Any]:
    return [_name(obj), obj.get("handler", ""), _age(obj, now_ns)]


def _binding(obj: Object, now_ns: int) -> list[Any]:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    named = {kind: [one for one in subjects if one.get("kind") == kind] for kind in ("User", "Group", "ServiceAccount")}
    return [
        _name(obj),
        f"{role.get('kind', '')}/{role.get('name', '')}",
        _age(obj, now_ns),
        ", ".join([one.get("name", "") for one in named["User"]]),
        ", ".join([one.get("name", "") for one in named["Group"]]),
        ", ".join([f"{one.get('namespace', '')}/{one.get('name', '')}" for one in named["ServiceAccount"]]),
    ]


# ── ours ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _node_snapshot(obj: Object, now_ns: int) -> list[Any]:
    version = obj["metadata"].get("resourceVersion", "")
    return [_name(obj), version, len(_spec(obj).get("pods") or ()), _age(obj, now_ns)]


def _placement_decision(obj: Object, now_ns: int) -> list[Any]:
    spec, status = _spec(obj), _status(obj)
    score = status.get("score")
    return [
        _name(obj),
        spec.get("node") or NONE,
        status.get("phase", ""),
        spec.get("bindingVersion", 0),
        _age(obj, now_ns),
        NONE if score is None else str(score),
        status.get("reason") or NONE,
    ]


_WORKLOAD_COUNTS: Final = ("desired", "running", "readyPods", "waiting", "succeeded", "failed", "nodes")


def _workload_view(obj: Object, _now_ns: int) -> list[Any]:
    status = _status(obj)
    counts = [status.get(one, 0) for one in _WORKLOAD_COUNTS]
    return [_name(obj), status.get("kind", ""), *counts, *_requested(status), status.get("reason") or NONE]


def _node_view(obj: Object, _now_ns: int) -> list[Any]:
    status = _status(obj)
    held, room = status.get("requested") or {}, status.get("allocatable") or {}
    parts = [f"{_short(held.get(one, '0'))}/{_short(room.get(one, '0'))}" for one in ("cpu", "memory")]
    flags = [bool(status.get(one)) for one in ("ready", "schedulable")]
    return [
        _name(obj),
        *flags,
        status.get("pods", 0),
        status.get("running", 0),
        *parts,
        status.get("snapshotVersion") or NONE,
    ]


def _namespace_view(obj: Object, _now_ns: int) -> list[Any]:
    status = _status(obj)
    counts = [status.get(one, 0) for one in ("workloads", "pods", "running", "waiting", "failed")]
    return [_name(obj), status.get("phase", ""), *counts, *_requested(status)]


def _requested(status: Mapping[str, Any]) -> list[str]:
    requested = status.get("requested") or {}
    return [_short(requested.get(one, "0")) for one in ("cpu", "memory")]


def _short(amount: str) -> str:
    """Bytes as people say them, where that loses nothing: `512Mi`."""
    number = int(amount) if amount.isdecimal() else 0
    for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return amount


def _placement_event(obj: Object, _now_ns: int) -> list[Any]:
    return [
        obj["metadata"].get("resourceVersion", ""),
        obj.get("time", ""),
        obj.get("event", ""),
        (obj.get("pod") or {}).get("name", ""),
        obj.get("node") or NONE,
        obj.get("bindingVersion", 0),
        obj.get("scheduler") or NONE,
        obj.get("reason") or NONE,
    ]


ROWS: Final[Mapping[str, Row]] = {
    "/configmaps": _config_map,
    "/endpoints": _endpoints,
    "/events": _event,
    "/namespaces": _namespace,
    "/nodes": _node,
    "/persistentvolumeclaims": _claim,
    "/persistentvolumes": _volume,
    "/pods": pod_cells,
    "/podtemplates": _pod_template,
    "/replicationcontrollers": _replication_controller,
    "/resourcequotas": _quota,
    "/secrets": _secret,
    "/serviceaccounts": _name_and_age,
    "/services": _service,
    "apps/controllerrevisions": _controller_revision,
    "apps/daemonsets": _daemon_set,
    "apps/deployments": _deployment,
    "apps/replicasets": _replica_set,
    "apps/statefulsets": _stateful_set,
    "batch/cronjobs": _cron_job,
    "batch/jobs": _job,
    "policy/poddisruptionbudgets": _budget,
    "scheduling.k8s.io/priorityclasses": _priority_class,
    "scheduling.k8s.io/podgroups": _pod_group,
    "scheduling.x-k8s.io/podgroups": _plugin_pod_group,
    "coordination.k8s.io/leases": _lease,
    "events.k8s.io/events": _event,
    "storage.k8s.io/csidrivers": _csi_driver,
    "storage.k8s.io/csinodes": _csi_node,
    "storage.k8s.io/storageclasses": _storage_class,
    "storage.k8s.io/volumeattachments": _attachment,
    "resource.k8s.io/deviceclasses": _name_and_age,
    "resource.k8s.io/resourceclaims": _resource_claim,
    "resource.k8s.io/resourceclaimtemplates": _name_and_age,
    "resource.k8s.io/resourceslices": _resource_slice,
    "discovery.k8s.io/endpointslices": _endpoint_slice,
    "node.k8s.io/runtimeclasses": _runtime_class,
    "rbac.authorization.k8s.io/clusterrolebindings": _binding,
    "rbac.authorization.k8s.io/rolebindings": _binding,
    "situate.dev/namespaceviews": _namespace_view,
    "situate.dev/nodesnapshots": _node_snapshot,
    "situate.dev/nodeviews": _node_view,
    "situate.dev/placementevents": _placement_event,
    "situate.dev/workloadviews": _workload_view,
    "situate.dev/placementdecisions": _placement_decision,
}
"""By `group/plural`."""
