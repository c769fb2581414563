"""Admission policies: what is refused when they are written, and what they say of writes, as on kube-apiserver."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kubernetes.api import path_of
from kubernetes.cluster import Cluster
from kubernetes.objects import Json
from kubernetes.own_cluster import OwnCluster
from kubernetes.parts import wait_until
from kubernetes.policy_cases import CASES, INVALID, config_map
from kubernetes.policy_rights import LIMITED, LIMITED_USER, MAY, RIGHTS

WITHIN_S = 20.0
LABEL = "case"
IN_EFFECT = {
    "deny": "failed expression",
    "unknown-params": "paramKind",
    "params": "at most",
    "failing": "no such key",
    "selected": "request: 3",
}
"""Cases, and what is said of an object when their policies and parameters are known."""
GENERATED = re.compile(r"(?<=prefix)-[a-z0-9]{5}\b")


class Said(NamedTuple):
    """A server's answer."""

    code: int
    message: str
    causes: list[Any]
    content: Any
    """Of the object that was written."""


def send(cluster: Cluster, verb: str, obj: Json, user: str = "") -> Said:
    """`user`: in whose name."""
    path = path_of(obj, cluster.namespace)
    named = f"{path}/{obj['metadata'].get('name', '')}"
    body = json.dumps(obj).encode()
    if verb == "create":
        code, answer = cluster.api.ask("POST", path, body, user=user)
    elif verb == "update":
        code, answer = cluster.api.ask("PUT", named, body, user=user)
    elif verb == "patch":
        code, answer = cluster.api.ask("PATCH", named, body, "application/merge-patch+json", user)
    elif verb == "apply":
        code, answer = cluster.api.ask(
            "PATCH", f"{named}?fieldManager=a&force=true", body, "application/apply-patch+yaml", user
        )
    else:
        code, answer = cluster.api.ask("DELETE", named, None, user=user)
    if code >= 400:
        causes = (answer.get("details") or {}).get("causes", [])
        text = json.dumps([f"{answer.get('reason')}: {answer['message']}", causes])
        message, causes = json.loads(GENERATED.sub("-NAME", text).replace(cluster.namespace, "NAMESPACE"))
        return Said(code, message, causes, None)
    metadata = answer["metadata"]
    marks = {key: metadata.get(key) for key in ("labels", "annotations")}
    return Said(code, "", [], {key: answer.get(key) for key in ("data", "spec")} | marks)


def selected(obj: Json, case: str) -> Json:
    """A policy that is about the objects of its case only, and an object of it."""
    obj = json.loads(json.dumps(obj))
    if obj["kind"].endswith("AdmissionPolicy"):
        obj["spec"]["matchConstraints"]["objectSelector"] = {"matchLabels": {LABEL: case}}
    elif not obj["kind"].endswith("Binding"):
        obj["metadata"].setdefault("labels", {})[LABEL] = case
    return obj


def told(cluster: Cluster) -> dict[str, list[Said]]:
    for case, (there, _) in CASES.items():
        for obj in there:
            # Parameters have no label of the case: the policy would be about them, too.
            made = obj if obj["kind"] == "ConfigMap" else selected(obj, case)
            said = send(cluster, "create", made)
            assert said.code == 201, said
    for case, text in IN_EFFECT.items():
        probe = selected(config_map("probe", a="a long one"), case)
        wait_until(partial(refuses, cluster, probe, text), f"the policies of {case} to be in effect", WITHIN_S)
    return {
        case: [send(cluster, verb, selected(obj, case)) for verb, obj in writes] for case, (_, writes) in CASES.items()
    }


def refuses(cluster: Cluster, obj: Json, text: str) -> bool:
    path = f"{path_of(obj, cluster.namespace)}?dryRun=All"
    code, answer = cluster.api.ask("POST", path, json.dumps(obj).encode())
    return code >= 400 and text in answer["message"]


def test_what_is_wrong_with_a_policy_is_said_in_kube_apiservers_words(cluster: Cluster, tmp_path: Path) -> None:
    with OwnCluster(tmp_path / "own") as own:
        for obj in INVALID:
            theirs, ours = send(cluster, "create", obj), send(own, "create", obj)
            if theirs.code == 201:
                send(cluster, "delete", obj)
            assert ours == theirs, obj["metadata"]


def test_policies_say_of_writes_what_kube_apiservers_say(cluster: Cluster, tmp_path: Path) -> None:
    try:
        theirs = told(cluster)
    finally:
        remove_policies(cluster)
    with OwnCluster(tmp_path / "own") as own:
        own.namespace = own.new_namespace("policies")
        ours = told(own)
    assert ours == theirs


def test_who_may_not_read_parameters_may_not_name_them_either(cluster: Cluster, tmp_path: Path) -> None:
    try:
        theirs = told_to_limited_user(cluster)
    finally:
        for obj in (*[obj for _, _, obj in RIGHTS], *LIMITED):
            send(cluster, "delete", obj)
    with OwnCluster(tmp_path / "own") as own:
        ours = told_to_limited_user(own)
    for (who, verb, obj), one, other in zip(RIGHTS, ours, theirs, strict=True):
        assert one == other, f"{who} {verb} {json.dumps(obj)}"
    assert {one.code for one in theirs} == {200, 201, 422}


def told_to_limited_user(cluster: Cluster) -> list[Said]:
    for obj in LIMITED:
        assert send(cluster, "create", obj).code == 201
    for verb, resource, namespace, name in MAY:
        asked = {"verb": verb, "resource": resource, "namespace": namespace, "name": name}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        spec = {"user": LIMITED_USER, "groups": ["system:authenticated"], "resourceAttributes": asked}
        wait_until(
            partial(allowed, cluster, review | {"spec": spec}), f"{LIMITED_USER} to be allowed to {asked}", WITHIN_S
        )
    return [send(cluster, verb, current(cluster, verb, obj), who) for who, verb, obj in RIGHTS]


def allowed(cluster: Cluster, review: Json) -> bool:
    answer = cluster.api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def current(cluster: Cluster, verb: str, obj: Json) -> Json:
    """With the resourceVersion that an update of a policy or a binding needs."""
    if verb != "update":
        return obj
    there = cluster.api.get(f"{path_of(obj, cluster.namespace)}/{obj['metadata']['name']}")
    return obj | {"metadata": obj["metadata"] | {"resourceVersion": there["metadata"]["resourceVersion"]}}


def remove_policies(cluster: Cluster) -> None:
    for name, (there, _) in CASES.items():
        for obj in there:
            if obj["kind"] != "ConfigMap":
                send(cluster, "delete", selected(obj, name))
    # Whatever the test made can be deleted when they are out of effect.
    probes = [selected(config_map("probe", a="a long one"), case) for case in IN_EFFECT]
    wait_until(lambda: not any(refuses(cluster, one, "") for one in probes), "the policies to be gone", WITHIN_S)
