"""Manifests: the objects of files as plain values, one or many to a file, with lists taken apart."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from situate.cli.input.files import BOM, read_sources
from situate.wire.errors import InputError
from situate.wire.objects import Source
from situate.wire.yaml import load_yaml

MAX_LISTS: Final = 10
"""Lists in lists in lists."""
NOT_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Manifest:
    file: str
    within: str
    """Where in the file, if it has several: `document 2, item 3`."""
    body: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.body.get("kind") or "")

    @property
    def api_version(self) -> str:
        return str(self.body.get("apiVersion") or "")

    @property
    def group_and_kind(self) -> tuple[str, str]:
        return self.api_version.rpartition("/")[0], self.kind

    @property
    def metadata(self) -> Mapping[str, Any]:
        found = self.body.get("metadata")
        return found if isinstance(found, dict) else {}

    @property
    def name(self) -> str:
        found = self.metadata.get("name")
        return found if isinstance(found, str) else ""

    @property
    def namespace(self) -> str:
        found = self.metadata.get("namespace")
        return found if isinstance(found, str) else ""

    @property
    def subject(self) -> str:
        """`Deployment shop/web`, for messages."""
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}" if name else f"{self.kind} ({self.within})" if self.within else self.kind

    def required_name(self) -> str:
        """Raises InputError."""
        if not self.name:
            raise self.error("Required value", "metadata.name")
        return self.name

    def error(self, problem: str, path: str = "") -> InputError:
        return InputError(problem, file=self.file, subject=self.subject, path=path)


def read_manifests(names: Iterable[str]) -> list[Manifest]:
    """Raises InputError, OSError."""
    return [one for source in read_sources(names) for one in manifests_in(source)]


def manifests_in(source: Source) -> Iterator[Manifest]:
    """Raises InputError. Every manifest has a kind and an apiVersion."""
    data = source.data.removeprefix(BOM)
    documents: list[Any]
    try:
        documents = [msgspec.json.decode(data)]
    except NOT_JSON:
        documents = list(load_yaml(data, source.name))
    for number, document in enumerate(documents, 1):
        within = f"document {number}" if len(documents) > 1 else ""
        yield from _objects(document, source.name, within, 0)


def _objects(value: Any, file: str, within: str, depth: int) -> Iterator[Manifest]:
    if value is None:
        return
    if not isinstance(value, dict):
        raise InputError("expected an object", file=file, subject=within)
    kind, version, items = value.get("kind"), value.get("apiVersion"), value.get("items")
    if not isinstance(kind, str) or not kind:
        raise InputError("Required value", file=file, subject=within, path="kind")
    if not kind.endswith("List") or not isinstance(items, list):
        if not isinstance(version, str) or not version:
            raise InputError("Required value", file=file, subject=within, path="apiVersion")
        yield Manifest(file, within, value)
        return
    if depth >= MAX_LISTS:
        raise InputError(f"lists nested deeper than {MAX_LISTS} levels", file=file)
    # The items of a PodList need not say that they are pods.
    inherited = {} if kind == "List" else {"kind": kind.removesuffix("List"), "apiVersion": version}
    for number, item in enumerate(items, 1):
        place = f"{within}, item {number}" if within else f"item {number}"
        yield from _objects({**inherited, **item} if isinstance(item, dict) else item, file, place, depth + 1)


def unique(manifests: Iterable[Manifest]) -> Iterator[Manifest]:
    """Raises InputError where two objects have the same kind and name, in whichever files."""
    files: dict[tuple[str, str, str, str], str] = {}
    for one in manifests:
        key = (*one.group_and_kind, one.namespace, one.name)
        if one.name and key in files:
            raise one.error(f'Duplicate value: "{one.name}": already in {files[key]}', "metadata.name")
        files[key] = one.file
        yield one


def at_path(value: Any, *path: str) -> Any:
    """The value below these keys; None where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
