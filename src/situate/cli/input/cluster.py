"""A cluster to look at: from files, or from an API server that lets us list it. Changes nothing, decides nothing.

Files that an API server wrote are read fast: it has checked them and set their defaults. Anything else, and anything
that turns out odd, goes through the careful reader, which says what is wrong with it.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from situate.cli.input.files import Mapped

if TYPE_CHECKING:
    from mmap import mmap

    from situate.core.model.named import NamedObject
    from situate.core.model.node import Node
    from situate.core.model.pod import Pod
    from situate.core.model.policy import PriorityClass
    from situate.core.state.cluster import Cluster
    from situate.kube.client import Client
    from situate.kube.kinds import Kind
    from situate.wire.objects import Objects, Source

PAGE: Final = 5_000
"""How many objects a page of a list has at most."""
NEEDED: Final = ("pods", "nodes")
"""Without these nothing can be said."""
_KIND: Final = re.compile(rb'\s*\{\s*"apiVersion":\s*"([^"]+)",\s*"kind":\s*"(\w+)"')
_BEGIN: Final = re.compile(
    rb'\{\n    "apiVersion": "v1",\n    "items": \[\n        (?=\{\n            "apiVersion": ")'
)
_BETWEEN: Final = re.compile(rb'\},\n        \{\n            "apiVersion": "')
_END: Final = b"\n        }\n    ],\n"
"""How kubectl indents a List: where items begin, where one ends and the next begins, where they end. A text in JSON has
no line breaks, so these are nowhere else."""
_WITNESSES: Final = ("Event", "PlacementDecision")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(slots=True, repr=False)
class Seen:
    """What there is, and what else was said of the one pod that is asked about.

    Without a repr: asyncio shows what a task returns, cut short, but only after all of it was put into words.
    """

    pods: list[Pod] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    named: list[NamedObject] = field(default_factory=list)
    kinds: dict[str, None] = field(default_factory=dict)
    """Which kinds there were, or, of a live cluster, could be listed."""
    refused: dict[str, str] = field(default_factory=dict)
    """Resources that could not be listed, and why."""
    raw: list[Mapping[str, Any]] = field(default_factory=list)
    """The pod that is asked about as it is written, and its events and decisions."""
    ignored: Mapping[str, int] = field(default_factory=dict)
    priority_classes: list[PriorityClass] = field(default_factory=list)
    """For pods that are still to come: those that are there have their priority."""

    def cluster(self) -> Cluster:
        from situate.core.state.cluster import Cluster

        made = Cluster()
        made.load(self.nodes, self.named, self.pods)
        return made


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


class _Odd(Exception):  # noqa: N818
    """Not what an API server writes."""


_head = msgspec.json.Decoder(_Head).decode


# -- files -----------------------------------------------------------------------------------------------------------


def read_files(sources: Sequence[Source | Mapped], name: str) -> tuple[Seen, Cluster]:
    """The objects of some files, as a cluster. `name` is that of the pod that is asked about. Raises InputError."""
    gc.disable()  # objects by the thousand are made here and none is let go of: looking for garbage only takes time
    try:
        return _read(sources, name)
    finally:
        gc.enable()
        gc.freeze()


def _read(given: Sequence[Source | Mapped], name: str) -> tuple[Seen, Cluster]:
    split = [_items(source) for source in given]
    try:
        seen = _fast([item for items in split for item in items or ()], name) if None not in split else None
        cluster = None if seen is None else seen.cluster()
    except (_Odd, msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        seen = cluster = None
    if seen is None or cluster is None:
        sources = [source.read() if isinstance(source, Mapped) else source for source in given]
        seen = _careful(sources)
        cluster = seen.cluster()
        seen.raw = _witnesses(sources, split, name)
    return seen, cluster


def _items(source: Source | Mapped) -> list[msgspec.Raw] | None:
    """The objects of a file of JSON, not looked at yet; None of any other file."""
    if isinstance(source, Mapped):
        found = _items_of_kubectl(source.data)
        return _items(source.read()) if found is None else found
    data = source.data.removeprefix(_BOM)
    if data.lstrip()[:1] != b"{":
        return None
    if (found := _items_of_kubectl(data)) is not None:
        return found
    try:
        head = _head(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if head.items is None or not head.kind.endswith("List"):
        return [msgspec.Raw(data)]
    if head.kind == "List":
        return head.items
    # The items of a PodList need not say that they are pods.
    return None if head.items and not _KIND.match(bytes(head.items[0])[:200]) else head.items


def _items_of_kubectl(data: bytes | mmap) -> list[msgspec.Raw] | None:
    """The objects of a List as kubectl writes it: found by their indentation, in half the time. What is between two
    marks is no object if the file was written otherwise; decoding it says so."""
    begin, end = _BEGIN.match(data), data.rfind(_END)
    if begin is None or end < begin.end():
        return None
    first, after = begin.end(), end + _END.index(b"}") + 1
    try:
        around = _head(data[:first] + data[after:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if around.items or around.kind != "List":
        return None
    marks = [mark.start() + 1 for mark in _BETWEEN.finditer(data, first, after)]
    gap = len(b",\n        ")
    whole = memoryview(data)
    starts = [first, *(mark + gap for mark in marks)]
    return [msgspec.Raw(whole[start:stop]) for start, stop in zip(starts, [*marks, after], strict=True)]


def _fast(items: Iterable[msgspec.Raw], name: str) -> Seen:
    """Raises _Odd, or whatever decoding raises. The pod that is asked about is checked all the same."""
    from situate.core.model.validate import first_problem
    from situate.wire.objects import KINDS

    decoders = {kind: (group, msgspec.json.Decoder(model).decode) for kind, (group, model) in KINDS.items()}
    found: dict[str, list[Any]] = {}
    ignored: dict[str, int] = {}
    names: dict[tuple[str, str, str], None] = {}
    written: list[msgspec.Raw] = []
    match = _KIND.match
    for item in items:
        told = match(item)
        if told is None:
            raise _Odd
        version, kind = told[1].decode(), told[2].decode()
        group, decode = decoders.get(kind, (None, None))
        if decode is None or group != version.rpartition("/")[0]:
            if kind == "PodGroup" or kind.endswith("List"):
                raise _Odd
            ignored[f"{kind} ({version})"] = ignored.get(f"{kind} ({version})", 0) + 1
            if kind in _WITNESSES:
                written.append(item)
            continue
        made = decode(item)
        meta = made.metadata  # type: ignore[attr-defined]
        if not meta.resource_version or not meta.uid:
            raise _Odd
        names[kind, meta.namespace, meta.name] = None
        found.setdefault(kind, []).append(made)
        if meta.name == name:
            written.append(item)
    if len(names) != sum(len(those) for those in found.values()):
        raise _Odd  # a name is there twice
    if any(pod.spec.priority is None and pod.spec.priority_class_name for pod in found.get("Pod", ())):
        raise _Odd
    if any(pod.metadata.name == name and first_problem(pod) is not None for pod in found.get("Pod", ())):
        raise _Odd
    kinds = dict.fromkeys(found)
    pods: list[Pod] = found.pop("Pod", [])
    nodes: list[Node] = found.pop("Node", [])
    classes: list[PriorityClass] = found.pop("PriorityClass", [])
    named = [one for those in found.values() for one in those]
    needle = name.encode()
    raw = [msgspec.json.decode(item) for item in written if needle in bytes(item)]
    return Seen(pods, nodes, named, kinds, raw=raw, ignored=ignored, priority_classes=classes)


def _careful(sources: Sequence[Source]) -> Seen:
    from situate.wire.objects import read_objects

    objects: Objects = read_objects(sources)
    kinds = dict.fromkeys(type(one).__name__ for one in objects.all())
    named = list(objects.named())
    classes = objects.priority_classes
    return Seen(objects.pods, objects.nodes, named, kinds, ignored=objects.ignored, priority_classes=classes)


def _witnesses(
    sources: Sequence[Source], split: Sequence[list[msgspec.Raw] | None], name: str
) -> list[Mapping[str, Any]]:
    """The pods of this name as they are written, and what else speaks of them."""
    from situate.wire.yaml import load_yaml

    needle = name.encode()
    search = re.compile(re.escape(needle)).search
    found: list[Mapping[str, Any]] = []
    for source, items in zip(sources, split, strict=True):
        if needle not in source.data:
            continue
        if items is None:
            listed = [one for document in load_yaml(source.data, source.name) for one in _listed(document)]
        else:
            listed = [msgspec.json.decode(item) for item in items if search(item)]
        found += [one for one in listed if isinstance(one, dict) and one.get("kind") in ("Pod", *_WITNESSES)]
    return found


def _listed(document: Any) -> list[Any]:
    items = document.get("items") if isinstance(document, dict) else None
    return items if isinstance(items, list) else [document]


# -- a live cluster --------------------------------------------------------------------------------------------------


async def read_live(client: Client, kinds: Sequence[Kind]) -> Seen:
    """All objects of these kinds that we may list. Raises ApiError if we may not list pods or nodes."""
    import asyncio  # not needed for files, and slow to import

    seen = Seen()
    gc.disable()
    try:
        await asyncio.gather(*(_list(client, kind, seen) for kind in kinds))
    finally:
        gc.enable()
        gc.freeze()
    return seen


async def _list(client: Client, kind: Kind, seen: Seen) -> None:
    from situate.kube.discovery import served_version
    from situate.kube.errors import ApiError

    try:
        version = await served_version(client, kind) if kind.optional else kind.versions[0]
        if version is not None:
            found = await _pages(client, kind, version)
            seen.kinds[kind.model.__name__] = None
            into: dict[str, list[Any]] = {"pods": seen.pods, "nodes": seen.nodes}
            into.get(kind.name, seen.named).extend(found)
    except ApiError as error:
        if kind.name in NEEDED or not (error.forbidden or error.not_found):
            raise
        if not kind.optional:
            seen.refused[kind.name] = error.message


async def _pages(client: Client, kind: Kind, version: str) -> list[Any]:
    """All pages, one after another; while one is decoded, the server has been asked for the next."""
    import asyncio

    from situate.wire.watch import Reader

    params = {**kind.params, "limit": str(PAGE)}
    found: list[Any] = []
    reader = None
    asked = asyncio.create_task(client.request("GET", kind.path(version), params=params))
    try:
        while True:
            data = await asked
            more = _more(data)
            if more:
                following = {**params, "continue": more}
                asked = asyncio.create_task(client.request("GET", kind.path(version), params=following))
                await asyncio.sleep(0)  # so that it is sent before we are busy
            reader = reader or Reader(kind.model)
            found.extend(item.object for item in reader.page(data).items if item.object is not None)
            if not more:
                return found
    finally:
        asked.cancel()


class _ListMeta(msgspec.Struct, frozen=True):
    more: str = msgspec.field(default="", name="continue")


class _OnlyMeta(msgspec.Struct, frozen=True):
    metadata: _ListMeta = _ListMeta()


_only_meta = msgspec.json.Decoder(_OnlyMeta).decode


def _more(data: bytes) -> str:
    """What to ask for the next page with. What is no list is for the reader to say."""
    try:
        return _only_meta(data).metadata.more
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


async def read_witnesses(client: Client, namespace: str, name: str) -> list[Mapping[str, Any]]:
    """The pod as it is written, its events, and, where the server keeps one, its decision. Raises ApiError."""
    from urllib.parse import quote

    from situate.kube.errors import ApiError

    space, said = quote(namespace, safe=""), quote(name, safe="")
    pod = msgspec.json.decode(await client.request("GET", f"/api/v1/namespaces/{space}/pods/{said}"))
    found: list[Mapping[str, Any]] = [{**pod, "kind": "Pod"}]
    events = f"/api/v1/namespaces/{space}/events"
    selector = f"involvedObject.name={name},involvedObject.kind=Pod"
    decision = f"/apis/situate.dev/v1alpha1/namespaces/{space}/placementdecisions/{said}"
    for path, params in ((events, {"fieldSelector": selector}), (decision, None)):
        try:
            answer = msgspec.json.decode(await client.request("GET", path, params=params))
        except ApiError:
            continue  # others have no decisions, and not everybody may read events
        if path == decision:
            found.append({**answer, "kind": "PlacementDecision"})
        else:
            found.extend({**one, "kind": "Event"} for one in answer.get("items") or ())
    return found
