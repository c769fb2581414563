import asyncio
import base64
from typing import Any

import pytest

from server.identity.memory import Memory
from situate.server.errors import StatusError, already_exists, conflict
from situate.server.identity.authorization.roles import BINDINGS, ROLES, BootstrapBinding, BootstrapRole
from situate.server.identity.bootstrap import REQUEST_HEADERS, SYSTEM_NAMESPACES, bootstrap, publish_authorities
from situate.server.identity.ports import resource_of
from situate.server.requests import Caller, Object, Target

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
    """Kubernetes' own; of its controllers', those that ours have."""
    served = ("system:controller:resource-claim-controller",)
    return {
        key: value for key, value in facts["roles"].items() if "system:controller:" not in key or key.endswith(served)
    }


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
    assert shown["data"] == {
        "client-ca-file": "a certificate",
        "requestheader-client-ca-file": "a certificate",
        **REQUEST_HEADERS,
    }


def test_roles_that_gather_others_show_what_they_have(memory: Memory) -> None:
    view, edit, admin = (read(memory, "clusterroles", name)["rules"] for name in ("view", "edit", "admin"))
    assert {
        "apiGroups": ["situate.dev"],
        "resources": ["devicepools", "nodesnapshots", "placementdecisions"],
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
    assert shown["data"]["client-ca-file"] == "another"


def written(memory: Memory, certificate: str = "a certificate", *more: Object) -> int:
    """How many objects it says it wrote, which must be how many it wrote."""
    before = memory.revision
    found = asyncio.run(bootstrap(memory, certificate, more))
    assert found == memory.revision - before
    return found


def test_it_says_how_much_it_wrote() -> None:
    memory = Memory()
    extra = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "data": {}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "not ours"}}
    assert written(memory, "a certificate", extra, namespace) > 50
    read(memory, "configmaps", "x", "default", "v1")
    assert memory.get(resource_of("v1", "namespaces"), "", "not ours") is None
    assert written(memory, "another") == 2
    memory.remove(resource_of("v1", "serviceaccounts"), "default", "default")
    assert written(memory, "another") == 1


def test_a_new_authority_is_published_where_servers_and_nodes_look(memory: Memory) -> None:
    before = memory.revision
    asyncio.run(publish_authorities(memory, "another"))
    assert memory.revision == before + 2
    shown = read(memory, "configmaps", "extension-apiserver-authentication", "kube-system", api="v1")
    assert shown["data"]["client-ca-file"] == "another"
    info = read(memory, "configmaps", "cluster-info", "kube-public", api="v1")
    assert base64.b64encode(b"another").decode() in info["data"]["kubeconfig"]


def test_what_somebody_added_to_a_config_map_stays(memory: Memory) -> None:
    shown = read(memory, "configmaps", "extension-apiserver-authentication", "kube-system", api="v1")
    memory.put(shown | {"data": {"mine": "x"}})
    assert written(memory) == 1
    shown = read(memory, "configmaps", "extension-apiserver-authentication", "kube-system", api="v1")
    assert (shown["data"]["mine"], shown["data"]["client-ca-file"]) == ("x", "a certificate")


def test_a_role_that_lost_what_it_gathers_gathers_again(memory: Memory) -> None:
    role = read(memory, "clusterroles", "view")
    rule, rules = role.pop("aggregationRule"), role.pop("rules")
    memory.put(role)
    assert written(memory) == 2
    assert (read(memory, "clusterroles", "view")["aggregationRule"], role["metadata"]["name"]) == (rule, "view")
    assert read(memory, "clusterroles", "view")["rules"] == rules


def test_what_a_role_gathers_is_not_changed_and_rules_are_not_added_to_it(memory: Memory) -> None:
    other = {"clusterRoleSelectors": [{"matchLabels": {"mine": "yes"}}]}
    memory.put(read(memory, "clusterroles", "view") | {"aggregationRule": other})
    memory.put(read(memory, "clusterroles", "system:discovery") | {"aggregationRule": other, "rules": []})
    written(memory)
    assert read(memory, "clusterroles", "view")["aggregationRule"] == other
    assert read(memory, "clusterroles", "view")["rules"] == []
    assert read(memory, "clusterroles", "system:discovery")["rules"] == []


def test_a_binding_to_another_role_keeps_its_subjects(memory: Memory) -> None:
    binding = read(memory, "clusterrolebindings", "system:discovery")
    binding["roleRef"] = binding["roleRef"] | {"name": "other"}
    memory.put(binding | {"subjects": []})
    assert written(memory) == 0
    assert read(memory, "clusterrolebindings", "system:discovery")["subjects"] == []


def test_namespaces_and_accounts_are_left_as_they_are(memory: Memory) -> None:
    memory.put(read(memory, "namespaces", "default", api="v1") | {"spec": {"finalizers": ["x"]}})
    memory.put(read(memory, "serviceaccounts", "default", "default", api="v1") | {"secrets": [{"name": "x"}]})
    assert written(memory) == 0


class Raced(Memory):
    """A registry on whose store another server is faster, or which fails."""

    error: StatusError

    async def create(self, target: Target, obj: Object, caller: Caller) -> Any:
        raise self.error


@pytest.mark.parametrize(
    "error, passes",
    [
        (already_exists("namespaces", "", "x"), True),
        (conflict("namespaces", "", "x"), False),
        (StatusError(403, "AlreadyExists", "x"), False),
        (StatusError(500, "InternalError", "x"), False),
    ],
)
def test_another_server_may_be_faster_and_any_other_failure_is_told(error: StatusError, passes: bool) -> None:
    memory = Raced()
    memory.error = error
    if passes:
        assert asyncio.run(bootstrap(memory, "a certificate")) == 0
        return
    with pytest.raises(StatusError) as raised:
        asyncio.run(bootstrap(memory, "a certificate"))
    assert raised.value is error


def test_a_role_that_gathers_nothing_is_not_rewritten(memory: Memory) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": []}
    memory.put({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "mine"}, "rules": [rule]})
    assert written(memory) == 0
    assert read(memory, "clusterroles", "mine")["rules"] == [rule]
