"""The table of bootstrap roles; test_bootstrap.py compares Kubernetes' own with a real kube-apiserver's."""

from situate.kube.kinds import CUSTOM_POD_GROUPS
from situate.server.identity.authorization.roles import ROLES


def test_our_own_roles_have_the_rights_that_kinds_declare() -> None:
    rules = {role.name: role.object()["rules"] for role in ROLES if role.name.startswith("situate:")}
    podgroups, ours = ["scheduling.x-k8s.io"], ["situate.dev"]
    assert {"verbs": ["patch", "update"], "apiGroups": podgroups, "resources": ["podgroups/status"]} in rules[
        "situate:scheduler"
    ]
    others = {kind.group for kind in CUSTOM_POD_GROUPS} - {*podgroups}
    readable = [one for one in rules["situate:scheduler"] if {*one.get("apiGroups", ())} == others]
    assert [(one["verbs"], one["resources"]) for one in readable] == [(["list", "watch"], ["podgroups"])]
    assert rules["situate:node"] == [
        {"verbs": ["get", "list", "watch"], "apiGroups": ours, "resources": ["nodesnapshots"]}
    ]
    assert rules["situate:node-bootstrapper"] == [{"verbs": ["create"], "apiGroups": ours, "resources": ["nodejoins"]}]
    assert [rule["resources"] for rule in rules["situate:aggregate-to-edit"]] == [["podgroups"]]
