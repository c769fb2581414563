"""Validation of ObjectMeta on creation and on update, in kube-apiserver's words. Every kind shares it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.field_errors import quoted
from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_errors import NOT_NEGATIVE, Causes
from situate.server.kinds.names import NameRule, dns_label, prefix_problems
from situate.server.objects import Object

MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all keys and values."""
MAX_MANAGER: Final = 128
MAX_SUBRESOURCE: Final = 256

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS: Final = ("kubernetes", ORPHAN, FOREGROUND)
NAME_NEEDED: Final = "name or generateName is required"
VERSION_NEEDED: Final = "must be specified for an update"

_FIXED: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_TEXTS: Final = frozenset(("name", "namespace", "uid"))


def validate_metadata(
    obj: Object, name_rule: NameRule, namespaced: bool, path: str = "metadata", *, own_finalizers: bool = True
) -> Causes:
    """On creation, after the registry has set the name and the namespace."""
    meta = obj.get("metadata", {})
    causes = Causes()
    if prefix := meta.get("generateName", ""):
        for problem in prefix_problems(name_rule, prefix):
            causes.invalid(f"{path}.generateName", prefix, problem)
    if name := meta.get("name", ""):
        causes.check(name_rule, name, f"{path}.name")
    else:
        causes.required(f"{path}.name", NAME_NEEDED)
    _namespace(meta.get("namespace", ""), namespaced, path, causes)
    if meta.get("generation", 0) < 0:
        causes.invalid(f"{path}.generation", meta["generation"], NOT_NEGATIVE)
    _common(meta, path, causes)
    if finalizers := meta.get("finalizers"):
        _finalizers(finalizers, f"{path}.finalizers", causes)
    if managed := meta.get("managedFields"):
        _managed_fields(managed, f"{path}.managedFields", causes)
    for index, one in enumerate(finalizers or () if own_finalizers else ()):
        kube_finalizer(one, f"{path}.finalizers[{index}]", causes)
    return causes


def validate_metadata_update(
    new: Object, old: Object, path: str = "metadata", *, own_finalizers: bool = True
) -> Causes:
    """On update. Before the call, copy the server's own fields (uid, times) from `old` where `new` lacks them."""
    meta, was = new.get("metadata", {}), old.get("metadata", {})
    causes = Causes()
    if "deletionTimestamp" in was:
        _no_new_finalizers(meta.get("finalizers", ()), was.get("finalizers", ()), path, causes)
    if not meta.get("resourceVersion"):
        causes.invalid(f"{path}.resourceVersion", "", VERSION_NEEDED)
    if meta.get("generation", 0) < was.get("generation", 0):
        causes.invalid(f"{path}.generation", meta.get("generation", 0), "must not be decremented")
    for key in _FIXED:
        nothing = "" if key in _TEXTS else None
        causes.immutable(meta.get(key, nothing), was.get(key, nothing), f"{path}.{key}")
    _common(meta, path, causes)
    if managed := meta.get("managedFields"):
        _managed_fields(managed, f"{path}.managedFields", causes)
    if finalizers := meta.get("finalizers"):
        _finalizers(finalizers, f"{path}.finalizers", causes)
    for index, one in enumerate(finalizers or () if own_finalizers else ()):
        kube_finalizer(one, f"{path}.finalizers[{index}]", causes)
    return causes


def kube_finalizer(name: str, path: str, causes: Causes) -> None:
    """A finalizer without a domain must be one of Kubernetes' own."""
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        causes.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def _namespace(namespace: str, namespaced: bool, path: str, causes: Causes) -> None:
    if not namespaced:
        if namespace:
            causes.forbidden(f"{path}.namespace", "not allowed on this type")
    elif not namespace:
        causes.required(f"{path}.namespace")
    else:
        causes.check(dns_label, namespace, f"{path}.namespace")


def _common(meta: Mapping[str, Any], path: str, causes: Causes) -> None:
    if found := meta.get("labels"):
        causes.labels(found, f"{path}.labels")
    if annotations := meta.get("annotations"):
        validate_annotations(annotations, f"{path}.annotations", causes)
    if owners := meta.get("ownerReferences"):
        _owners(owners, f"{path}.ownerReferences", causes)


def validate_annotations(annotations: Mapping[str, str], path: str, causes: Causes) -> None:
    size = 0
    for key, value in annotations.items():
        # The rule for label keys, but case-insensitive, even in the prefix.
        for problem in qualified_name_problems(key.lower()):
            causes.invalid(path, key, problem)
        size += len(key) + (len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass")))
    if size > MAX_ANNOTATIONS:
        causes.too_long(path, MAX_ANNOTATIONS)


def _owners(owners: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    controller = ""
    for owner in owners:
        _owner(owner, path, causes)
        if owner.get("controller"):
            found = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = (
                    'Only one reference can have Controller set to true. Found "true" in references for '
                    f"{controller} and {found}"
                )
                causes.invalid(path, list(owners), detail)
            else:
                controller = found


def _owner(owner: Mapping[str, Any], path: str, causes: Causes) -> None:
    version = owner.get("apiVersion", "")
    if version.count("/") > 1 or not version.rpartition("/")[2]:
        causes.invalid(f"{path}.apiVersion", version, "version must not be empty")
    for key in ("kind", "name", "uid"):
        if not owner.get(key):
            causes.invalid(f"{path}.{key}", "", "must not be empty")
    if version == "v1" and owner.get("kind") == "Event":
        causes.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")


def _finalizers(finalizers: Sequence[str], path: str, causes: Causes) -> None:
    for one in finalizers:
        causes.check(qualified_name_problems, one, path)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        causes.invalid(path, list(finalizers), f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set")


def _no_new_finalizers(new: Sequence[str], old: Sequence[str], path: str, causes: Causes) -> None:
    extra = sorted(set(new) - set(old))
    if extra:
        listed = ", ".join(map(quoted, extra))
        detail = (
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
        )
        causes.forbidden(f"{path}.finalizers", detail)


def _managed_fields(entries: Sequence[Mapping[str, Any]], path: str, causes: Causes) -> None:
    for index, entry in enumerate(entries):
        if entry.get("operation") not in ("Apply", "Update"):
            operation = entry.get("operation", "")
            causes.invalid(f"{path}[{index}].operation", operation, "must be `Apply` or `Update`")
        if entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            causes.invalid(f"{path}[{index}].fieldsType", entry["fieldsType"], "must be `FieldsV1`")
        if len(entry.get("manager", "")) > MAX_MANAGER:
            causes.too_long(f"{path}[{index}].manager", MAX_MANAGER)
        if len(entry.get("subresource", "")) > MAX_SUBRESOURCE:
            causes.too_long(f"{path}[{index}].subresource", MAX_SUBRESOURCE)
