"""The labels and fields that selectors match, decoded from the stored form without the rest.

A line of the table is a resource and its selectable fields. `path=where` is a field stored elsewhere, `path?` a
boolean, `path#` a number; the API has a value for each, set or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from sys import intern
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from situate.server.resources import Resource

PODS: Final = "/pods"
EVENTS: Final = "/events"
NODE_NAME: Final = "spec.nodeName"
NAME, NAMESPACE = "metadata.name", "metadata.namespace"
NEVER: Final = "metadata.never"
"""Where something is that is never set."""

_TABLE: Final = """
/pods spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork? status.phase
    status.podIP status.podIPs=- status.nominatedNodeName
/nodes spec.unschedulable?
/namespaces status.phase
/secrets type
/services spec.clusterIP spec.type
/replicationcontrollers status.replicas#
/events involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion
    involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source=source.component type
batch/jobs status.successful#=status.succeeded
certificates.k8s.io/certificatesigningrequests spec.signerName
resource.k8s.io/resourceslices spec.nodeName spec.driver
"""
# Names that selectors may use beside those of the table.
_ALIASES: Final = {
    "v1/pods": {"spec.host": NODE_NAME},
    "events.k8s.io/v1/events": {
        **{
            f"regarding.{field}": f"involvedObject.{field}"
            for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
        },
        "reportingController": "reportingComponent",
    },
}
_ONLY: Final = {"events.k8s.io/v1/events": ("reason", "type")}
_NOT_NAMESPACED: Final = (
    "/nodes",
    "/namespaces",
    "certificates.k8s.io/certificatesigningrequests",
    "resource.k8s.io/resourceslices",
)
_UNKNOWN: Final = {
    "batch/v1/jobs": 'field label "{label}" not supported for Job',
    "resource.k8s.io/v1/resourceslices": (
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}"
    ),
}
_UNKNOWN_LISTED: Final = "field label not supported: {label}"
_UNKNOWN_OTHERS: Final = '"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'


SelectorValues: TypeAlias = tuple[str, Mapping[str, str], tuple[str, ...]]
"""What selectors read of a stored object: its uid, its labels, and the values of `field_names`, in their order. A plain
tuple, because every write makes one."""


class _Metadata(Struct, gc=False):
    uid: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def never(self) -> str:
        return ""


class _Plain(Struct, gc=False):
    metadata: _Metadata


class _Reader(NamedTuple):
    names: tuple[str, ...]
    decode: Callable[[bytes], Any]
    values: Callable[[Any], tuple[str, ...]]


def selector_values(stored_as: str, value: bytes) -> SelectorValues:
    """Decode only what selectors read of a stored object."""
    reader = _READERS.get(stored_as, _PLAIN)
    found = reader.decode(value)
    metadata = found.metadata
    return intern(metadata.uid), shared_labels(metadata.labels), reader.values(found)


def values_after(stored_as: str, held: SelectorValues, new: Mapping[str, Any]) -> SelectorValues | None:
    """What selectors read of the new version of an object, from what they read of the old one; None: it must be
    decoded. For what is written most: pods, and kinds without fields that selectors can ask about."""
    uid, labels, _ = held
    metadata = new["metadata"]
    if metadata.get("uid") != uid or metadata.get("labels", _NO_LABELS) != labels:
        return None
    if stored_as not in _READERS:
        return held
    if stored_as != PODS:
        return None
    spec, status = new.get("spec", {}), new.get("status", {})
    try:
        return uid, labels, (
            intern(spec.get("nodeName", "")),
            intern(spec.get("restartPolicy", "")),
            intern(spec.get("schedulerName", "")),
            intern(spec.get("serviceAccountName", "")),
            _truth(spec.get("hostNetwork", False)),
            intern(status.get("phase", "")),
            intern(status.get("podIP", "")),
            "",
            intern(status.get("nominatedNodeName", "")),
        )  # fmt: skip
    except TypeError:  # not a text: reading it says what is wrong
        return None


def uid_only(uid: str) -> SelectorValues:
    """What is seen of an object without labels, of a kind without fields that selectors can ask about."""
    return intern(uid), _NO_LABELS, ()


def field_names(stored_as: str) -> tuple[str, ...]:
    return _READERS.get(stored_as, _PLAIN).names


def field_of(resource: Resource, label: str) -> str:
    """The field that a selector's label means in this version; ValueError with the API's text if there is none."""
    path = f"{resource.api_version}/{resource.plural}"
    if resource.custom is not None:
        if label == NAME or (label == NAMESPACE and resource.namespaced) or label in resource.custom.selectable:
            return label
        raise ValueError(_UNKNOWN_LISTED.format(label=label))
    if label == NAME or (label == NAMESPACE and resource.stored_as not in _NOT_NAMESPACED):
        return label
    if (alias := _ALIASES.get(path, {}).get(label)) is not None:
        return alias
    names = _ONLY.get(path, field_names(resource.stored_as))
    if label in names:
        return label
    default = _UNKNOWN_LISTED if resource.stored_as in _READERS else _UNKNOWN_OTHERS
    raise ValueError(_UNKNOWN.get(path, default).format(label=label))


# -- labels are shared: most objects have the labels of many others ---------------------------------------------------

MAX_LABEL_SETS: Final = 16_384
"""Label sets shared between objects. When the cache is full, it is cleared."""
MAX_SHARED_LABELS: Final = 64
"""Larger label sets are not shared."""
_NO_LABELS: Final[Mapping[str, str]] = {}
_label_sets: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}


def shared_labels(labels: dict[str, str]) -> Mapping[str, str]:
    if not labels:
        return _NO_LABELS
    if len(labels) > MAX_SHARED_LABELS:
        return labels
    if len(_label_sets) >= MAX_LABEL_SETS:
        _label_sets.clear()
    return _label_sets.setdefault(tuple(labels.items()), labels)


# -- readers are made from the table ----------------------------------------------------------------------------------


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _reader(stored_as: str, columns: list[str]) -> _Reader:
    names: list[str] = []
    tree: dict[str, Any] = {}
    paths: list[str] = []
    shows: list[tuple[int, Callable[[Any], str]]] = []
    for column in columns:
        name, _, where = column.partition("=")
        kind, show = (bool, _truth) if name.endswith("?") else (int, str) if name.endswith("#") else (str, str)
        name = name.rstrip("?#")
        if show is not str or kind is int:
            shows.append((len(names), show))
        names.append(name)
        if where == "-":  # selectable, and never set
            paths.append(NEVER)
            continue
        *outer, last = (where or name).split(".")
        inner = tree
        for step in outer:
            inner = inner.setdefault(step, {})
        inner[last] = kind
        paths.append(where or name)
    view = _view(stored_as, {**tree, "metadata": _Metadata})
    together, several = attrgetter(*paths), len(paths) > 1

    def values(found: Any) -> tuple[str, ...]:
        read = together(found)
        shown: list[Any] = list(read) if several else [read]
        for column, show in shows:
            shown[column] = show(shown[column])
        # Most texts are those of many others: the same phase, the same node, the name of a pod in its events.
        return tuple(map(intern, shown))

    return _Reader(tuple(names), msgspec.json.Decoder(view).decode, values)


def _view(name: str, tree: Mapping[str, Any]) -> type[Struct]:
    """A struct of these fields, each with its zero value."""
    fields: list[tuple[str, Any, Any]] = []
    for field, kind in tree.items():
        if isinstance(kind, dict):
            inner = _view(f"{name}.{field}", kind)
            fields.append((field, inner, msgspec.field(default_factory=inner)))
        else:
            fields.append((field, kind, msgspec.field(default_factory=kind)))
    return msgspec.defstruct(name, fields, gc=False)


# What is written most is spelt out, in the order of the table: that takes a quarter of the time.


def _pod_values(found: Any) -> tuple[str, ...]:
    spec, status = found.spec, found.status
    return (
        intern(spec.nodeName),
        intern(spec.restartPolicy),
        intern(spec.schedulerName),
        intern(spec.serviceAccountName),
        _truth(spec.hostNetwork),
        intern(status.phase),
        intern(status.podIP),
        "",
        intern(status.nominatedNodeName),
    )


def _event_values(found: Any) -> tuple[str, ...]:
    about, component = found.involvedObject, intern(found.reportingComponent)
    return (
        intern(about.kind),
        intern(about.namespace),
        intern(about.name),
        intern(about.uid),
        intern(about.apiVersion),
        intern(about.resourceVersion),
        intern(about.fieldPath),
        intern(found.reason),
        component,
        intern(found.source.component) or component,  # without a source, it is from its reporting component
        intern(found.type),
    )


def _readers() -> dict[str, _Reader]:
    lines = [line.split() for line in _TABLE.replace("\n    ", " ").strip().splitlines()]
    readers = {stored_as: _reader(stored_as, columns) for stored_as, *columns in lines}
    for stored_as, values in ((PODS, _pod_values), (EVENTS, _event_values)):
        readers[stored_as] = readers[stored_as]._replace(values=values)
    return readers


_PLAIN: Final = _Reader((), msgspec.json.Decoder(_Plain).decode, lambda _: ())
_READERS: Final = _readers()
NODE_COLUMN: Final = field_names(PODS).index(NODE_NAME)
"""Where a pod's values say which node it is on."""
