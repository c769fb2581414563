"""A file of JSON taken apart into its objects, without decoding them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from situate.cli.input.files import BOM, MappedFile
from situate.cli.input.manifests import NOT_JSON, manifests_in
from situate.wire.objects import Source

if TYPE_CHECKING:
    from mmap import mmap

KIND: Final = re.compile(rb'\s*\{\s*"apiVersion":\s*"([^"]+)",\s*"kind":\s*"(\w+)"')
"""How an API server and kubectl begin an object."""
_BEGIN: Final = re.compile(
    rb'\{\n    "apiVersion": "v1",\n    "items": \[\n        (?=\{\n            "apiVersion": ")'
)
_BETWEEN: Final = re.compile(rb'\},\n        \{\n            "apiVersion": "')
_END: Final = b"\n        }\n    ],\n"
"""How kubectl indents a List: where items begin, where one ends and the next begins, where they end. A string in JSON
has no line breaks, so these occur nowhere else."""


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_head = msgspec.json.Decoder(_Head).decode


def raw_items(source: Source | MappedFile) -> list[msgspec.Raw] | None:
    """The objects of a file of JSON; None of any other file."""
    if isinstance(source, MappedFile):
        found = _items_of_kubectl(source.data)
        return raw_items(source.read()) if found is None else found
    data = source.data.removeprefix(BOM)
    if data.lstrip()[:1] != b"{":
        return None
    if (found := _items_of_kubectl(data)) is not None:
        return found
    try:
        head = _head(data)
    except NOT_JSON:
        return None
    if head.items is None or not head.kind.endswith("List"):
        return [msgspec.Raw(data)]
    if head.kind == "List":
        return head.items
    # The items of a PodList need not say that they are pods.
    return None if head.items and not KIND.match(bytes(head.items[0])[:200]) else head.items


def _items_of_kubectl(data: bytes | mmap) -> list[msgspec.Raw] | None:
    """The objects of a List as kubectl writes it, found by their indentation in half the time. If something else wrote
    the file, what is between two marks may be no object; then decoding it fails."""
    begin, end = _BEGIN.match(data), data.rfind(_END)
    if begin is None or end < begin.end():
        return None
    first, after = begin.end(), end + _END.index(b"}") + 1
    try:
        around = _head(data[:first] + data[after:])
    except NOT_JSON:
        return None
    if around.items or around.kind != "List":
        return None
    marks = [mark.start() + 1 for mark in _BETWEEN.finditer(data, first, after)]
    gap = len(b",\n        ")
    whole = memoryview(data)
    starts = [first, *(mark + gap for mark in marks)]
    return [msgspec.Raw(whole[start:stop]) for start, stop in zip(starts, [*marks, after], strict=True)]


def objects_containing(source: Source, text: bytes) -> list[dict[str, Any]]:
    """The objects of a file that was read before whose JSON contains this text; of YAML, all objects."""
    if text not in source.data:
        return []
    items = raw_items(source)
    if items is None:
        return [one.body for one in manifests_in(source)]
    found = [msgspec.json.decode(item) for item in items if text in bytes(item)]
    return [one for one in found if isinstance(one, dict)]
