"""Admission policies with parameters, written by a user who may read some of these and not others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubernetes.objects import Json
from kubernetes.policy_cases import bound, mutating, rule, validating

LIMITED_USER = "limited"
RBAC = "rbac.authorization.k8s.io"
CONFIG_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
UNKNOWN = {"apiVersion": "example.com/v1", "kind": "Gadget"}
REVIEWS = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
MAY = (("get", "configmaps", "", ""), ("get", "secrets", "default", "params"))
"""The verbs, resources, namespaces and names."""


def _granted(kind: str, *rules: Json) -> list[Json]:
    metadata = {"name": LIMITED_USER} | ({"namespace": "default"} if kind == "Role" else {})
    api = {"apiVersion": f"{RBAC}/v1", "metadata": metadata}
    return [
        api | {"kind": kind, "rules": list(rules)},
        api
        | {
            "kind": f"{kind}Binding",
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": LIMITED_USER},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": LIMITED_USER}],
        },
    ]


LIMITED = [
    *_granted(
        "ClusterRole",
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]},
    ),
    *_granted("Role", {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["params"]}),
]


def _rights(kind: str) -> Iterator[tuple[str, str, Json]]:
    """Who writes, how, and what. The policies are about a resource that is not there."""
    nothing = rule("gadgets", "example.com", "CREATE")

    def policy(name: str, param_kind: Json, **spec: Any) -> Json:
        whole: dict[str, Any] = {"rules": [nothing], "paramKind": param_kind, **spec}
        return validating(name, "true", **whole) if kind == "Validating" else mutating(name, "Object{}", **whole)

    def binding(name: str, of: str, /, **reference: Any) -> Json:
        spec: dict[str, Any] = {"paramRef": {"parameterNotFoundAction": "Deny", **reference}} if reference else {}
        return bound(of, name, kind=kind, **spec)

    def labelled(obj: Json, value: str) -> Json:
        names = {"name": obj["metadata"]["name"], "labels": {"a": value}}
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": names}

    limited, admin = LIMITED_USER, ""
    yield limited, "create", policy("readable", CONFIG_MAPS)
    for name, unreadable in {"secret": SECRETS, "unknown": UNKNOWN, "reviews": REVIEWS}.items():
        made = policy(name, unreadable)
        yield limited, "create", made
        yield limited, "apply", made
        for verb in ("update", "patch", "apply"):
            yield limited, verb, policy("readable", unreadable)
        yield admin, "create", made
        yield limited, "update", made
        yield limited, "patch", labelled(made, "b")
    yield limited, "create", policy("wrong", SECRETS, failurePolicy="wrong")

    everywhere, there = {"name": "params"}, {"name": "params", "namespace": "default"}
    selected = {"selector": {"matchLabels": {"a": "b"}}}
    for of in ("readable", "secret", "unknown", "reviews", "missing"):
        yield limited, "create", binding(f"{of}-everywhere", of, **everywhere)
        yield limited, "create", binding(f"{of}-there", of, **there)
        yield limited, "create", binding(f"{of}-other", of, **there | {"name": "other"})
        yield limited, "create", binding(f"{of}-selected", of, **selected)
        yield limited, "create", binding(f"{of}-selected-there", of, **selected, namespace="default")
        yield limited, "create", binding(f"{of}-plain", of)
        for verb in ("update", "patch", "apply"):
            yield limited, verb, binding(f"{of}-plain", of, **everywhere)
        yield admin, "create", binding(f"{of}-by-admin", of, **everywhere)
        yield limited, "patch", labelled(binding(f"{of}-by-admin", of), "b")
        yield limited, "patch", {**labelled(binding(f"{of}-by-admin", of), "b"), "spec": {"paramRef": None}}


RIGHTS = [*_rights("Validating"), *_rights("Mutating")]
