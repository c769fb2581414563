"""Kubernetes objects from JSON and YAML: single ones, lists, files of many documents.

What is read is checked and given the API server's defaults; what cannot be used is an InputError that names the file,
the object and the field. Kinds that scheduling does not read are counted and left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from situate.core.model.base import Model
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.custom_groups.table import CUSTOM_GROUP_KINDS
from situate.core.model.defaults import DEFAULT_NAMESPACE, NAMESPACED, defaulted
from situate.core.model.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from situate.core.model.group import PodGroup
from situate.core.model.meta import ObjectMeta, key_of
from situate.core.model.named import NamedObject
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace, PodDisruptionBudget, PriorityClass
from situate.core.model.priority import UnknownPriorityClassError, priority_classes, with_priority
from situate.core.model.quantity import QuantityError
from situate.core.model.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from situate.core.model.validate import first_problem
from situate.core.model.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from situate.wire.errors import InputError, from_decoder
from situate.wire.yaml import MAX_BYTES, MAX_JSON_BYTES, load_yaml

# Kind -> API group and struct. A kind of the same name in another group is another kind.
KINDS: dict[str, tuple[str, type[Model]]] = {
    "CSIDriver": ("storage.k8s.io", CSIDriver),
    "CSINode": ("storage.k8s.io", CSINode),
    "CSIStorageCapacity": ("storage.k8s.io", CSIStorageCapacity),
    "DeviceClass": ("resource.k8s.io", DeviceClass),
    "DeviceTaintRule": ("resource.k8s.io", DeviceTaintRule),
    "Namespace": ("", Namespace),
    "Node": ("", Node),
    "PersistentVolume": ("", PersistentVolume),
    "PersistentVolumeClaim": ("", PersistentVolumeClaim),
    "Pod": ("", Pod),
    "PodDisruptionBudget": ("policy", PodDisruptionBudget),
    "PodGroup": ("scheduling.k8s.io", PodGroup),
    "PriorityClass": ("scheduling.k8s.io", PriorityClass),
    "ReplicaSet": ("apps", ReplicaSet),
    "ReplicationController": ("", ReplicationController),
    "ResourceClaim": ("resource.k8s.io", ResourceClaim),
    "ResourceSlice": ("resource.k8s.io", ResourceSlice),
    "Service": ("", Service),
    "StatefulSet": ("apps", StatefulSet),
    "StorageClass": ("storage.k8s.io", StorageClass),
    "VolumeAttachment": ("storage.k8s.io", VolumeAttachment),
}

# Kind and API group -> struct, of custom kinds that share their name with one above.
NAMESAKES: dict[tuple[str, str], type[Model]] = {("PodGroup", one.group): one.model for one in CUSTOM_GROUP_KINDS}

# A kind that no scheduler reads: commands make the claims of pods to come from it.
TEMPLATES: dict[str, tuple[str, type[Model]]] = {"ResourceClaimTemplate": ("resource.k8s.io", ResourceClaimTemplate)}

# Kind and API group -> struct, of all kinds that are read from files.
MODELS = {(kind, group): model for kind, (group, model) in (KINDS | TEMPLATES).items()} | NAMESAKES

_BOM = b"\xef\xbb\xbf"
_BRACE = re.compile(rb"\s*\{")
_BEGINS_AS_JSON = re.compile(rb'\s*\{\s*["}]')
# ValidationError is a DecodeError: catch it first.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Typed = TypeVar("_Typed", bound=Model)


class Source(msgspec.Struct, frozen=True):
    """A file's name, for messages, and its bytes."""

    name: str
    data: bytes


@dataclass(slots=True)
class Objects:
    """Objects by kind, in reading order."""

    pods: list[Pod] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
    replica_sets: list[ReplicaSet] = field(default_factory=list)
    stateful_sets: list[StatefulSet] = field(default_factory=list)
    replication_controllers: list[ReplicationController] = field(default_factory=list)
    persistent_volumes: list[PersistentVolume] = field(default_factory=list)
    persistent_volume_claims: list[PersistentVolumeClaim] = field(default_factory=list)
    storage_classes: list[StorageClass] = field(default_factory=list)
    csi_nodes: list[CSINode] = field(default_factory=list)
    csi_drivers: list[CSIDriver] = field(default_factory=list)
    csi_storage_capacities: list[CSIStorageCapacity] = field(default_factory=list)
    volume_attachments: list[VolumeAttachment] = field(default_factory=list)
    device_classes: list[DeviceClass] = field(default_factory=list)
    resource_slices: list[ResourceSlice] = field(default_factory=list)
    resource_claims: list[ResourceClaim] = field(default_factory=list)
    device_taint_rules: list[DeviceTaintRule] = field(default_factory=list)
    pod_disruption_budgets: list[PodDisruptionBudget] = field(default_factory=list)
    pod_groups: list[PodGroup] = field(default_factory=list)
    custom_pod_groups: list[CustomPodGroup] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    resource_claim_templates: list[ResourceClaimTemplate] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    """Kinds that were ignored, such as `Deployment (apps/v1)`, with counts."""

    def named(self) -> Iterator[NamedObject]:
        """All objects but pods, nodes and what pods are made from, kind by kind."""
        for name in self.__slots__:
            if name not in ("pods", "nodes", "priority_classes", "resource_claim_templates", "ignored"):
                yield from getattr(self, name)

    def all(self) -> Iterator[Model]:
        """Every object, kind by kind."""
        for name in self.__slots__:
            if name != "ignored":
                yield from getattr(self, name)


