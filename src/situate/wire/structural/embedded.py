"""Objects inside of objects: x-kubernetes-embedded-resource. Their metadata has the fields of every kind's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from situate.core.model.field_errors import extended
from situate.wire.schema.decoder import DecodeError
from situate.wire.schema.object_meta import read_metadata
from situate.wire.structural.schema import Structural, levels


class Embedded(NamedTuple):
    path: str
    value: dict[str, Any]


class CoercionError(ValueError):
    """Metadata that cannot be read. The text is that of a field error."""

    def __init__(self, path: str, value: Any, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.value = value


def has_embedded(schema: Structural) -> bool:
    return any(one.embedded for one in levels(schema))


def embedded_in(value: Any, schema: Structural | None, path: str = "") -> Iterator[Embedded]:
    """The embedded objects, outer ones first."""
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded and path:
            yield Embedded(path, value)
        for name, inner in value.items():
            if isinstance(inner, dict | list):
                known = schema.properties.get(name)
                there = f"{path}.{name}" if path else name
                if known is None:
                    known, there = schema.additional, extended(path, f"[{name}]")
                yield from embedded_in(inner, known, there)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_in(item, schema.items, f"{path}[{index}]")


def coerce_embedded(
    value: Any, schema: Structural, report: Callable[[str], None], *, drops_invalid: bool = False
) -> None:
    """Remove unknown fields from the metadata of embedded objects. Raises CoercionError for what has a wrong type, or
    removes it. In place."""
    for path, obj in list(embedded_in(value, schema)):
        for name in ("apiVersion", "kind"):
            if name in obj and not isinstance(obj[name], str):
                if not drops_invalid:
                    raise CoercionError(f"{path}.{name}", obj[name], "must be a string")
                del obj[name]
        if "metadata" not in obj:
            continue
        try:
            obj["metadata"], unknown = read_metadata(obj["metadata"])
        except DecodeError as error:
            if not drops_invalid:
                raise CoercionError(f"{path}.metadata", obj["metadata"], error.why) from None
            continue
        for name in unknown:
            report(f"{path}.metadata.{name}")
