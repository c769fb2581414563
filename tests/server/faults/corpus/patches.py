"""Patches of each kind that cannot be applied."""

# ruff: noqa: E501 - tables read better in rows

import json
from collections.abc import Iterator
from typing import Any

from server.faults.corpus.case import Case, dumped
from server.faults.corpus.objects import APPS, BATCH, CORE, PODS

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
OPERATIONS = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
WEB = f"{APPS}/deployments/web"
MAP = f"{CORE}/configmaps/cm"
WRONG: tuple[Any, ...] = (
    {"spec": 5}, {"spec": "x"}, {"spec": []}, {"metadata": 5}, {"metadata": []}, {"spec": {"replicas": "x"}},
    {"spec": {"replicas": {}}}, {"spec": {"replicas": 1.5}}, {"spec": {"replicas": -1}}, {"spec": {"replicas": 2**40}},
    {"spec": {"template": 5}}, {"spec": {"template": {"spec": {"containers": {}}}}},
    {"spec": {"template": {"spec": {"containers": "x"}}}}, {"spec": {"template": {"spec": {"containers": [5]}}}},
    {"spec": {"template": {"spec": {"containers": None}}}}, {"spec": {"template": {"spec": {"containers": [{"image": "x"}]}}}},
    {"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}}, {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
    {"spec": {"selector": None}}, {"spec": {"strategy": {"type": "Odd"}}}, {"spec": None}, {"metadata": {"name": "other"}},
    {"metadata": {"namespace": "default"}}, {"metadata": {"uid": "other"}}, {"metadata": {"resourceVersion": "1"}},
    {"metadata": {"resourceVersion": "x"}}, {"metadata": {"labels": {"a": 5}}}, {"metadata": {"labels": {"-": "x"}}},
    {"metadata": {"labels": {"a": "b c"}}}, {"metadata": {"annotations": {"a b": "c"}}}, {"metadata": {"labels": []}},
    {"metadata": {"finalizers": ["no slash"]}}, {"metadata": {"finalizers": {}}}, {"metadata": {"ownerReferences": [{}]}},
    {"kind": "Pod"}, {"kind": 5}, {"apiVersion": "apps/v2"}, {"apiVersion": 5}, {"metadata": {"labels": "x"}},
    {"spec": {"template": {"spec": {"restartPolicy": "Odd"}}}}, {"spec": {"minReadySeconds": -5}},
    {"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 0}]}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]}}}},
    {"spec": {"template": {"spec": {"volumes": [{"name": "v", "$odd": 1, "emptyDir": 5}]}}}},
)  # fmt: skip
DIRECTIVES: tuple[Any, ...] = (
    {"$patch": "odd"}, {"$patch": 5}, {"spec": {"$patch": "odd"}}, {"spec": {"template": {"spec": {"containers": [{"$patch": "odd", "name": "c"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"$patch": "delete"}]}}}},
    {"spec": {"template": {"spec": {"containers": [{"$patch": 5, "name": "c"}]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": 5}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"odd": "x"}], "containers": [{"name": "c"}]}}}},
    {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "z"}], "containers": [{"name": "c"}]}}}},
    {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}, {"spec": {"strategy": {"$retainKeys": 5}}},
    {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {"maxSurge": 1}}}},
    {"spec": {"template": {"spec": {"containers": [{"image": "no-name"}]}}}}, {"spec": {"template": {"spec": {"volumes": [{"$patch": "replace"}, 5]}}}},
    {"spec": {"template": {"spec": {"containers": [{"name": 5}]}}}}, {"spec": {"template": {"spec": {"containers": [[]]}}}},
)  # fmt: skip


def cases() -> Iterator[Case]:
    yield from _documents()
    yield from _operations()
    yield from _applied()
    yield from _unchangeable()


def _patch(name: str, how: str, patch: Any, path: str = WEB) -> Case:
    body = patch if isinstance(patch, bytes) else dumped(patch)
    return Case(f"{how.partition('/')[2].partition('+')[0]}: {name}", "PATCH", path, body, how)


def _documents() -> Iterator[Case]:
    for how in (MERGE, STRATEGIC):
        for patch in WRONG:
            yield _patch(json.dumps(patch), how, patch)
        for raw in (
            b"",
            b"x",
            b"[]",
            b"5",
            b"null",
            b'"x"',
            b"{",
            b'{"a":',
            b"\xff",
            b"[{}]",
            b"{}{}",
            b'{"spec":NaN}',
        ):
            yield _patch(repr(raw), how, raw)
        deep = b'{"metadata":{"annotations":' * 50_000
        yield _patch("100,000 levels begun", how, deep)
        closed = b'{"spec":' * 50_000 + b"1" + b"}" * 50_000
        yield _patch("50,000 levels", how, closed)
        yield _patch("3 MiB and a byte", how, b'{"data":{"a":"' + b"b" * (3 << 20) + b'"}}', MAP)
        yield _patch("what is not there", how, {}, f"{CORE}/configmaps/none")
        yield _patch("a whole collection", how, {}, f"{CORE}/configmaps")
        yield _patch("an unknown field, strictly", how, {"spec": {"odd": 1}}, f"{WEB}?fieldValidation=Strict")
    for patch in DIRECTIVES:
        yield _patch(json.dumps(patch), STRATEGIC, patch, f"{WEB}?dryRun=All")


