"""StorageClass: a way to provision volumes."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.model.names import qualified_name_problems
from situate.server.kinds.field_checks import FieldChecks
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.node_selectors import topology_selector_term
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

_FIELDS: Final = FieldChecks("storage.v1.StorageClass")
MAX_PARAMETERS: Final = 512
MAX_PARAMETERS_SIZE: Final = 256 * 1024
DEFAULT_CLASS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def size_of(found: Mapping[str, str]) -> int:
    """Bytes of all keys and values."""
    return sum(len(key.encode()) + len(value.encode("utf-8", "surrogatepass")) for key, value in found.items())


def _default_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _validate_class(obj: Object, causes: Causes) -> None:
    validate_driver(obj.get("provisioner", ""), "provisioner", causes)
    validate_parameters(obj.get("parameters", {}), causes)
    causes.one_of(obj.get("reclaimPolicy") or "Delete", ("Delete", "Retain"), "reclaimPolicy")
    _FIELDS.check(obj, "", causes, "volumeBindingMode")
    _topologies(obj.get("allowedTopologies", ()), causes)


def validate_driver(name: str, path: str, causes: Causes) -> None:
    if name:
        causes.check(qualified_name_problems, name.lower(), path)
    else:
        causes.required(path)


def validate_parameters(found: Mapping[str, str], causes: Causes) -> None:
    if len(found) > MAX_PARAMETERS:
        causes.too_long("parameters", MAX_PARAMETERS)
        return
    if "" in found:
        causes.invalid("parameters", "", "field can not be empty.")
    if size_of(found) > MAX_PARAMETERS_SIZE:
        causes.too_long("parameters", MAX_PARAMETERS_SIZE)


def _topologies(terms: Sequence[Mapping[str, Any]], causes: Causes) -> None:
    seen: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(terms):
        asked = topology_selector_term(term, f"allowedTopologies[{index}]", causes)
        if asked in seen:
            causes.duplicate(f"allowedTopologies[{index}].matchLabelExpressions", "")
        seen.append(asked)


def _validate_class_update(new: Object, old: Object, causes: Causes) -> None:
    for name in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
        causes.immutable(new.get(name), old.get(name), name)


def _name_shown(obj: Object) -> str:
    annotations, name = obj["metadata"].get("annotations") or {}, obj["metadata"]["name"]
    return f"{name} (default)" if any(annotations.get(key) == "true" for key in DEFAULT_CLASS) else name


KIND: Final = Kind(
    "storage.k8s.io/v1 storageclasses StorageClass C sc -",
    strategy=Strategy(default=_default_class, validate=_validate_class, validate_update=_validate_class_update),
    columns="""
        Name!, Provisioner = provisioner, ReclaimPolicy = reclaimPolicy|Delete,
        VolumeBindingMode = volumeBindingMode|Immediate, AllowVolumeExpansion = allowVolumeExpansion|false, Age
        """,
    cells={"Name": _name_shown},
    description="StorageClass names a way to provision volumes.",
)
