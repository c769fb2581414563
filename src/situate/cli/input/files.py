"""Files as the command line names them: read whole, up to a limit. Knows nothing of their content."""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, Final

from situate.wire.errors import InputError
from situate.wire.objects import Source
from situate.wire.yaml import MAX_BYTES, MAX_JSON_BYTES

STDIN: Final = "-"
BOM: Final = b"\xef\xbb\xbf"
MAP_FROM: Final = 16 << 20
"""Files of this many bytes and more are mapped."""
SUFFIXES: Final = (".yaml", ".yml", ".json")
"""The files of a folder that are read."""


def read_file(path: Path | str) -> bytes:
    """The bytes of a file; `-` is standard input. Raises InputError if it is too large, OSError as `open` does."""
    if path == STDIN:
        return _read(sys.stdin.buffer, "standard input")
    with Path(path).open("rb") as file:
        return _read(file, str(path))


def _read(file: BinaryIO, name: str) -> bytes:
    most = MAX_JSON_BYTES if _looks_like_json(file) else MAX_BYTES
    data = file.read(most + 1)  # not all of it: a device may never end
    if len(data) > most:
        raise InputError(f"larger than {most} bytes", file=name)
    return data


@dataclass(frozen=True, slots=True)
class MappedFile:
    """A large file of JSON, of which only the parts that are read are in memory."""

    name: str
    data: mmap

    def read(self) -> Source:
        return Source(self.name, self.data[:])


def mapped_sources(names: Iterable[str]) -> Iterator[Source | MappedFile]:
    """As `read_sources`, but large files are mapped: copying hundreds of megabytes takes a while."""
    for name in names:
        found = None if name == STDIN or not Path(name).is_file() else _mapped(name)
        yield from read_sources([name]) if found is None else (found,)


def _mapped(name: str) -> MappedFile | None:
    with Path(name).open("rb") as file:
        if not MAP_FROM <= os.fstat(file.fileno()).st_size <= MAX_JSON_BYTES or not _looks_like_json(file):
            return None
        return MappedFile(name, mmap(file.fileno(), 0, access=ACCESS_READ))


def _looks_like_json(file: BinaryIO) -> bool:
    """By its first bytes, which are not consumed. JSON parses much faster than YAML, so its limit is higher."""
    return isinstance(file, BufferedReader) and file.peek(1).removeprefix(BOM).lstrip()[:1] == b"{"


def read_sources(names: Iterable[str]) -> Iterator[Source]:
    """Files of objects, in the order given; a folder stands for its YAML and JSON files, by name."""
    for name in names:
        for path in [name] if name == STDIN or not Path(name).is_dir() else _files_in(Path(name)):
            source = Source("standard input" if path == STDIN else str(path), read_file(path))
            if not source.data or source.data.isspace():
                raise InputError("is empty", file=source.name)
            yield source


def _files_in(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    if not found:
        raise InputError(f"no {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} files in this folder", file=str(folder))
    return found
