"""Bodies of autoscaling for kube-apiserver: see corpus_groups."""

from collections.abc import Iterator
from typing import Any

from server.kinds.corpus_groups import SELECTS, Case, Json, spec, thing

TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
PODS = {"type": "AverageValue", "averageValue": "1k"}
USED = {"type": "Utilization", "averageUtilization": 50}


def autoscaler(**fields: Any) -> Json:
    fields = {"scaleTargetRef": TARGET, "maxReplicas": 3, **fields}
    return thing("autoscaling/v2", "HorizontalPodAutoscaler", {"spec": fields})


def measuring(*metrics: Json) -> Json:
    return autoscaler(metrics=list(metrics))


def resource(name: str = "cpu", **target: Any) -> Json:
    return {"type": "Resource", "resource": {"name": name, "target": target or USED}}


def metric(kind: str, field: str, target: Json, name: str = "hits", more: Json | None = None) -> Json:
    return {"type": kind, field: {"metric": {"name": name}, "target": target, **(more or {})}}


def rules(**fields: Any) -> Json:
    return autoscaler(behavior={"scaleDown": fields})


def autoscaling_cases() -> Iterator[Case]:
    yield Case("hpa: least", autoscaler())
    yield Case("hpa: empty", thing("autoscaling/v2", "HorizontalPodAutoscaler", {}))
    yield Case("hpa: no maximum", autoscaler(maxReplicas=0))
    yield Case("hpa: negative", autoscaler(minReplicas=-1, maxReplicas=-2))
    yield Case("hpa: minimum beyond", autoscaler(minReplicas=4))
    yield Case("hpa: minimum of none", autoscaler(minReplicas=0))
    yield Case("hpa: status is not taken", {**autoscaler(), "status": {"currentReplicas": 3, "desiredReplicas": 4}})
    for number, target in enumerate(
        (
            {},
            {"kind": "a/b", "name": ".."},
            {"kind": "Deployment", "name": "web"},
            {"kind": "Deployment", "name": "web", "apiVersion": "v1"},
            {"kind": "Deployment", "name": "web", "apiVersion": "a/b/c"},
            {"kind": "ReplicationController", "name": "web"},
            {"kind": "ReplicationController", "name": "web", "apiVersion": "v1"},
        )
    ):
        yield Case(f"hpa: target {number}", autoscaler(scaleTargetRef=target))
    yield from _metrics()
    yield from _behaviors()
    yield Case("hpa: update", autoscaler(), spec(maxReplicas=9, minReplicas=2))
    yield Case("hpa: update to bad", autoscaler(), spec(maxReplicas=0))
    yield Case("hpa: update of the target", autoscaler(), spec(scaleTargetRef={"apiVersion": "a/b/c"}))
    status = {"currentReplicas": 1, "desiredReplicas": 2, "conditions": [{"type": "AbleToScale", "status": "True"}]}
    yield Case("hpa: status", autoscaler(), {"status": status}, "status")
    yield Case("hpa: bad status", autoscaler(), {"status": {"currentReplicas": -1, "desiredReplicas": -1}}, "status")


def _metrics() -> Iterator[Case]:
    described = {"describedObject": {"kind": "Service", "name": "web"}}
    every: list[list[Json]] = [
        [resource()],
        [resource("memory", type="AverageValue", averageValue="100Mi")],
        [resource("")],
        [resource(type="Utilization")],
        [resource(type="Often", averageUtilization=0)],
        [resource(type="", averageUtilization=1, averageValue="1")],
        [resource(type="AverageValue", averageValue="-1")],
        [resource(type="Value", value="0", averageUtilization=1)],
        [metric("Pods", "pods", PODS), resource()],
        [metric("Pods", "pods", USED, "a/b")],
        [metric("Object", "object", {"type": "Value", "value": "2"}, more=described)],
        [metric("Object", "object", {"type": "Value"}, "", {"describedObject": {"apiVersion": "a/b/c"}})],
        [metric("External", "external", {"type": "Value", "value": "2", "averageValue": "1"})],
        [metric("External", "external", {"type": "Value"}, more={"selector": SELECTS})],
        [{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": USED}}],
        [{"type": "ContainerResource", "containerResource": {"name": "a b", "container": "C_", "target": USED}}],
        [{"type": "ContainerResource", "containerResource": {"target": {}}}],
        [{}],
        [{"type": "Odd"}],
        [{"type": "Resource"}],
        [{**resource(), **metric("Resource", "pods", PODS)}],
        [{**resource(), "type": "Pods"}],
    ]
    for number, metrics in enumerate(every):
        yield Case(f"hpa: metrics {number}", measuring(*metrics))
    for number, one in enumerate((resource(), metric("External", "external", {"type": "Value", "value": "2"}))):
        yield Case(f"hpa: none at all {number}", autoscaler(minReplicas=0, metrics=[one]))


def _behaviors() -> Iterator[Case]:
    pods = {"type": "Pods", "value": 1, "periodSeconds": 60}
    yield Case("hpa: empty behavior", autoscaler(behavior={}))
    yield Case("hpa: up", autoscaler(behavior={"scaleUp": {"selectPolicy": "Disabled", "tolerance": "0.05"}}))
    yield Case("hpa: window", rules(stabilizationWindowSeconds=60))
    yield Case("hpa: window below", rules(stabilizationWindowSeconds=-1))
    yield Case("hpa: window beyond", rules(stabilizationWindowSeconds=3601))
    yield Case("hpa: policies", rules(policies=[pods, {**pods, "type": "Percent"}], selectPolicy="Min"))
    yield Case("hpa: bad policies", rules(policies=[{}, {**pods, "value": -1, "periodSeconds": 1801}]))
    yield Case("hpa: bad selection", rules(selectPolicy="First"))
    yield Case("hpa: bad tolerance", rules(tolerance="-0.1"))