_LIST_OF: dict[type[Model], str] = {
    Pod: "pods",
    Node: "nodes",
    Namespace: "namespaces",
    Service: "services",
    ReplicaSet: "replica_sets",
    StatefulSet: "stateful_sets",
    ReplicationController: "replication_controllers",
    PersistentVolume: "persistent_volumes",
    PersistentVolumeClaim: "persistent_volume_claims",
    StorageClass: "storage_classes",
    CSINode: "csi_nodes",
    CSIDriver: "csi_drivers",
    CSIStorageCapacity: "csi_storage_capacities",
    VolumeAttachment: "volume_attachments",
    DeviceClass: "device_classes",
    ResourceSlice: "resource_slices",
    ResourceClaim: "resource_claims",
    DeviceTaintRule: "device_taint_rules",
    PodDisruptionBudget: "pod_disruption_budgets",
    PodGroup: "pod_groups",
    **{one.model: "custom_pod_groups" for one in CUSTOM_GROUP_KINDS},
    PriorityClass: "priority_classes",
    ResourceClaimTemplate: "resource_claim_templates",
}


def read_objects(sources: Iterable[Source]) -> Objects:
    """All objects of all files. Raises InputError for two objects of one kind and name."""
    reader = _Reader()
    for source in sources:
        try:
            reader.read_file(source)
        except MemoryError:
            raise InputError("too large to be held in memory", file=source.name) from None
    return reader.finished()


def objects_of(items: Iterable[bytes | msgspec.Raw], file: str = "") -> Objects:
    """Objects from single JSON documents, such as the items of a list."""
    reader = _Reader()
    for number, item in enumerate(items, 1):
        reader.read_json(item, _Location(file, f"item {number}"))
    return reader.finished()


@dataclass(frozen=True, slots=True)
class _Location:
    """Where an object is: the file, and the position if it has several."""

    file: str = ""
    within: str = ""

    def __str__(self) -> str:
        return ", ".join(part for part in (self.file, self.within) if part)


# One object of a known type


def decode(kind: type[_Typed], data: bytes | msgspec.Raw) -> _Typed:
    """An object of a known type, from JSON of an API server: no validation, no defaults.

    An absent field and a `null` one are the same.
    """
    return _decode(kind, data, _Location())


def decode_checked(kind: type[_Typed], data: bytes | msgspec.Raw, *, file: str = "", within: str = "") -> _Typed:
    """An object of a known type, from JSON, validated and with the API server's defaults. Raises InputError."""
    place = _Location(file, within)
    return _usable(_decode(kind, data, place), place)


def _usable(obj: _Typed, place: _Location) -> _Typed:
    """The object with defaults, if it is valid."""
    meta: ObjectMeta = obj.metadata  # type: ignore[attr-defined]
    problem = first_problem(obj)
    if problem is not None:
        raise InputError(problem.text, file=place.file, subject=_named(type(obj), meta, place), path=problem.path)
    try:
        return defaulted(obj)
    except QuantityError as error:
        raise InputError(str(error), file=place.file, subject=_named(type(obj), meta, place)) from None


TOO_DEEP = "nested too deep"
_DECODERS: dict[type[Model], msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in _LIST_OF}


# The two kinds that come by the hundred thousand go straight to the decoder; `decode` is for errors.
_decode_pod = msgspec.json.Decoder(Pod).decode
_decode_node = msgspec.json.Decoder(Node).decode


def decode_pod(data: bytes | msgspec.Raw) -> Pod:
    """A pod, from JSON that an API server wrote."""
    try:
        return _decode_pod(data)
    except _NOT_JSON:
        return decode(Pod, data)


def decode_node(data: bytes | msgspec.Raw) -> Node:
    """A node, from JSON that an API server wrote."""
    try:
        return _decode_node(data)
    except _NOT_JSON:
        return decode(Node, data)


