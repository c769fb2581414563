"""One bad request."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

JSON = "application/json"
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    headers: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        return (f"Content-Type: {self.content_type}", *self.headers) if self.body is not None else self.headers


def dumped(value: Any) -> bytes:
    """ASCII, so that anything can be written: surrogates without a partner, too."""
    return json.dumps(value).encode()


def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every place in an object, but for the whole of it, and what is there."""
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*path, key), inner
        yield from places(inner, (*path, key))


def replaced(value: Any, path: Path, put: Any) -> Any:
    """A copy with something else in one place."""
    copy = deepcopy(value)
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = put
    return copy


def shown(path: Path) -> str:
    return ".".join(map(str, path))
