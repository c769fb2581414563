"""PersistentVolumeClaims, and templates of them: defaults, preparation and validation."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.metadata import validate_annotations
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.quantities import (
    STORAGE,
    amount,
    basic_amount,
    fractions,
    is_native,
    nanos,
    positive_amount,
    round_amounts,
)
from situate.server.kinds.strategy import Strategy, keep_all_but_status, keep_status
from situate.server.objects import Object

_SPEC: Final = FieldChecks("core.v1.PersistentVolumeClaimSpec")
OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_SHORT_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
IMMUTABLE_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_OLD_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_RESIZING: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def default_claim_spec(spec: dict[str, Any]) -> None:
    """Set the defaults of a claim or a claim template."""
    spec.setdefault("volumeMode", "Filesystem")
    resources = spec.get("resources", {})
    round_amounts(resources.get("limits"))
    round_amounts(resources.get("requests"))


def _default(claim: Object) -> None:
    default_claim_spec(claim.setdefault("spec", {}))
    status = claim.setdefault("status", {})
    status.setdefault("phase", "Pending")
    round_amounts(status.get("capacity"))
    round_amounts(status.get("allocatedResources"))


def _prepare_create(claim: Object) -> None:
    claim["status"] = {"phase": "Pending"}
    _pair_sources(claim["spec"], {})


def _prepare_update(new: Object, old: Object) -> None:
    keep_status(new, old)
    _pair_sources(new["spec"], old["spec"])


def _pair_sources(spec: dict[str, Any], was: Mapping[str, Any]) -> None:
    """Keep dataSource and dataSourceRef equal. dataSource has no namespace and allows only two kinds."""
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    new = source is not None and ref is None and not was.get("dataSource")
    if source is not None and new and (source.get("apiGroup", ""), source.get("kind", "")) not in _OLD_SOURCES:
        del spec["dataSource"]
        source = None
    if source is not None and ref is None:
        spec["dataSourceRef"] = dict(source)
    elif ref is not None and source is None and not ref.get("namespace"):
        spec["dataSource"] = dict(ref)


def claim_template(template: Mapping[str, Any], path: str, causes: Causes) -> None:
    """Validate the claim template of an ephemeral volume: labels, annotations and a claim's spec only."""
    meta = template.get("metadata", {})
    validate_annotations(meta.get("annotations", {}), f"{path}.metadata.annotations", causes)
    causes.labels(meta.get("labels", {}), f"{path}.metadata.labels")
    for key in meta:
        if key not in ("annotations", "labels", "creationTimestamp"):
            causes.forbidden(f"{path}.metadata.{key}", "cannot be set")
    validate_claim_spec(template.get("spec", {}), f"{path}.spec", causes)


def access_modes(modes: list[str], path: str, causes: Causes) -> None:
    for mode in modes:
        causes.one_of(mode, ACCESS_MODES, path)
    if "ReadWriteOncePod" in modes and any(one in ACCESS_MODES[:3] for one in modes):
        causes.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def validate_claim_spec(spec: Mapping[str, Any], path: str, causes: Causes, *, any_group: bool = False) -> None:
    """`any_group`: do not check the group of a data source that is stored already."""
    modes = spec.get("accessModes", [])
    causes.require(modes, f"{path}.accessModes", "at least 1 access mode is required")
    causes.label_selector(spec.get("selector"), f"{path}.selector")
    access_modes(modes, f"{path}.accessModes", causes)
    asked, where = spec.get("resources", {}).get("requests", {}).get(STORAGE), f"{path}.resources[{STORAGE}]"
    if asked is None:
        causes.required(where)
    else:
        positive_amount(asked, where, causes)
    if name := spec.get("storageClassName"):
        causes.check(subdomain, name, f"{path}.storageClassName")
    _SPEC.check(spec, path, causes, "volumeMode")
    for key in ("dataSource", "dataSourceRef"):
        if key in spec:
            _source(spec[key], any_group, f"{path}.{key}", causes)
    _sources_agree(spec, path, causes)
    if name := spec.get("volumeAttributesClassName"):
        causes.check(subdomain, name, f"{path}.volumeAttributesClassName")


def _source(source: Mapping[str, Any], any_group: bool, path: str, causes: Causes) -> None:
    for key in ("name", "kind"):
        causes.require(source.get(key), f"{path}.{key}")
    group, kind = source.get("apiGroup", ""), source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        causes.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    if group and not any_group:
        causes.check(subdomain, group, f"{path}.apiGroup")
    if namespace := source.get("namespace"):
        causes.check(dns_label, namespace, f"{path}.namespace")


def _sources_agree(spec: Mapping[str, Any], path: str, causes: Causes) -> None:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or ref is None:
        return
    if ref.get("namespace"):
        causes.invalid(path, {}, "may not be specified when dataSourceRef.namespace is specified")
    elif any(source.get(key) != ref.get(key) for key in ("apiGroup", "kind", "name")):
        causes.invalid(path, {}, "must match dataSourceRef")