def _decode(kind: type[_Typed], data: bytes | msgspec.Raw, place: _Location) -> _Typed:
    decoder: msgspec.json.Decoder[_Typed] = _DECODERS[kind]
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        return _decode_again(kind, data, place, str(error))
    except _NOT_JSON as error:
        raise InputError(_said(error), file=place.file, subject=place.within) from None


def _json(data: bytes | msgspec.Raw, place: _Location) -> Any:
    try:
        return msgspec.json.decode(data)
    except _NOT_JSON as error:
        raise InputError(_said(error), file=place.file, subject=place.within) from None


def _complaint(data: bytes) -> str | None:
    """Why the data is not JSON; None if it is."""
    try:
        _HEAD.decode(data)
    except msgspec.ValidationError:
        return None
    except _NOT_JSON as error:
        return _said(error)
    return None


def _said(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return TOO_DEEP
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else f"not JSON: {error}"


def _decode_again(kind: type[_Typed], data: bytes | msgspec.Raw, place: _Location, message: str) -> _Typed:
    """The slow path: a null that Kubernetes' decoder accepts, or an error."""
    try:
        value = msgspec.json.decode(data)
    except _NOT_JSON:
        path, problem = from_decoder(message, None)
        subject = _subject(kind, _name_in(data), place)
        raise InputError(problem, file=place.file, subject=subject, path=path) from None
    return _convert(kind, value, place)


def _name_in(data: bytes | msgspec.Raw) -> "_NamedOnly":
    """The name of an invalid object, as far as it can be read."""
    try:
        return msgspec.json.decode(data, type=_NamedOnly)
    except _NOT_JSON:
        return _NamedOnly()


def _convert(kind: type[_Typed], value: Any, place: _Location) -> _Typed:
    """An object from plain values, without nulls where needed."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass
    try:
        value = _without_nulls(value, "")
        return msgspec.convert(value, kind)
    except RecursionError:
        raise InputError(TOO_DEEP, file=place.file, subject=_subject(kind, value, place)) from None
    except msgspec.ValidationError as error:
        path, problem = from_decoder(str(error), value)
        raise InputError(problem, file=place.file, subject=_subject(kind, value, place), path=path) from None


# In a mapping of these, null is the empty value; anywhere else it is an absent field.
_TEXT_MAPPINGS = frozenset(("labels", "annotations", "matchLabels", "nodeSelector"))
_QUANTITY_MAPPINGS = frozenset(("requests", "limits", "allocatable", "capacity", "overhead", "allocatedResources"))


def _without_nulls(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        if name in _TEXT_MAPPINGS or name in _QUANTITY_MAPPINGS:
            empty: str | int = "" if name in _TEXT_MAPPINGS else 0
            return {key: empty if entry is None else entry for key, entry in value.items()}
        return {key: _without_nulls(entry, key) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_nulls(entry, "") for entry in value]
    return value


class _NamedOnly(msgspec.Struct):
    metadata: Any = None


def _subject(kind: type[Model], value: Any, place: _Location) -> str:
    """`Pod default/web`, as far as it can be read."""
    meta = value.get("metadata") if isinstance(value, Mapping) else getattr(value, "metadata", None)
    name, namespace = (meta.get("name"), meta.get("namespace")) if isinstance(meta, Mapping) else (None, None)
    found = ObjectMeta(name=_or_empty(name), namespace=_or_empty(namespace))
    return _named(kind, found, place)


def _or_empty(text: object) -> str:
    return text if isinstance(text, str) else ""


def _named(kind: type[Model], meta: ObjectMeta, place: _Location) -> str:
    if not meta.name:
        return f"{kind.__name__} ({place.within})" if place.within else kind.__name__
    if kind in NAMESPACED and not meta.namespace:
        return f"{kind.__name__} {DEFAULT_NAMESPACE}/{meta.name}"
    return f"{kind.__name__} {key_of(meta)}"


# Files of many objects


class _Head(msgspec.Struct, rename="camel"):
    """The type of an object or list. `items` stay bytes until their type is known."""

    api_version: str | None = None
    kind: str | None = None
    items: list[msgspec.Raw] | None = None


_HEAD = msgspec.json.Decoder(_Head)


MAX_LISTS = 10  # lists in lists in lists


@dataclass(frozen=True, slots=True)
class _ListType:
    """The type that a list gives its items, and the nesting depth of lists."""

    kind: str = ""
    api_version: str = ""
    lists: int = 0

    def of_items(self, kind: str, api_version: str, place: _Location) -> "_ListType":
        """Items of a PodList are pods; items of a List have their own kind."""
        if self.lists >= MAX_LISTS:
            raise InputError(f"lists nested deeper than {MAX_LISTS} levels", file=place.file)
        if kind == "List":
            return _ListType(lists=self.lists + 1)
        return _ListType(kind.removesuffix("List"), api_version, self.lists + 1)


class _Reader:
    """Collects objects, and where each came from."""

    def __init__(self) -> None:
        self._objects = Objects()
        self._places: dict[tuple[type[Model], str], _Location] = {}

    def finished(self) -> Objects:
        """The objects, with the priorities of pods resolved."""
        objects = self._objects
        classes = priority_classes(objects.priority_classes)
        for index, pod in enumerate(objects.pods):
            try:
                objects.pods[index] = with_priority(pod, classes)
            except UnknownPriorityClassError as error:
                place = self._places[Pod, key_of(pod.metadata)]
                subject = _named(Pod, pod.metadata, place)
                raise InputError(str(error), file=place.file, subject=subject, path="spec.priorityClassName") from None
        return objects

    def read_file(self, source: Source) -> None:
        data = source.data.removeprefix(_BOM)
        most = MAX_JSON_BYTES if _BRACE.match(data) else MAX_BYTES
        if len(data) > most:
            raise InputError(f"larger than {most} bytes", file=source.name)
        complaint = _complaint(data) if _BRACE.match(data) else "not JSON"
        if complaint is None:
            self.read_json(data, _Location(source.name))
            return
        try:
            documents = list(load_yaml(data, source.name))
        except InputError:
            # Data that starts like JSON was meant to be JSON: report that error.
            if _BEGINS_AS_JSON.match(data) and complaint != TOO_DEEP:
                raise InputError(complaint, file=source.name) from None
            raise
        for number, document in enumerate(documents, 1):
            within = f"document {number}" if len(documents) > 1 else ""
            self._read_value(document, _Location(source.name, within), _ListType())

    def read_json(self, data: bytes | msgspec.Raw, place: _Location, list_type: "_ListType | None" = None) -> None:
        """An object, or a list of them, as JSON."""
        list_type = list_type or _ListType()
        try:
            head = _HEAD.decode(data)
        except msgspec.ValidationError:
            self._read_value(_json(data, place), place, list_type)
            return
        except _NOT_JSON as error:
            raise InputError(_said(error), file=place.file, subject=place.within) from None
        kind, api_version = head.kind or list_type.kind, head.api_version or list_type.api_version
        if head.items is not None and kind.endswith("List"):
            inner = list_type.of_items(kind, api_version, place)
            for number, item in enumerate(head.items, 1):
                self.read_json(item, _item(place, number), inner)
            return
        model = self._model(kind, api_version, place)
        if model is not None:
            self._add(_decode(model, data, place), place)

    def _read_value(self, value: Any, place: _Location, list_type: "_ListType") -> None:
        """The same for plain values."""
        if value is None:
            return
        if not isinstance(value, dict):
            raise InputError("expected an object", file=place.file, subject=place.within)
        kind = _text(value, "kind", place) or list_type.kind
        api_version = _text(value, "apiVersion", place) or list_type.api_version
        items = value.get("items")
        if isinstance(items, list) and kind.endswith("List"):
            inner = list_type.of_items(kind, api_version, place)
            for number, item in enumerate(items, 1):
                self._read_value(item, _item(place, number), inner)
            return
        model = self._model(kind, api_version, place)
        if model is not None:
            self._add(_convert(model, value, place), place)

    def _model(self, kind: str, api_version: str, place: _Location) -> type[Model] | None:
        for path, text in (("kind", kind), ("apiVersion", api_version)):
            if not text:
                raise InputError("Required value", file=place.file, subject=place.within, path=path)
        group = api_version.rpartition("/")[0]
        model = MODELS.get((kind, group))
        if model is not None or kind.endswith("List"):
            return model
        name = f"{kind} ({api_version})"
        self._objects.ignored[name] = self._objects.ignored.get(name, 0) + 1
        return None

    def _add(self, obj: Model, place: _Location) -> None:
        kind = type(obj)
        obj = _usable(obj, place)
        meta: ObjectMeta = obj.metadata  # type: ignore[attr-defined]
        key = (kind, key_of(meta))
        if key in self._places:
            first = str(self._places[key]) or "the same input"
            text = f'Duplicate value: "{meta.name}": already in {first}'
            raise InputError(text, file=place.file, subject=_named(kind, meta, place), path="metadata.name")
        self._places[key] = place
        getattr(self._objects, _LIST_OF[kind]).append(obj)


def _item(place: _Location, number: int) -> _Location:
    return _Location(place.file, f"{place.within}, item {number}" if place.within else f"item {number}")


def _text(value: Mapping[str, Any], name: str, place: _Location) -> str:
    found = value.get(name)
    if found is None or isinstance(found, str):
        return found or ""
    raise InputError("expected a string", file=place.file, subject=place.within, path=name)
