"""RoleBinding and ClusterRoleBinding."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import path_segment, subdomain
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object
from situate.server.tables.columns import printer

GROUP: Final = "rbac.authorization.k8s.io"
USER, USERS, ACCOUNT = "User", "Group", "ServiceAccount"


def _default_binding(obj: Object) -> None:
    reference = obj.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    reference.setdefault("kind", "")
    reference.setdefault("name", "")
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in (USER, USERS):
            subject["apiGroup"] = GROUP


def _validate_binding(obj: Object, kinds: tuple[str, ...], causes: Causes) -> None:
    reference = obj.get("roleRef", {})
    if reference.get("apiGroup", "") != GROUP:
        causes.not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP])
    causes.one_of(reference.get("kind", ""), kinds, "roleRef.kind")
    causes.require_valid(path_segment, reference.get("name", ""), "roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        _subject(subject, f"subjects[{index}]", causes, namespaced=len(kinds) > 1)


def _subject(subject: Mapping[str, Any], path: str, causes: Causes, *, namespaced: bool) -> None:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    causes.require(name, f"{path}.name")
    if kind == ACCOUNT:
        if name:
            causes.check(subdomain, name, f"{path}.name")
        if group:
            causes.not_supported(f"{path}.apiGroup", group, [""])
        if not namespaced and not subject.get("namespace"):
            causes.required(f"{path}.namespace")
    elif kind in (USER, USERS):
        if group != GROUP:
            causes.not_supported(f"{path}.apiGroup", group, [GROUP])
    else:
        causes.not_supported(f"{path}.kind", kind, [ACCOUNT, USER, USERS])


def _validate_role_binding(obj: Object, causes: Causes) -> None:
    _validate_binding(obj, ("Role", "ClusterRole"), causes)


def _validate_cluster_role_binding(obj: Object, causes: Causes) -> None:
    _validate_binding(obj, ("ClusterRole",), causes)


def _same_role(new: Object, old: Object, causes: Causes) -> None:
    reference = new.get("roleRef", {})
    if reference != old.get("roleRef", {}):
        shown = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
        value = {word: reference.get(key, "") for word, key in shown.items()}
        causes.invalid("roleRef", value, "cannot change roleRef")


def _validate_role_binding_update(new: Object, old: Object, causes: Causes) -> None:
    _validate_role_binding(new, causes)
    _same_role(new, old, causes)


def _validate_cluster_role_binding_update(new: Object, old: Object, causes: Causes) -> None:
    _validate_cluster_role_binding(new, causes)
    _same_role(new, old, causes)


def _role(obj: Object) -> str:
    role = obj.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str, obj: Object) -> str:
    found = [one for one in obj.get("subjects") or () if one.get("kind") == kind]
    prefixes = [f"{one.get('namespace', '')}/" if kind == ACCOUNT else "" for one in found]
    return ", ".join([f"{prefix}{one.get('name', '')}" for prefix, one in zip(prefixes, found, strict=True)])


_PRINTER: Final = printer(
    "Name!, Role, Age, +Users, +Groups, +ServiceAccounts",
    {
        "Role": _role,
        "Users": partial(_subjects, USER),
        "Groups": partial(_subjects, USERS),
        "ServiceAccounts": partial(_subjects, ACCOUNT),
    },
)


CLUSTER_KIND: Final = Kind(
    "rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding C - -",
    strategy=Strategy(
        default=_default_binding,
        validate=_validate_cluster_role_binding,
        validate_update=_validate_cluster_role_binding_update,
        name_rule=path_segment,
        creates_on_update=True,
    ),
    printer=_PRINTER,
    description="ClusterRoleBinding grants the rights of a cluster role in the whole cluster.",
)

KIND: Final = Kind(
    "rbac.authorization.k8s.io/v1 rolebindings RoleBinding N - -",
    strategy=Strategy(
        default=_default_binding,
        validate=_validate_role_binding,
        validate_update=_validate_role_binding_update,
        name_rule=path_segment,
        creates_on_update=True,
    ),
    printer=_PRINTER,
    description="RoleBinding grants the rights of a role to users, groups or service accounts in a namespace.",
)
