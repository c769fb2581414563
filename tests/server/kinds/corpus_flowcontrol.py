"""Bodies of the kinds of flowcontrol.apiserver.k8s.io: see corpus_groups.py."""

from collections.abc import Iterator
from typing import Any

from server.kinds.corpus_groups import Case, Json, thing

API = "flowcontrol.apiserver.k8s.io/v1"
RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["default"]}
PATHS = {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}
USER = {"kind": "User", "user": {"name": "u"}}
LEVEL = {"priorityLevelConfiguration": {"name": "global-default"}}


def schema(**spec: Any) -> Json:
    return thing(API, "FlowSchema", {"spec": {**LEVEL, **spec}}, "zz-a")


def ruled(*rules: Json, subjects: Any = (USER,), paths: Any = ()) -> Json:
    return schema(rules=[{"subjects": list(subjects), "resourceRules": list(rules), "nonResourceRules": list(paths)}])


def level(name: str = "zz-a", **spec: Any) -> Json:
    return thing(API, "PriorityLevelConfiguration", {"spec": spec}, name)


def limited(**fields: Any) -> Json:
    return level(type="Limited", limited={"limitResponse": {"type": "Reject"}, **fields})


def queuing(**numbers: int) -> Json:
    return limited(limitResponse={"type": "Queue", "queuing": numbers})


def flow_schemas() -> Iterator[Case]:
    yield Case("flowschema: plain", ruled(RULE, paths=[PATHS]))
    yield Case("flowschema: no rules", schema(distinguisherMethod={"type": "ByUser"}))
    yield Case("flowschema: nothing", thing(API, "FlowSchema", {"spec": {}}, "zz-a"))
    for number in (-1, 0, 1, 10_000, 10_001):
        yield Case(f"flowschema: precedence {number}", schema(matchingPrecedence=number))
    yield Case("flowschema: method", schema(distinguisherMethod={"type": "ByChance"}))
    yield Case("flowschema: level's name", schema(priorityLevelConfiguration={"name": "A b"}))
    yield Case("flowschema: empty rule", schema(rules=[{"subjects": []}]))
    subjects: list[Json] = [
        {"kind": "Crowd"},
        {"kind": "User"},
        {"kind": "Group", "group": {"name": ""}, "user": {"name": "u"}},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": ""}, "group": {"name": "g"}},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "A b", "namespace": "A b"}, "user": {"name": "u"}},
        {"kind": "User", "user": {"name": ""}, "serviceAccount": {"name": "a", "namespace": "b"}},
    ]
    yield Case("flowschema: subjects", ruled(RULE, subjects=subjects))
    rules: list[Json] = [
        {"verbs": [], "apiGroups": [], "resources": [], "namespaces": []},
        {"verbs": ["*", "get"], "apiGroups": ["*", "apps"], "resources": ["*", "pods"], "namespaces": ["*", "a"]},
        {"verbs": ["get", "see"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True, "namespaces": []},
        {**RULE, "namespaces": ["a", "B c"]},
    ]
    yield Case("flowschema: resource rules", ruled(*rules))
    urls = ["", "/", "x", "/a b", "/a//b", "/a/*", "/a*", "/*/*"]
    yield Case("flowschema: paths", ruled(paths=[{"verbs": ["*"], "nonResourceURLs": urls}]))
    yield Case("flowschema: all paths", ruled(paths=[{"verbs": [], "nonResourceURLs": ["*", "/a"]}, {"verbs": ["x"]}]))


def priority_levels() -> Iterator[Case]:
    yield Case("prioritylevel: rejects", limited())
    yield Case("prioritylevel: queues by default", queuing())
    yield Case("prioritylevel: nothing", level())
    yield Case("prioritylevel: type", level(type="Odd"))
    yield Case("prioritylevel: limited without", level(type="Limited"))
    yield Case("prioritylevel: exempt of another name", level(type="Exempt", exempt={}))
    yield Case("prioritylevel: both", level(type="Limited", limited={"limitResponse": {"type": "Reject"}}, exempt={}))
    yield Case("prioritylevel: both, exempt", level(type="Exempt", limited={"limitResponse": {"type": "Reject"}}))
    yield Case("prioritylevel: exempt's numbers", level(type="Exempt", exempt={"nominalConcurrencyShares": -1}))
    yield Case("prioritylevel: exempt's percent", level(type="Exempt", exempt={"lendablePercent": 101}))
    numbers = {"nominalConcurrencyShares": -1, "lendablePercent": -1, "borrowingLimitPercent": -1}
    yield Case("prioritylevel: numbers", limited(**numbers))
    yield Case("prioritylevel: zero shares", limited(nominalConcurrencyShares=0))
    for response in ({}, {"type": "Odd"}, {"type": "Queue"}, {"type": "Reject", "queuing": {}}):
        yield Case(f"prioritylevel: response {response}", limited(limitResponse=response))
    for name in ("queues", "handSize", "queueLengthLimit"):
        yield Case(f"prioritylevel: {name} below zero", queuing(**{name: -1}))
    yield Case("prioritylevel: many queues", queuing(queues=10_000_001))
    yield Case("prioritylevel: a hand of all", queuing(queues=8, handSize=9))
    yield Case("prioritylevel: entropy", queuing(queues=1_000, handSize=7))
    yield Case("prioritylevel: update", limited(), {"spec": {"limited": {"lendablePercent": 50}}})


def flow_control_cases() -> list[Case]:
    return [*flow_schemas(), *priority_levels()]