def _operations() -> Iterator[Case]:
    test = {"op": "test", "path": "/data/a", "value": "b"}
    odd: tuple[Any, ...] = (
        {}, 5, "x", [], None, {"op": "odd", "path": "/data"}, {"op": "add"}, {"path": "/data"}, {"op": 5, "path": "/data"},
        {"op": "add", "path": 5, "value": 1}, {"op": "add", "path": "/a/b/c/d", "value": 1}, {"op": "remove", "path": "/none"},
        {"op": "remove", "path": "/data/none"}, {"op": "remove", "path": ""}, {"op": "replace", "path": "/none", "value": 1},
        {"op": "replace", "path": "/data/none", "value": "x"}, {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "test", "path": "/none", "value": 1}, {"op": "test", "path": "/data/a", "value": {}}, {"op": "move", "path": "/a"},
        {"op": "move", "from": "/none", "path": "/a"}, {"op": "copy", "from": "/none", "path": "/a"},
        {"op": "move", "from": "/metadata", "path": "/metadata/name"}, {"op": "copy", "path": "/a"},
        {"op": "add", "path": "data/z", "value": "x"}, {"op": "add", "path": "/data/~2", "value": "x"},
        {"op": "add", "path": "/data/~", "value": "x"}, {"op": "add", "path": "/data", "value": 5},
        {"op": "add", "path": "/data", "value": []}, {"op": "add", "path": "", "value": 5}, {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": "", "value": []}, {"op": "add", "path": "/data/a/b", "value": "x"},
        {"op": "add", "path": "/data/z", "value": 5}, {"op": "add", "path": "/data/bad key", "value": "x"},
        {"op": "add", "path": "/metadata/finalizers/0", "value": "x/y"}, {"op": "add", "path": "/metadata/managedFields/-1", "value": {}},
        {"op": "add", "path": "/metadata/managedFields/99", "value": {}}, {"op": "remove", "path": "/metadata/managedFields/x"},
        {"op": "remove", "path": "/metadata/managedFields/00"}, {"op": "remove", "path": "/metadata/managedFields/-"},
        {"op": "add", "path": "/metadata/managedFields/99999999999999999999", "value": {}},
        {"op": "replace", "path": "/metadata/name", "value": "other"}, {"op": "replace", "path": "/metadata/uid", "value": "x"},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}, {"op": "remove", "path": "/metadata"},
        {"op": "replace", "path": "/kind", "value": "Pod"}, {"op": "remove", "path": "/metadata/name"},
        {"op": "add", "path": "/metadata/managedFields/1e3", "value": {}}, {"op": "ADD", "path": "/data/z", "value": "x"},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b c"}},
    )  # fmt: skip
    for operation in odd:
        yield _patch(json.dumps(operation), OPERATIONS, [operation], MAP)
    for raw in (b"", b"{}", b"5", b"x", b"null", b"[", b'[{"op":', b"[[]]", b'["add"]', b"\xff", b"[" * 100_000):
        yield _patch(repr(raw[:20]), OPERATIONS, raw, MAP)
    yield _patch("10,001 operations", OPERATIONS, [test] * 10_001, MAP)
    yield _patch(
        "one good and one bad operation", OPERATIONS, [{"op": "add", "path": "/data/z", "value": "x"}, odd[12]], MAP
    )
    doubling = [{"op": "add", "path": "/data/z", "value": "x" * 1000}]
    doubling += [{"op": "copy", "from": "/data", "path": f"/data{number}"} for number in range(2000)]
    yield _patch("copies of copies", OPERATIONS, doubling, f"{MAP}?fieldValidation=Strict")
    nested: list[Any] = [{"op": "add", "path": "/x", "value": {}}]
    for _ in range(40):
        nested += [{"op": "copy", "from": "/x", "path": "/y"}, {"op": "add", "path": "/x/a", "value": {}},
                   {"op": "copy", "from": "/y", "path": "/x/b"}, {"op": "copy", "from": "/y", "path": "/x/c"}]  # fmt: skip
    yield _patch("copies that double", OPERATIONS, nested, f"{MAP}?fieldValidation=Strict")
    yield _patch("what is not there", OPERATIONS, [test], f"{CORE}/configmaps/none")


