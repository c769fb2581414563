"""A user who creates an object needs the right to create it, whatever the method of the request."""

import json
from collections.abc import Iterator

import pytest

from server.faults.process import Plane
from server.faults.wire import Answer, Wire

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/corpus/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/corpus/leases"
APPLY = "Content-Type: application/apply-patch+yaml"
RULES = {
    "patcher": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "patch"]}],
    "updater": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "update"]}],
    "creator": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "update", "patch", "create"]}],
    "by-name": [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["patch", "update"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["create"], "resourceNames": ["mine"]},
    ],
}


@pytest.fixture(scope="module")
def users(plane: Plane) -> Iterator[Wire]:
    with Wire(plane.port, plane.admin()) as wire:
        for user, rules in RULES.items():
            role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": user}}
            assert wire.send("POST", f"{RBAC}/clusterroles", role | {"rules": rules}).code == 201
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user}
            subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
            binding = role | {"kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [subject]}
            assert wire.send("POST", f"{RBAC}/clusterrolebindings", binding).code == 201
        yield wire


def apply(wire: Wire, user: str, name: str, query: str = "") -> Answer:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": user}}
    path = f"{CONFIG_MAPS}/{name}?fieldManager=test{query}"
    return wire.ask("PATCH", path, json.dumps(body).encode(), [f"Impersonate-User: {user}", APPLY])


def put(wire: Wire, user: str, name: str, query: str = "", version: str = "") -> Answer:
    metadata = {"name": name, "resourceVersion": version} if version else {"name": name}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    lines = [f"Impersonate-User: {user}", "Content-Type: application/json"]
    return wire.ask("PUT", f"{LEASES}/{name}{query}", json.dumps(body).encode(), lines)


def forbidden(user: str, plural: str, group: str, name: str) -> str:
    kind = f"{plural}.{group}" if group else plural
    return (
        f'{kind} "{name}" is forbidden: User "{user}" cannot create resource "{plural}" in API group "{group}" '
        'in the namespace "corpus"'
    )


@pytest.mark.parametrize("query", ["", "&dryRun=All"])
def test_an_apply_creates_nothing_without_the_right_to_create(users: Wire, query: str) -> None:
    answer = apply(users, "patcher", "absent", query)
    assert (answer.code, answer.json()["message"]) == (403, forbidden("patcher", "configmaps", "", "absent"))
    assert users.ask("GET", f"{CONFIG_MAPS}/absent").code == 404


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
def test_an_update_creates_nothing_without_the_right_to_create(users: Wire, query: str) -> None:
    answer = put(users, "updater", "absent", query)
    expected = forbidden("updater", "leases", "coordination.k8s.io", "absent")
    assert (answer.code, answer.json()["message"]) == (403, expected)
    assert users.ask("GET", f"{LEASES}/absent").code == 404


def test_with_that_right_both_create_and_say_so(users: Wire) -> None:
    assert apply(users, "creator", "applied").code == 201
    made = put(users, "creator", "put")
    assert made.code == 201
    # A user who may not create it may still change it.
    assert apply(users, "patcher", "applied", "&force=true").code == 200
    assert put(users, "updater", "put", version=made.json()["metadata"]["resourceVersion"]).code == 200


def test_the_right_to_create_may_be_limited_to_a_name(users: Wire) -> None:
    assert apply(users, "by-name", "mine").code == 201
    assert put(users, "by-name", "mine").code == 201
    assert apply(users, "by-name", "other").code == 403
    assert put(users, "by-name", "other").code == 403


def test_a_role_with_a_hundred_million_combinations_is_refused_at_once(users: Wire) -> None:
    """The user may create it, and has to have all of its rights: to look at each would stop the server."""
    words = [f"w{number}" for number in range(10_000)]
    rules = [{"apiGroups": words, "resources": words, "verbs": ["get", "watch"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "large"}, "rules": rules}
    lines = ["Impersonate-User: creator", "Content-Type: application/json"]
    answer = users.ask("POST", f"{RBAC}/namespaces/corpus/roles", json.dumps(role).encode(), lines)
    assert (answer.code, answer.json()["reason"]) == (403, "Forbidden")
    assert "split them into several roles" in answer.json()["message"]
