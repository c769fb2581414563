"""Bindings, evictions, scales, statuses, tokens and verbs that make no sense."""

# ruff: noqa: E501 - tables read better in rows

from collections.abc import Iterator
from typing import Any

from server.faults.corpus.case import Case, dumped
from server.faults.corpus.objects import APPS, BATCH, CORE, PODS, made, pod

WEB = f"{APPS}/deployments/web"
SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web", "namespace": "corpus"}}
METHODS = ("TRACE", "CONNECT", "OPTIONS", "get", "Post", "PROPFIND", "LINK", "A", "GETT", "X" * 1000, "G-T", "DELETE2")


def cases() -> Iterator[Case]:
    yield from _bindings()
    yield from _evictions()
    yield from _scales()
    yield from _statuses()
    yield from _others()
    yield from _verbs()


def _binding(target: Any = None, name: str = "p", **metadata: Any) -> dict[str, Any]:
    target = {"kind": "Node", "name": "n1"} if target is None else target
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}


def _bindings() -> Iterator[Case]:
    where = f"{PODS}/p/binding"
    odd: dict[str, Any] = {
        "to no name": _binding({"kind": "Node", "name": ""}),
        "to nothing": _binding({}),
        "to a pod": _binding({"kind": "Pod", "name": "n1"}),
        "to a list": _binding([]),
        "to a word": _binding("n1"),
        "to a number": _binding({"kind": "Node", "name": 5}),
        "of another pod": _binding(name="bound"),
        "of another uid": _binding(uid="00000000-0000-0000-0000-000000000000"),
        "of an old revision": _binding(resourceVersion="1"),
        "of a revision that is none": _binding(resourceVersion="x"),
        "of another namespace": _binding(namespace="default"),
        "that is a pod": pod("p"),
        "without a target": made("v1", "Binding", "p"),
        "that is a list": [],
        "that is null": None,
    }
    for name, body in odd.items():
        yield Case(f"binding: {name}", "POST", where, dumped(body))
    yield Case(
        "binding: twice, to another node",
        "POST",
        f"{PODS}/bound/binding",
        dumped(_binding({"kind": "Node", "name": "n2"}, "bound")),
    )
    yield Case("binding: of no pod", "POST", f"{PODS}/none/binding", dumped(_binding(name="none")))
    yield Case("binding: of no pod, as a collection", "POST", f"{CORE}/bindings", dumped(_binding(name="none")))
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        yield Case(f"binding: {method}", method, where, None if method == "GET" else b"{}")


