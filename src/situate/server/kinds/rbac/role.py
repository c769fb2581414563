"""Role and ClusterRole. identity/ checks who may grant what."""

from collections.abc import Mapping
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.label_selectors import validate_selector
from situate.server.kinds.names import path_segment
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object

GROUP: Final = "rbac.authorization.k8s.io"


def _validate_role(obj: Object, causes: Causes) -> None:
    for index, rule in enumerate(obj.get("rules") or ()):
        _rule(rule, f"rules[{index}]", causes, namespaced=True)


def _validate_cluster_role(obj: Object, causes: Causes) -> None:
    for index, rule in enumerate(obj.get("rules") or ()):
        _rule(rule, f"rules[{index}]", causes, namespaced=False)
    if "aggregationRule" in obj:
        _aggregation(obj["aggregationRule"].get("clusterRoleSelectors", ()), causes)


def _rule(rule: Mapping[str, Any], path: str, causes: Causes, *, namespaced: bool) -> None:
    causes.require(rule.get("verbs"), f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            causes.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            causes.invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs")
        return
    if not rule.get("apiGroups"):
        causes.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        causes.required(f"{path}.resources", "resource rules must supply at least one resource")


def _aggregation(selectors: Any, causes: Causes) -> None:
    at = "aggregationRule.clusterRoleSelectors"
    if not selectors:
        causes.required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        if not validate_selector(selector, f"{at}[{index}]", causes):
            causes.invalid(f"{at}[{index}]", None, "invalid label selector.")


CLUSTER_KIND: Final = Kind(
    "rbac.authorization.k8s.io/v1 clusterroles ClusterRole C - -",
    strategy=Strategy(
        validate=_validate_cluster_role,
        validate_update=again(_validate_cluster_role),
        name_rule=path_segment,
        creates_on_update=True,
    ),
    description="ClusterRole is a list of rights in all namespaces and on cluster-wide objects.",
)

KIND: Final = Kind(
    "rbac.authorization.k8s.io/v1 roles Role N - -",
    strategy=Strategy(
        validate=_validate_role,
        validate_update=again(_validate_role),
        name_rule=path_segment,
        creates_on_update=True,
    ),
    description="Role is a list of rights in a namespace.",
)
