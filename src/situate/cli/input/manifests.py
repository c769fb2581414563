"""Objects from the files that people write: YAML or JSON, one or many, a List or a directory of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from situate.wire.errors import InputError
from situate.wire.yaml import load_yaml

__all__ = ["read_manifests"]

SUFFIXES: Final = (".yaml", ".yml", ".json")


def read_manifests(files: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Each object with the name of its file; `-` is what comes in. Raises InputError, OSError."""
    return [(name, body) for file in files for name, text in _texts(file) for body in _objects(text, name)]


def _texts(file: str) -> Iterator[tuple[str, bytes]]:
    if file == "-":
        yield "standard input", sys.stdin.buffer.read()
        return
    path = Path(file)
    if not path.is_dir():
        yield file, path.read_bytes()
        return
    found = sorted(one for one in path.iterdir() if one.suffix in SUFFIXES)
    if not found:
        raise InputError(f"no {', '.join(SUFFIXES)} files in it", file=file)
    for one in found:
        yield str(one), one.read_bytes()


def _objects(text: bytes, file: str) -> Iterator[dict[str, Any]]:
    for document in load_yaml(text, file):
        if document is None:
            continue
        if not isinstance(document, dict):
            raise InputError("a document that is no object", file=file)
        if document.get("kind") == "List" and isinstance(document.get("items"), list):
            yield from document["items"]
        else:
            yield document
