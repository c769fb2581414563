"""Files as the command line names them: read whole, up to a limit. Understands nothing of what is in them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

if TYPE_CHECKING:
    from situate.wire.objects import Source

STDIN: Final = "-"
SUFFIXES: Final = (".yaml", ".yml", ".json")
"""What a folder's files of objects end with."""


def read_file(path: Path | str) -> bytes:
    """The bytes of a file; `-` is standard input. Raises InputError if there are too many, OSError as `open` does."""
    if path == STDIN:
        return _read(sys.stdin.buffer, "standard input")
    with Path(path).open("rb") as file:
        return _read(file, str(path))


def _read(file: BinaryIO, name: str) -> bytes:
    from situate.wire.errors import InputError
    from situate.wire.yaml import MAX_BYTES

    data = file.read(MAX_BYTES + 1)  # not all there is: a device may never end
    if len(data) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES} bytes", file=name)
    return data


def read_sources(names: Iterable[str]) -> Iterator[Source]:
    """Files of objects, in the order given; a folder stands for the files in it that end like one, by name."""
    from situate.wire.errors import InputError
    from situate.wire.objects import Source

    for name in names:
        for path in [name] if name == STDIN or not Path(name).is_dir() else _files_in(Path(name)):
            source = Source("standard input" if path == STDIN else str(path), read_file(path))
            if not source.data.strip():
                raise InputError("is empty", file=source.name)
            yield source


def _files_in(folder: Path) -> list[Path]:
    from situate.wire.errors import InputError

    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    if not found:
        raise InputError(f"no {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} files in this folder", file=str(folder))
    return found
