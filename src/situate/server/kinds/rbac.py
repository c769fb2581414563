"""rbac.authorization.k8s.io/v1: roles and their bindings. Who may grant what is not asked here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from situate.server.errors import Cause
from situate.server.kinds.matching import usable_selector
from situate.server.kinds.naming import path_segment, subdomain
from situate.server.kinds.strategy import Strategy
from situate.server.kinds.validating import Causes, check, invalid, not_supported, required
from situate.server.requests import Object

__all__ = ["STRATEGIES"]

GROUP: Final = "rbac.authorization.k8s.io"
USER, USERS, ACCOUNT = "User", "Group", "ServiceAccount"


# ── roles ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _validate_role(obj: Object) -> list[Cause]:
    causes: Causes = []
    for index, rule in enumerate(obj.get("rules") or ()):
        _rule(rule, f"rules[{index}]", causes, namespaced=True)
    return causes


def _validate_cluster_role(obj: Object) -> list[Cause]:
    causes: Causes = []
    for index, rule in enumerate(obj.get("rules") or ()):
        _rule(rule, f"rules[{index}]", causes, namespaced=False)
    if "aggregationRule" in obj:
        _aggregation(obj["aggregationRule"].get("clusterRoleSelectors", ()), causes)
    return causes


def _rule(rule: Mapping[str, Any], path: str, causes: Causes, *, namespaced: bool) -> None:
    if not rule.get("verbs"):
        causes.append(required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            causes.append(invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            causes.append(invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs"))
        return
    if not rule.get("apiGroups"):
        causes.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        causes.append(required(f"{path}.resources", "resource rules must supply at least one resource"))


def _aggregation(selectors: Any, causes: Causes) -> None:
    at = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        causes.append(required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
    for index, selector in enumerate(selectors):
        if not usable_selector(selector, f"{at}[{index}]", causes):
            causes.append(invalid(f"{at}[{index}]", None, "invalid label selector."))


def _validate_role_update(new: Object, _old: Object) -> list[Cause]:
    return _validate_role(new)


def _validate_cluster_role_update(new: Object, _old: Object) -> list[Cause]:
    return _validate_cluster_role(new)


# ── bindings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _default_binding(obj: Object) -> None:
    reference = obj.setdefault("roleRef", {})
    if not reference.get("apiGroup"):
        reference["apiGroup"] = GROUP
    reference.setdefault("kind", "")
    reference.setdefault("name", "")
    for subject in obj.get("subjects") or ():
        if not subject.get("apiGroup") and subject.get("kind") in (USER, USERS):
            subject["apiGroup"] = GROUP


def _validate_binding(obj: Object, kinds: tuple[str, ...]) -> list[Cause]:
    causes: Causes = []
    reference = obj.get("roleRef", {})
    if reference.get("apiGroup", "") != GROUP:
        causes.append(not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), [GROUP]))
    if reference.get("kind", "") not in kinds:
        causes.append(not_supported("roleRef.kind", reference.get("kind", ""), kinds))
    if reference.get("name"):
        check(path_segment, reference["name"], "roleRef.name", causes)
    else:
        causes.append(required("roleRef.name"))
    for index, subject in enumerate(obj.get("subjects") or ()):
        _subject(subject, f"subjects[{index}]", causes, namespaced=len(kinds) > 1)
    return causes


def _subject(subject: Mapping[str, Any], path: str, causes: Causes, *, namespaced: bool) -> None:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    if not name:
        causes.append(required(f"{path}.name"))
    if kind == ACCOUNT:
        if name:
            check(subdomain, name, f"{path}.name", causes)
        if group:
            causes.append(not_supported(f"{path}.apiGroup", group, [""]))
        if not namespaced and not subject.get("namespace"):
            causes.append(required(f"{path}.namespace"))
    elif kind in (USER, USERS):
        if group != GROUP:
            causes.append(not_supported(f"{path}.apiGroup", group, [GROUP]))
    else:
        causes.append(not_supported(f"{path}.kind", kind, [ACCOUNT, USER, USERS]))


def _validate_role_binding(obj: Object) -> list[Cause]:
    return _validate_binding(obj, ("Role", "ClusterRole"))


def _validate_cluster_role_binding(obj: Object) -> list[Cause]:
    return _validate_binding(obj, ("ClusterRole",))


def _same_role(new: Object, old: Object, causes: Causes) -> list[Cause]:
    reference = new.get("roleRef", {})
    if reference != old.get("roleRef", {}):
        shown = {"APIGroup": "apiGroup", "Kind": "kind", "Name": "name"}
        value = {word: reference.get(key, "") for word, key in shown.items()}
        causes.append(invalid("roleRef", value, "cannot change roleRef"))
    return causes


def _validate_role_binding_update(new: Object, old: Object) -> list[Cause]:
    return _same_role(new, old, _validate_role_binding(new))


def _validate_cluster_role_binding_update(new: Object, old: Object) -> list[Cause]:
    return _same_role(new, old, _validate_cluster_role_binding(new))


STRATEGIES: Final[Mapping[str, Strategy]] = {
    f"{GROUP}/Role": Strategy(
        validate=_validate_role,
        validate_update=_validate_role_update,
        name_rule=path_segment,
        creates_on_update=True,
    ),
    f"{GROUP}/ClusterRole": Strategy(
        validate=_validate_cluster_role,
        validate_update=_validate_cluster_role_update,
        name_rule=path_segment,
        creates_on_update=True,
    ),
    f"{GROUP}/RoleBinding": Strategy(
        default=_default_binding,
        validate=_validate_role_binding,
        validate_update=_validate_role_binding_update,
        name_rule=path_segment,
        creates_on_update=True,
    ),
    f"{GROUP}/ClusterRoleBinding": Strategy(
        default=_default_binding,
        validate=_validate_cluster_role_binding,
        validate_update=_validate_cluster_role_binding_update,
        name_rule=path_segment,
        creates_on_update=True,
    ),
}
