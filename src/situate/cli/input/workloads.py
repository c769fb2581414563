"""What is checked: pods and templates of pods, and the objects that say whether they can be placed.

From files as people write them, or from a cluster. Kinds that have no pods and that nothing is checked against are
passed over. Judges nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import Namespace, PriorityClass
from situate.wire.errors import InputError
from situate.wire.objects import decode_checked

if TYPE_CHECKING:
    from situate.kube.client import Client
    from situate.wire.objects import Source

PAGE: Final = 2_000
TEMPLATES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): (),
    ("", "ReplicationController"): ("spec", "template"),
    ("apps", "Deployment"): ("spec", "template"),
    ("apps", "ReplicaSet"): ("spec", "template"),
    ("apps", "StatefulSet"): ("spec", "template"),
    ("apps", "DaemonSet"): ("spec", "template"),
    ("batch", "Job"): ("spec", "template"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""Group and kind -> where the template of its pods is."""
REPLICATED: Final = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
LISTED: Final = (
    ("Node", "/api/v1/nodes"),
    ("Namespace", "/api/v1/namespaces"),
    ("PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    ("PodDisruptionBudget", "/apis/policy/v1/poddisruptionbudgets"),
    ("Deployment", "/apis/apps/v1/deployments"),
    ("StatefulSet", "/apis/apps/v1/statefulsets"),
    ("DaemonSet", "/apis/apps/v1/daemonsets"),
    ("ReplicaSet", "/apis/apps/v1/replicasets"),
    ("ReplicationController", "/api/v1/replicationcontrollers"),
    ("Job", "/apis/batch/v1/jobs"),
    ("CronJob", "/apis/batch/v1/cronjobs"),
    ("Pod", "/api/v1/pods"),
)
MAX_LISTS: Final = 10


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods that are made alike, by whatever makes them; or one that nobody makes."""

    kind: str
    namespace: str
    name: str
    file: str
    pod: Pod
    """One of its pods, as it would be."""
    replicas: int
    path: str
    """Of the pod's spec within the object: `spec`, `spec.template.spec`."""
    manifest: bool
    """It is written down, not read from a server."""
    owner: tuple[str, str] | None
    """Kind and name of what makes it."""

    @property
    def subject(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Budget:
    namespace: str
    name: str
    file: str
    selector: Any
    min_available: int | str | None
    max_unavailable: int | str | None


@dataclass(slots=True, repr=False)
class Checked:
    """All that was read. Without a repr, as asyncio would make one of it all."""

    workloads: list[Workload] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    budgets: list[Budget] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Kinds that a server would not let us list, and why."""
    names: dict[tuple[str, str, str, str], str] = field(default_factory=dict)
    """Group, kind, namespace and name of all that was read, and in which file."""


def read_files(sources: Iterable[Source]) -> Checked:
    """Raises InputError, with the file and the object in it."""
    read = Checked()
    for source in sources:
        for value, within in _values(source):
            _take(read, value, source.name, within)
    return _without_owned(read)


def _values(source: Source) -> Iterator[tuple[dict[str, Any], str]]:
    from situate.wire.yaml import load_yaml

    data = source.data.removeprefix(b"\xef\xbb\xbf")
    documents: list[Any]
    try:
        documents = [msgspec.json.decode(data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        documents = list(load_yaml(data, source.name))
    for number, document in enumerate(documents, 1):
        within = f"document {number}" if len(documents) > 1 else ""
        yield from _objects(document, source.name, within, 0)


def _objects(value: Any, file: str, within: str, depth: int) -> Iterator[tuple[dict[str, Any], str]]:
    if value is None:
        return
    if not isinstance(value, dict):
        raise InputError("expected an object", file=file, subject=within)
    kind, items = value.get("kind"), value.get("items")
    if not isinstance(kind, str) or not kind:
        raise InputError("Required value", file=file, subject=within, path="kind")
    if not kind.endswith("List") or not isinstance(items, list):
        yield value, within
        return
    if depth >= MAX_LISTS:
        raise InputError(f"lists nested deeper than {MAX_LISTS} levels", file=file)
    told = {} if kind == "List" else {"kind": kind.removesuffix("List"), "apiVersion": value.get("apiVersion")}
    for number, item in enumerate(items, 1):
        place = f"{within}, item {number}" if within else f"item {number}"
        yield from _objects({**told, **item} if isinstance(item, dict) else item, file, place, depth + 1)


def _take(read: Checked, value: dict[str, Any], file: str, within: str) -> None:
    kind, version = str(value["kind"]), value.get("apiVersion")
    if not isinstance(version, str) or not version:
        raise InputError("Required value", file=file, subject=within, path="apiVersion")
    group = version.rpartition("/")[0]
    _once(read, group, kind, value, file)
    place = {"file": file, "within": within}
    if (group, kind) in TEMPLATES:
        read.workloads.append(_workload(kind, value, TEMPLATES[group, kind], file, within))
    elif (group, kind) == ("", "Node"):
        read.nodes.append(decode_checked(Node, msgspec.json.encode(value), **place))
    elif (group, kind) == ("", "Namespace"):
        read.namespaces.append(decode_checked(Namespace, msgspec.json.encode(value), **place))
    elif (group, kind) == ("scheduling.k8s.io", "PriorityClass"):
        read.priority_classes.append(decode_checked(PriorityClass, msgspec.json.encode(value), **place))
    elif (group, kind) == ("policy", "PodDisruptionBudget"):
        read.budgets.append(_budget(value, file, within))
    else:
        read.ignored[f"{kind} ({version})"] = read.ignored.get(f"{kind} ({version})", 0) + 1


def _once(read: Checked, group: str, kind: str, value: dict[str, Any], file: str) -> None:
    """Two objects of one kind and name are an error, wherever they are."""
    space, name = _at(value, "metadata", "namespace"), _at(value, "metadata", "name")
    key = (group, kind, space if isinstance(space, str) else "", name if isinstance(name, str) else "")
    if key[3] and key in read.names:
        subject = f"{kind} {key[2]}/{key[3]}" if key[2] else f"{kind} {key[3]}"
        text = f'Duplicate value: "{key[3]}": already in {read.names[key]}'
        raise InputError(text, file=file, subject=subject, path="metadata.name")
    read.names[key] = file


def _meta(value: dict[str, Any], file: str, within: str) -> dict[str, Any]:
    meta = value.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name") or meta.get("generateName"), str):
        subject = f"{value['kind']} ({within})" if within else str(value["kind"])
        raise InputError(
            "Required value: name or generateName is required", file=file, subject=subject, path="metadata"
        )
    return meta


def _workload(kind: str, value: dict[str, Any], path: tuple[str, ...], file: str, within: str) -> Workload:
    meta = _meta(value, file, within)
    name, space = str(meta.get("name") or meta["generateName"]), meta.get("namespace") or "default"
    template = value
    for key in path:
        found = template.get(key)
        if not isinstance(found, dict):
            subject = f"{kind} {space}/{name}"
            raise InputError("Required value", file=file, subject=subject, path=".".join(path))
        template = found
    made = {
        "metadata": {**(template.get("metadata") or {}), "name": name, "namespace": space},
        "spec": template.get("spec") or {},
        "status": value.get("status") or {} if kind == "Pod" else {},
    }
    pod = decode_checked(Pod, msgspec.json.encode(made), file=file, within=f"{kind} {space}/{name}")
    replicas = _at(value, "spec", "replicas") if kind in REPLICATED else 1
    return Workload(
        kind=kind,
        namespace=pod.metadata.namespace,
        name=name,
        file=file,
        pod=pod,
        replicas=replicas if isinstance(replicas, int) else 1,
        path=".".join((*path, "spec")),
        manifest=not meta.get("uid"),
        owner=_owner(meta.get("ownerReferences")),
    )


def _owner(references: Any) -> tuple[str, str] | None:
    for one in references if isinstance(references, list) else ():
        if isinstance(one, dict) and one.get("controller"):
            return str(one.get("kind")), str(one.get("name"))
    return None


def _budget(value: dict[str, Any], file: str, within: str) -> Budget:
    meta = _meta(value, file, within)
    spec = value.get("spec") or {}
    return Budget(
        namespace=meta.get("namespace") or "default",
        name=str(meta.get("name")),
        file=file,
        selector=spec.get("selector"),
        min_available=spec.get("minAvailable"),
        max_unavailable=spec.get("maxUnavailable"),
    )


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without_owned(read: Checked) -> Checked:
    """Without what another object that was read makes: its template is what a person would change."""
    made = {(one.kind, one.namespace, one.name): None for one in read.workloads}
    kept: list[Workload] = []
    seen: dict[tuple[str, str, str], int] = {}
    for one in read.workloads:
        if one.kind == "ReplicaSet" and not one.replicas:
            continue  # what a rollout left behind
        key = None if one.owner is None else (one.owner[0], one.namespace, one.owner[1])
        if key is not None and key in made:
            continue
        if key is not None and one.kind == "Pod":
            # Of pods whose maker was not read, one stands for all.
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:
                continue
        kept.append(one)
    read.workloads = [
        replace(one, replicas=seen[one.owner[0], one.namespace, one.owner[1]])
        if one.kind == "Pod" and one.owner is not None
        else one
        for one in kept
    ]
    return read


# -- a live cluster --------------------------------------------------------------------------------------------------


async def read_live(client: Client) -> Checked:
    """All that we may list. Raises ApiError if that is nothing at all."""
    from situate.kube.errors import ApiError

    read = Checked()
    where = client.access.server

    async def one(kind: str, path: str) -> Sequence[dict[str, Any]]:
        try:
            return await _listed(client, kind, path)
        except ApiError as error:
            if not (error.forbidden or error.not_found):
                raise
            read.refused[kind] = error.message
            return ()

    answers = await asyncio.gather(*(one(kind, path) for kind, path in LISTED))
    if len(read.refused) == len(LISTED):
        raise ApiError(403, "Forbidden", next(iter(read.refused.values())))
    for listed in answers:
        for value in listed:
            _take(read, value, where, "")
    return _without_owned(read)


async def _listed(client: Client, kind: str, path: str) -> list[dict[str, Any]]:
    version = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
    params, found = {"limit": str(PAGE)}, []
    while True:
        page = msgspec.json.decode(await client.request("GET", path, params=params))
        found += [{**item, "kind": kind, "apiVersion": version} for item in page.get("items") or ()]
        more = _at(page, "metadata", "continue")
        if not more:
            return found
        params = {**params, "continue": more}