def _applied() -> Iterator[Case]:
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": {"z": "z"}}
    yield _patch("without a manager", APPLY, good, MAP)
    yield _patch("a manager without a name", APPLY, good, f"{MAP}?fieldManager=")
    yield _patch("a manager with a long name", APPLY, good, f"{MAP}?fieldManager={'a' * 129}")
    yield _patch("what is another's", APPLY, good | {"data": {"a": "other"}}, f"{MAP}?fieldManager=m")
    where = f"{MAP}?fieldManager=m"
    for name, patch in {
        "no kind": {key: value for key, value in good.items() if key != "kind"},
        "no apiVersion": {key: value for key, value in good.items() if key != "apiVersion"},
        "another kind": good | {"kind": "Secret"},
        "another version": good | {"apiVersion": "v2"},
        "another name": good | {"metadata": {"name": "other"}},
        "another namespace": good | {"metadata": {"name": "cm", "namespace": "default"}},
        "managedFields": good | {"metadata": {"name": "cm", "managedFields": [{"manager": "x"}]}},
        "an old resourceVersion": good | {"metadata": {"name": "cm", "resourceVersion": "1"}},
        "data that is a list": good | {"data": []},
        "data that is a number": good | {"data": 5},
        "data with a number": good | {"data": {"z": 5}},
        "metadata that is a list": good | {"metadata": []},
        "metadata that is a word": good | {"metadata": "x"},
        "an unknown field": good | {"odd": 1},
        "another uid": good | {"metadata": {"name": "cm", "uid": "other"}},
        "an owner without a uid": good | {"metadata": {"name": "cm", "ownerReferences": [{}]}},
    }.items():
        yield _patch(name, APPLY, patch, where)
    for raw in (b"", b"[]", b"5", b"x", b"{", b"null", b"\xff\xfe", b"a: [", b"{}"):
        yield _patch(repr(raw), APPLY, raw, where)
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    specs: tuple[Any, ...] = (
        5, [], "x", {"replicas": "two"}, {"replicas": 7}, {"selector": {"matchLabels": {"app": "other"}}},
        {"template": {"spec": {"containers": [{"image": "no name"}]}}}, {"template": {"spec": {"containers": {"name": "c"}}}},
        {"template": {"spec": {"containers": [{"name": "c"}, {"name": "c"}]}}}, {"odd": 1},
        {"template": {"spec": {"containers": [{"name": "c", "image": "changed"}]}}},
    )  # fmt: skip
    for spec in specs:
        yield _patch(f"a deployment with {json.dumps(spec)}", APPLY, web | {"spec": spec}, f"{WEB}?fieldManager=m")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "fresh"}}
    yield _patch("a new pod without a spec", APPLY, pod, f"{PODS}/fresh?fieldManager=m")
    yield _patch("a new pod in no namespace", APPLY, pod, "/api/v1/namespaces/none/pods/fresh?fieldManager=m")


def _unchangeable() -> Iterator[Case]:
    for path, patch in (
        (f"{PODS}/p", {"spec": {"nodeName": "n1"}}), (f"{PODS}/p", {"spec": {"schedulerName": "other"}}),
        (f"{PODS}/p", {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "5"}}}]}}),
        (f"{PODS}/bound", {"spec": {"nodeName": "n2"}}), (f"{PODS}/p", {"spec": {"restartPolicy": "Never"}}),
        (f"{PODS}/p", {"spec": {"terminationGracePeriodSeconds": 5}}), (f"{PODS}/p", {"spec": {"priority": 5}}),
        (f"{PODS}/bound", {"spec": {"nodeSelector": {"a": "b"}}}), (f"{PODS}/p", {"spec": {"hostNetwork": True}}),
        (f"{PODS}/p", {"spec": {"schedulingGates": [{"name": "g"}]}}), (f"{PODS}/p", {"spec": {"containers": [{"name": "d"}]}}),
        (f"{CORE}/configmaps/fixed", {"data": {"a": "x"}}), (f"{CORE}/configmaps/fixed", {"immutable": False}),
        (f"{APPS}/statefulsets/db", {"spec": {"serviceName": "other"}}), (f"{BATCH}/jobs/job", {"spec": {"completions": 9}}),
        (f"{BATCH}/jobs/job", {"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}),
        (f"{CORE}/secrets/secret", {"type": "other"}), (f"{CORE}/services/svc", {"spec": {"clusterIP": "10.0.0.250"}}),
        (f"{CORE}/persistentvolumeclaims/claim", {"spec": {"accessModes": ["ReadOnlyMany"]}}),
        (f"{CORE}/persistentvolumeclaims/claim", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
        ("/apis/scheduling.k8s.io/v1/priorityclasses/high", {"value": 6}), ("/api/v1/nodes/n1", {"spec": {"podCIDR": "x"}}),
        ("/api/v1/nodes/n1", {"spec": {"taints": [{"key": "a"}]}}), ("/api/v1/nodes/n1", {"metadata": {"labels": {"a b": ""}}}),
    ):  # fmt: skip
        yield _patch(f"{path.rpartition('/')[2]} {json.dumps(patch)}", STRATEGIC, patch, path)
