import asyncio
from typing import Any

import pytest

from server.identity.memory import Memory
from situate.server.identity.authorization.roles import BINDINGS, ROLES, BootstrapBinding, BootstrapRole
from situate.server.identity.bootstrap import SYSTEM_NAMESPACES, bootstrap
from situate.server.identity.ports import resource_of
from situate.server.requests import Object

RBAC = "rbac.authorization.k8s.io/v1"


@pytest.fixture
def memory() -> Memory:
    found = Memory()
    asyncio.run(bootstrap(found, "a certificate"))
    return found


def read(memory: Memory, plural: str, name: str, namespace: str = "", api: str = RBAC) -> Object:
    resource = resource_of(api, plural)
    held = memory.get(resource, namespace, name)
    assert held is not None, name
    return held.object(resource)


def kept(found: Object) -> Object:
    shown = {key: found[key] for key in ("rules", "subjects", "roleRef", "aggregationRule") if found.get(key)}
    return shown | {"labels": found["metadata"]["labels"]}


def recorded(facts: dict[str, Any]) -> dict[str, Any]:
    """Kubernetes' own, but for its controllers'."""
    return {key: value for key, value in facts["roles"].items() if "system:controller:" not in key}


def test_roles_and_bindings_are_exactly_those_of_kubernetes(facts: dict[str, Any]) -> None:
    made = {}
    every: list[BootstrapRole | BootstrapBinding] = [*ROLES, *BINDINGS]
    for one in every:
        if one.name.startswith("situate:"):
            continue
        found = one.object()
        place = f"{one.namespace}/{one.name}" if one.namespace else one.name
        made[f"{found['kind'].lower()}s/{place}"] = kept(found)
    assert made == recorded(facts)


def test_the_scheduler_cannot_do_more_than_it_must() -> None:
    rules = next(role.rules for role in ROLES if role.name == "system:kube-scheduler")
    verbs = {(resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs}
    assert not {("pods", "create"), ("nodes", "delete"), ("secrets", "get"), ("pods/eviction", "create")} & verbs


def test_namespaces_accounts_and_the_certificate_are_there(memory: Memory) -> None:
    for namespace in SYSTEM_NAMESPACES:
        read(memory, "namespaces", namespace, api="v1")
        read(memory, "serviceaccounts", "default", namespace, api="v1")
    shown = read(memory, "configmaps", "extension-apiserver-authentication", "kube-system", api="v1")
    assert shown["data"] == {"client-ca-file": "a certificate"}


def test_roles_that_gather_others_show_what_they_have(memory: Memory) -> None:
    view, edit, admin = (read(memory, "clusterroles", name)["rules"] for name in ("view", "edit", "admin"))
    assert {
        "apiGroups": ["situate.dev"],
        "resources": ["nodesnapshots", "placementdecisions"],
        "verbs": ["get", "list", "watch"],
    } in view
    assert all(rule in edit for rule in view)
    assert all(rule in admin for rule in edit)
    assert len(admin) > len(edit) > len(view)


def test_a_second_start_writes_nothing(memory: Memory) -> None:
    before = memory.revision
    assert asyncio.run(bootstrap(memory, "a certificate")) == 0
    assert memory.revision == before


def test_what_a_user_added_stays_and_what_is_missing_comes_back(memory: Memory) -> None:
    role = read(memory, "clusterroles", "system:volume-scheduler")
    mine = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}
    role["rules"] = [mine, *role["rules"][1:]]
    role["metadata"]["labels"] = {"mine": "yes"}
    memory.put(role)
    asyncio.run(bootstrap(memory, "a certificate"))
    after = read(memory, "clusterroles", "system:volume-scheduler")
    assert mine in after["rules"]
    assert after["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults", "mine": "yes"}
    verbs = {verb for rule in after["rules"] if "persistentvolumes" in rule["resources"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "patch", "update", "watch"}


def test_a_subject_that_was_taken_out_comes_back_beside_those_that_were_added(memory: Memory) -> None:
    binding = read(memory, "clusterrolebindings", "system:discovery")
    added = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "guests"}
    binding["subjects"] = [added]
    memory.put(binding)
    asyncio.run(bootstrap(memory, "a certificate"))
    names = [one["name"] for one in read(memory, "clusterrolebindings", "system:discovery")["subjects"]]
    assert names == ["guests", "system:authenticated"]


def test_what_says_no_to_updates_is_left_alone(memory: Memory) -> None:
    role = read(memory, "clusterroles", "system:discovery")
    role["rules"] = []
    role["metadata"]["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    memory.put(role)
    before = memory.revision
    asyncio.run(bootstrap(memory, "a certificate"))
    assert memory.revision == before


def test_a_new_certificate_replaces_the_old_one(memory: Memory) -> None:
    asyncio.run(bootstrap(memory, "another"))
    shown = read(memory, "configmaps", "extension-apiserver-authentication", "kube-system", api="v1")
    assert shown["data"] == {"client-ca-file": "another"}
