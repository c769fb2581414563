"""Namespaces. Their own finalizer holds one until everything in it is deleted."""

from collections.abc import Mapping
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.metadata import kube_finalizer
from situate.server.kinds.names import dns_label
from situate.server.kinds.strategy import Strategy, again, keep_status
from situate.server.objects import Object

NAME_LABEL: Final = "kubernetes.io/metadata.name"
KUBERNETES: Final = "kubernetes"


def _default(namespace: Object) -> None:
    meta = namespace.setdefault("metadata", {})
    if name := meta.get("name"):
        meta.setdefault("labels", {})[NAME_LABEL] = name
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def _prepare_create(namespace: Object) -> None:
    namespace["status"] = {"phase": "Active"}
    finalizers = namespace.setdefault("spec", {}).setdefault("finalizers", [])
    if KUBERNETES not in finalizers:
        finalizers.append(KUBERNETES)
    _default(namespace)  # the registry may have generated the name after the first call


def _prepare_update(new: Object, old: Object) -> None:
    """Only the `finalize` subresource changes finalizers."""
    keep_status(new, old)
    spec, was = new.setdefault("spec", {}), old.get("spec", {})
    if "finalizers" in was:
        spec["finalizers"] = was["finalizers"]
    else:
        spec.pop("finalizers", None)


def _validate(namespace: Object, causes: Causes) -> None:
    for one in namespace.get("spec", {}).get("finalizers", ()):
        _finalizer(one, "spec.finalizers", causes)


def _finalizer(name: str, path: str, causes: Causes) -> None:
    causes.check(qualified_name_problems, name, path)
    kube_finalizer(name, path, causes)


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    phase: Any = new.get("status", {}).get("phase", "")
    going = "deletionTimestamp" in new.get("metadata", {})
    if not going and phase != "Active":
        causes.invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
    elif going and phase != "Terminating":
        causes.invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")


def _validate_finalize(new: Object, causes: Causes) -> None:
    for index, one in enumerate(new.get("spec", {}).get("finalizers", ())):
        _finalizer(one, f"spec.finalizers[{index}]", causes)


def _selectable(namespace: Object) -> Mapping[str, str]:
    name = namespace.get("metadata", {}).get("name", "")
    return {"status.phase": namespace.get("status", {}).get("phase", ""), "name": name}


KIND: Final = Kind(
    "v1 namespaces Namespace C ns - | finalize status ! create delete get list patch update watch",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=_validate,
        validate_update=again(_validate),
        validate_status=_validate_status,
        validate_finalize=_validate_finalize,
        selectable=_selectable,
        name_rule=dns_label,
    ),
    columns="Name!, Status = status.phase, Age",
    description="Namespace is a scope for names, and for rights and quotas.",
)
