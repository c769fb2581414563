"""What the manifests allow the scheduler, and what the code asks the API server for, in the same words."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from situate.core.config.types import KubeSchedulerConfiguration
from situate.kube.kinds import ALL_KINDS
from situate.kube.needed_kinds import needed_kinds
from situate.kube.preflight import rights_of
from situate.loop.election import ElectionRules

Json = dict[str, Any]

ROOT = Path(__file__).parent.parent.parent
KUSTOMIZE = ROOT / "deploy" / "kustomize"
ACCOUNT = {"kind": "ServiceAccount", "name": "situate", "namespace": "situate-system"}
USER = "system:serviceaccount:situate-system:situate"


class Allowed(NamedTuple):
    """One verb on one resource; everywhere, unless a namespace is named, and on all, unless a name is."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


# Beside what rights_of() says that a scheduler cannot do without.
PATCH_GROUPS = Allowed("patch", "scheduling.k8s.io", "podgroups/status")
REVIEW_TOKENS = Allowed("create", "authentication.k8s.io", "tokenreviews")
REVIEW_ACCESS = Allowed("create", "authorization.k8s.io", "subjectaccessreviews")
READ_AUTHORITIES = Allowed("get", "", "configmaps", "kube-system", "extension-apiserver-authentication")
PUBLISH = Allowed("patch", "", "configmaps", "kube-system", "situate-schedulers")
OPTIONAL = {
    Allowed(verb, kind.group, kind.resource) for kind in ALL_KINDS if kind.optional for verb in ("list", "watch")
}


def objects_of(*files: Path) -> list[Json]:
    return [item for file in files for item in yaml.safe_load_all(file.read_text()) if item]


def allowed(objects: Iterable[Json], account: Json = ACCOUNT) -> set[Allowed]:
    """All that the bindings among these objects give to an account."""
    found = list(objects)
    roles = {(item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in found}
    given: set[Allowed] = set()
    for item in found:
        if item["kind"] not in ("RoleBinding", "ClusterRoleBinding") or account not in item["subjects"]:
            continue
        namespace, ref = item["metadata"].get("namespace", ""), item["roleRef"]
        role = roles[ref["kind"], namespace if ref["kind"] == "Role" else "", ref["name"]]
        for rule in role["rules"]:
            given.update(_expanded(rule, namespace))
    return given


def _expanded(rule: Json, namespace: str) -> Iterator[Allowed]:
    for verb in rule["verbs"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for name in rule.get("resourceNames", ("",)):
                    yield Allowed(verb, group, resource, namespace, name)


def needed(config: KubeSchedulerConfiguration) -> set[Allowed]:
    """All that a scheduler of this configuration may ask the API server for."""
    rules = ElectionRules.of(config.leader_election)
    stated = rights_of(config, needed_kinds(config), rules)
    named = {Allowed(one.verb, one.group, one.full, one.namespace, one.name) for one in stated}
    return named | OPTIONAL | {PATCH_GROUPS, REVIEW_TOKENS, REVIEW_ACCESS, READ_AUTHORITIES, PUBLISH}
