"""Expressions of admission: webhooks' match conditions, and admission policies.

`object` and `oldObject` are of any type, `request` is an AdmissionRequest without them, `namespaceObject` the namespace
as far as Kubernetes shows it, and `authorizer` answers whether the user of the request may do something.
"""

from collections.abc import Mapping
from functools import cache
from typing import Final

from situate.core.cel.compiler import Expression, compile_expression
from situate.core.cel.environment import Environment, make_environment
from situate.core.cel.libraries.authorization import AUTHORIZER, RESOURCE_CHECK
from situate.core.cel.libraries.kubernetes import LIBRARIES
from situate.core.cel.types import BOOL, DYN, INT, STRING, TIMESTAMP, CelType, list_of, map_of, struct

_REQUEST: Final = "kubernetes.AdmissionRequest"
_NAMESPACE: Final = "kubernetes.Namespace"
_KIND: Final = struct("kubernetes.GroupVersionKind")
_RESOURCE: Final = struct("kubernetes.GroupVersionResource")
_STRINGS: Final = list_of(STRING)
_TEXTS: Final = map_of(STRING, STRING)
FIELDS: Final[Mapping[str, Mapping[str, CelType]]] = {
    _KIND.name: dict.fromkeys(("group", "version", "kind"), STRING),
    _RESOURCE.name: dict.fromkeys(("group", "version", "resource"), STRING),
    "kubernetes.UserInfo": {
        "username": STRING,
        "uid": STRING,
        "groups": _STRINGS,
        "extra": map_of(STRING, _STRINGS),
    },
    _REQUEST: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": BOOL,
        "options": DYN,
    },
    "kubernetes.NamespaceSpec": {"finalizers": _STRINGS},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), STRING),
        "lastTransitionTime": TIMESTAMP,
    },
    "kubernetes.NamespaceStatus": {"conditions": list_of(struct("kubernetes.NamespaceCondition")), "phase": STRING},
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), STRING),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), TIMESTAMP),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), INT),
        "finalizers": _STRINGS,
    },
    _NAMESPACE: {
        "metadata": struct("kubernetes.NamespaceMetadata"),
        "spec": struct("kubernetes.NamespaceSpec"),
        "status": struct("kubernetes.NamespaceStatus"),
    },
}


@cache
def admission_environment(*, has_params: bool = False, has_authorizer: bool = True) -> Environment:
    variables: dict[str, CelType] = {
        "object": DYN,
        "oldObject": DYN,
        "namespaceObject": struct(_NAMESPACE),
        "request": struct(_REQUEST),
    }
    if has_params:
        variables["params"] = DYN
    if has_authorizer:
        variables |= {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
    return make_environment(LIBRARIES, variables, FIELDS)


def compile_condition(text: str, *, has_params: bool = False) -> Expression:
    """Raises CompileError."""
    return compile_expression(
        text,
        admission_environment(has_params=has_params),
        lambda found: None if found == BOOL else f"must evaluate to bool but got {found}",
    )