def _evictions() -> Iterator[Case]:
    def eviction(name: str = "p", **fields: Any) -> dict[str, Any]:
        return made("policy/v1", "Eviction", name, **fields)

    for name, where, body in (
        ("of no pod", f"{PODS}/none/eviction", eviction("none")), ("of another name", f"{PODS}/p/eviction", eviction("other")),
        ("of another version", f"{PODS}/p/eviction", eviction() | {"apiVersion": "policy/v9"}), ("that is a pod", f"{PODS}/p/eviction", pod("p")),
        ("with options of a wrong type", f"{PODS}/p/eviction", eviction(deleteOptions=5)), ("that is a list", f"{PODS}/p/eviction", []),
        ("of another uid", f"{PODS}/p/eviction", eviction(deleteOptions={"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})),
        ("with dryRun Odd", f"{PODS}/p/eviction", eviction(deleteOptions={"dryRun": ["Odd"]})), ("of another namespace", f"{PODS}/p/eviction", eviction() | {"metadata": {"name": "p", "namespace": "default"}}),
        ("with a policy Odd", f"{PODS}/p/eviction?dryRun=Odd", eviction()),
    ):  # fmt: skip
        yield Case(f"eviction: {name}", "POST", where, dumped(body))
    for method in ("GET", "PUT", "DELETE"):
        yield Case(f"eviction: {method}", method, f"{PODS}/p/eviction", None if method == "GET" else b"{}")


def _scales() -> Iterator[Case]:
    odd: tuple[Any, ...] = (-1, "x", "3", 1.5, 2**40, {}, [], True)
    for value in odd:
        yield Case(f"scale: {value!r}", "PUT", f"{WEB}/scale", dumped(SCALE | {"spec": {"replicas": value}}))
        patch = dumped({"spec": {"replicas": value}})
        for how in ("merge-patch", "strategic-merge-patch"):
            yield Case(f"scale: {how} {value!r}", "PATCH", f"{WEB}/scale", patch, f"application/{how}+json")
    yield Case("scale: a deployment", "PUT", f"{WEB}/scale", dumped(made("apps/v1", "Deployment", "web")))
    yield Case("scale: another name", "PUT", f"{WEB}/scale", dumped(SCALE | {"metadata": {"name": "other"}}))
    old = SCALE | {"metadata": {"name": "web", "resourceVersion": "1"}, "spec": {"replicas": 3}}
    yield Case("scale: an old revision", "PUT", f"{WEB}/scale", dumped(old))
    yield Case(
        "scale: of nothing", "PUT", f"{APPS}/deployments/none/scale", dumped(SCALE | {"metadata": {"name": "none"}})
    )
    yield Case("scale: of a job", "GET", f"{BATCH}/jobs/job/scale")
    yield Case("scale: POST", "POST", f"{WEB}/scale", dumped(SCALE))
    yield Case("scale: DELETE", "DELETE", f"{WEB}/scale")


def _statuses() -> Iterator[Case]:
    merge = "application/merge-patch+json"
    for path, status in (
        (f"{PODS}/p", 5), (f"{PODS}/p", []), (f"{PODS}/p", {"phase": 5}), (f"{PODS}/p", {"conditions": {}}), (f"{PODS}/p", {"conditions": [5]}),
        (f"{PODS}/p", {"containerStatuses": [{"restartCount": "x"}]}), (f"{PODS}/p", {"podIPs": [{"ip": "x"}]}), (f"{PODS}/p", {"startTime": "x"}),
        (f"{PODS}/p", {"nominatedNodeName": "A_ b"}), (WEB, {"replicas": "x"}), (WEB, {"replicas": -1}), (WEB, {"replicas": 1, "readyReplicas": 5}),
        (WEB, {"conditions": "x"}), (WEB, {"observedGeneration": -1}), ("/api/v1/nodes/n1", {"allocatable": {"cpu": "x"}}),
        ("/api/v1/nodes/n1", {"allocatable": {"cpu": "-1"}}), ("/api/v1/nodes/n1", {"conditions": [{"type": 5}]}), ("/api/v1/nodes/n1", {"addresses": "x"}),
        (f"{BATCH}/jobs/job", {"active": -1}), (f"{BATCH}/jobs/job", {"succeeded": "x"}), (f"{BATCH}/jobs/job", {"completionTime": "x"}),
    ):  # fmt: skip
        patch = dumped({"status": status})
        yield Case(f"status: {path.rpartition('/')[2]} {status}", "PATCH", f"{path}/status", patch, merge)
    yield Case("status: of nothing", "PATCH", f"{PODS}/none/status", b'{"status":{}}', merge)
    yield Case("status: another name", "PUT", f"{PODS}/p/status", dumped(pod("other")))
    yield Case("status: POST", "POST", f"{PODS}/p/status", dumped(pod("p")))
    yield Case("status: DELETE", "DELETE", f"{PODS}/p/status")


def _others() -> Iterator[Case]:
    reviews = "/apis/authorization.k8s.io/v1"
    for name, path, body in (
        ("a review of nothing", f"{reviews}/subjectaccessreviews", made("authorization.k8s.io/v1", "SubjectAccessReview", "")),
        ("a review of both", f"{reviews}/selfsubjectaccessreviews", made("authorization.k8s.io/v1", "SelfSubjectAccessReview", "", spec={"resourceAttributes": {}, "nonResourceAttributes": {}})),
        ("a review of wrong types", f"{reviews}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": 5}}),
        ("a review of no token", "/apis/authentication.k8s.io/v1/tokenreviews", made("authentication.k8s.io/v1", "TokenReview", "", spec={"token": ""})),
        ("a review of a number", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": 5}}),
        ("a token for nobody", f"{CORE}/serviceaccounts/none/token", made("authentication.k8s.io/v1", "TokenRequest", "", spec={})),
        ("a token for a second", f"{CORE}/serviceaccounts/default/token", made("authentication.k8s.io/v1", "TokenRequest", "", spec={"expirationSeconds": 1})),
        ("a token for too long", f"{CORE}/serviceaccounts/default/token", made("authentication.k8s.io/v1", "TokenRequest", "", spec={"expirationSeconds": 2**33})),
        ("a token of wrong types", f"{CORE}/serviceaccounts/default/token", {"spec": {"audiences": 5}}),
    ):  # fmt: skip
        yield Case(f"other: {name}", "POST", path, dumped(body))
    yield Case(
        "other: a namespace finalized under another name",
        "PUT",
        "/api/v1/namespaces/corpus/finalize",
        dumped(made("v1", "Namespace", "other")),
    )
    yield Case("other: finalize of a word", "PUT", "/api/v1/namespaces/corpus/finalize", b'"x"')
    yield Case("other: a fixed namespace deleted", "DELETE", "/api/v1/namespaces/default")
    yield Case("other: a watch of a thing that is not served", "GET", "/api/v1/watch/odds")


def _verbs() -> Iterator[Case]:
    for method in METHODS:
        for path in (PODS, f"{PODS}/p"):
            yield Case(f"verb: {method[:10]} of {path.rpartition('/')[2]}", method, path)
    for method, path in (
        ("PUT", PODS), ("PATCH", PODS), ("POST", f"{PODS}/p"), ("PUT", "/api/v1/nodes"), ("POST", "/api/v1/nodes/n1"),
        ("DELETE", "/api/v1/namespaces"), ("POST", "/api/v1/pods"), ("PUT", "/api/v1/pods"), ("DELETE", "/api/v1"), ("DELETE", "/api/v1/pods"),
        ("PUT", f"{APPS}/deployments"), ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"), ("DELETE", f"{PODS}/p/log"),
    ):  # fmt: skip
        yield Case(f"verb: {method} of {path}", method, path, b"{}" if method != "GET" else None)