def _validate(claim: Object, causes: Causes) -> None:
    validate_claim_spec(claim.get("spec", {}), "spec", causes)


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    grouped = any("apiGroup" in old["spec"].get(key, {}) for key in ("dataSource", "dataSourceRef"))
    validate_claim_spec(new.get("spec", {}), "spec", causes, any_group=grouped)
    mine, was = dict(new.get("spec", {})), dict(old.get("spec", {}))
    if not was.get("volumeName"):
        was["volumeName"] = mine.get("volumeName")
    _class_may_change(new, old, mine, causes)
    size, before = _size(mine), _size(was)
    if old.get("status", {}).get("phase") == "Bound":
        if mine.get("resources", {}).get("requests"):
            mine["resources"] = _with_size(mine["resources"], was.get("resources", {}))
        mine["volumeAttributesClassName"] = was.get("volumeAttributesClassName")
    if _said(mine) != _said(was):
        causes.forbidden("spec", IMMUTABLE_SPEC)
    if size < before and size <= nanos(old.get("status", {}).get("capacity", {}).get(STORAGE, 0)):
        causes.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")
    causes.immutable(new["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode")


def _class_may_change(new: Object, old: Object, mine: dict[str, Any], causes: Causes) -> None:
    """A claim without a class may get one. Other changes are refused."""
    said = new["metadata"].get("annotations", {}).get(CLASS_ANNOTATION, "")
    was_said = old["metadata"].get("annotations", {}).get(CLASS_ANNOTATION)
    chosen, before = mine.get("storageClassName"), old["spec"].get("storageClassName")
    if was_said is not None and before is None and chosen == was_said and said in ("", was_said):
        mine["storageClassName"] = None
        return
    causes.immutable(said, was_said or "", f"metadata.annotations.{CLASS_ANNOTATION}")
    if chosen is not None and before is None and was_said in (None, chosen):
        mine["storageClassName"] = None


def _size(spec: Mapping[str, Any]) -> int:
    return nanos(spec.get("resources", {}).get("requests", {}).get(STORAGE, 0))


def _with_size(resources: Mapping[str, Any], was: Mapping[str, Any]) -> dict[str, Any]:
    requests = {**resources.get("requests", {}), STORAGE: was.get("requests", {}).get(STORAGE)}
    return {**resources, "requests": requests}


def _said(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if value is not None}


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    status = new.get("status", {})
    for name, raw in status.get("capacity", {}).items():
        basic_amount(raw, f"status.capacity[{name}]", causes)
    for name, phase in status.get("allocatedResourceStatuses", {}).items():
        _resource_key(name, "status.allocatedResourceStatuses", causes)
        if phase not in _RESIZING:
            causes.not_supported("status.allocatedResourceStatuses", name, _RESIZING)
    for name, raw in status.get("allocatedResources", {}).items():
        _resource_key(name, "status.allocatedResources", causes)
        before = len(causes)
        basic_amount(raw, f"status.allocatedResources[{name}]", causes)
        if len(causes) == before:
            amount(name, raw, f"status.allocatedResources[{name}]", causes)


def _resource_key(name: str, path: str, causes: Causes) -> None:
    before = len(causes)
    causes.check(qualified_name_problems, name, path)
    if len(causes) == before and is_native(name) and name != STORAGE:
        causes.not_supported(path, name, (STORAGE,))


def _warnings(claim: Object) -> list[str]:
    found: list[str] = []
    fractions(claim.get("spec", {}).get("resources", {}), (STORAGE,), "spec.resources", found)
    return found


def _selectable(claim: Object) -> Mapping[str, str]:
    return {"name": claim.get("metadata", {}).get("name", "")}


def phase_shown(obj: Object) -> str:
    """The phase of a claim or volume."""
    return "Terminating" if obj["metadata"].get("deletionTimestamp") else (obj.get("status") or {}).get("phase", "")


def modes_shown(modes: Sequence[str] | None) -> str:
    return ",".join([short for mode, short in _SHORT_MODES.items() if mode in (modes or ())])


def storage_class(obj: Object) -> str:
    """The class of a claim or volume."""
    annotations = obj["metadata"].get("annotations") or {}
    return str(
        annotations[OLD_CLASS] if OLD_CLASS in annotations else (obj.get("spec") or {}).get("storageClassName") or ""
    )


def _capacity_shown(obj: Object) -> str:
    if not (obj.get("spec") or {}).get("volumeName"):
        return ""
    return str(((obj.get("status") or {}).get("capacity") or {}).get("storage", "0"))


def _modes_shown(obj: Object) -> str:
    return (
        modes_shown((obj.get("status") or {}).get("accessModes")) if (obj.get("spec") or {}).get("volumeName") else ""
    )


KIND: Final = Kind(
    "v1 persistentvolumeclaims PersistentVolumeClaim N pvc - | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        prepare_status=keep_all_but_status,
        validate=_validate,
        validate_update=_validate_update,
        validate_status=_validate_status,
        selectable=_selectable,
        warnings=_warnings,
    ),
    columns="""
        Name!, Status, Volume = spec.volumeName, Capacity, Access Modes, StorageClass,
        VolumeAttributesClass = spec.volumeAttributesClassName|<unset>, Age, +VolumeMode = spec.volumeMode|<unset>
        """,
    cells={
        "Status": phase_shown,
        "Capacity": _capacity_shown,
        "Access Modes": _modes_shown,
        "StorageClass": storage_class,
    },
    description="PersistentVolumeClaim asks for a piece of storage.",
)
