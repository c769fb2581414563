"""Preparation of pods: the server sets the status, and computes the QoS class once."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from situate.server.kinds.quantities import CPU, MEMORY, nanos
from situate.server.kinds.strategy import keep_status
from situate.server.objects import Object

GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
_COMPUTE: Final = (CPU, MEMORY)


def prepare_create(pod: Object) -> None:
    """The condition of a gated pod gets the time `metadata.creationTimestamp`, if that is set."""
    spec = pod["spec"]
    status: dict[str, Any] = {"phase": "Pending", "qosClass": qos_class(spec)}
    pod["status"] = status
    if spec.get("schedulingGates"):
        status["conditions"] = [_gated(pod.get("metadata", {}).get("creationTimestamp"))]
    _drop_stop_signals(spec)
    if "affinity" in spec or "topologySpreadConstraints" in spec:
        _merge_label_keys(spec, pod.get("metadata", {}).get("labels", {}))


def is_nameless(pod: Object) -> bool:
    """Ephemeral volumes name their claims after the pod, so the name matters."""
    return all("ephemeral" not in volume for volume in pod["spec"].get("volumes", ()))


def prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    if not any("stopSignal" in one.get("lifecycle", ()) for one in old["spec"].get("containers", ())):
        _drop_stop_signals(new["spec"])


def prepare_ephemeral(new: Object, old: Object) -> None:
    """Only the ephemeral containers may change."""
    given = new["spec"].get("ephemeralContainers")
    rest = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
    new["spec"] = {**rest, **({"ephemeralContainers": given} if given else {})}
    keep_status(new, old)


def prepare_status(new: Object, old: Object) -> None:
    new["spec"] = old["spec"]
    meta, was = new["metadata"], old["metadata"]
    if "ownerReferences" in was:
        meta["ownerReferences"] = was["ownerReferences"]
    else:
        meta.pop("ownerReferences", None)
    status, before = new.setdefault("status", {}), old.get("status", {})
    if "qosClass" not in status and "qosClass" in before:
        status["qosClass"] = before["qosClass"]
    if "observedGeneration" not in status and "observedGeneration" in before:
        status["observedGeneration"] = before["observedGeneration"]
    if old["spec"].get("nodeName"):  # the node's ledger counts the pod with it
        status.pop("extendedResourceClaimStatus", None)
        if "extendedResourceClaimStatus" in before:
            status["extendedResourceClaimStatus"] = before["extendedResourceClaimStatus"]
    _keep_observed(status.get("conditions", ()), before.get("conditions", ()))


def _keep_observed(conditions: Iterable[dict[str, Any]], before: Iterable[Mapping[str, Any]]) -> None:
    """Keep observedGeneration where a client does not send it."""
    known = {one.get("type"): one["observedGeneration"] for one in before if "observedGeneration" in one}
    for one in conditions:
        if "observedGeneration" not in one and one.get("type") in known:
            one["observedGeneration"] = known[one.get("type")]


def _gated(now: str | None) -> dict[str, Any]:
    condition: dict[str, Any] = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
    condition["lastTransitionTime"] = now
    condition["reason"] = "SchedulingGated"
    condition["message"] = GATED
    return condition


def _drop_stop_signals(spec: Mapping[str, Any]) -> None:
    """Their feature gate is off by default."""
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        lifecycle = container.get("lifecycle")
        if lifecycle is not None:
            lifecycle.pop("stopSignal", None)


def _merge_label_keys(spec: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    """Merge matchLabelKeys into the selector. The scheduler reads only the selector."""
    affinity = spec.get("affinity", {})
    for one in (affinity.get("podAffinity"), affinity.get("podAntiAffinity")):
        if one:
            for weighted in one.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
                _merge(weighted.get("podAffinityTerm", {}), labels)
            for term in one.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
                _merge(term, labels)
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge(constraint, labels)


def _merge(term: Mapping[str, Any], labels: Mapping[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:
        return
    for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(keys, ()):
            if key in labels:
                one = {"key": key, "operator": operator, "values": [labels[key]]}
                selector.setdefault("matchExpressions", []).append(one)


def qos_class(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort."""
    own = spec.get("resources")
    if own and (own.get("requests") or own.get("limits")):
        return _class_of([own])
    inits = spec.get("initContainers")
    containers = spec.get("containers", ())
    every = [one.get("resources") for one in (containers if not inits else (*containers, *inits))]
    return _class_of(every)


def _class_of(every: Iterable[Mapping[str, Any] | None]) -> str:
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for found in every:
        if not found:
            guaranteed = False
            continue
        _sum(found.get("requests"), requests)
        if _sum(found.get("limits"), limits) != len(_COMPUTE):
            guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _sum(listed: Mapping[str, Any] | None, total: dict[str, int]) -> int:
    """Add the amounts of cpu and memory that are not zero. Returns their number."""
    count = 0
    if listed:
        for name in _COMPUTE:
            if name in listed and (asked := nanos(listed[name])) > 0:
                total[name] = total.get(name, 0) + asked
                count += 1
    return count


def selectable(pod: Object) -> Mapping[str, str]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    ips = status.get("podIPs")
    return {
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.restartPolicy": spec.get("restartPolicy", ""),
        "spec.schedulerName": spec.get("schedulerName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
        "status.phase": status.get("phase", ""),
        "status.podIP": ips[0].get("ip", "") if ips else status.get("podIP", ""),
        "status.nominatedNodeName": status.get("nominatedNodeName", ""),
    }


def grace(pod: Object, asked: int | None) -> int:
    """A pod without a node, or one that has ended, needs no grace period."""
    spec = pod.get("spec", {})
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    period: int = spec.get("terminationGracePeriodSeconds", 0) if asked is None else asked
    return period if period >= 0 else 1
