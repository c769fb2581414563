"""The file format of a backup: all entries of a store at one revision, and files, as gzipped lines of JSON.

    {"header": ...}     what it is: of which store, at which revision, by which release
    {"entry": ...}      one for each key, in order
    {"file": ...}       one for each file
    {"end": ...}        how many there were, and the SHA-256 of every byte before

It is written beside its place, synced, read again and then renamed, so there is a whole file under its name or none. A
file without its last line, or with a wrong one, is refused before anything is restored. It has secrets and keys, so
only its owner can read it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from situate.store.durable import sync_folder
from situate.store.errors import BackupError

VERSION: Final = 1
"""Of the file's layout."""
OWNER_ONLY: Final = 0o600
COMPRESSION: Final = 1
MAX_LINE_BYTES: Final = 16 << 20
"""The longest line: far more than an entry can have."""


DAMAGED: Final = "{path} is damaged, or not a backup of situate"


class BackupHeader(Struct, frozen=True, kw_only=True):
    version: int = VERSION
    format: int
    """Of the store."""
    release: str
    identity: str
    """Of the store; "" if a release without identities made it."""
    revision: int
    created: str
    """When the backup was made, in ISO format."""


class BackupEntry(Struct, frozen=True):
    key: str
    value: bytes
    modified: int
    lease: int = 0
    ttl_s: int = 0
    """Of the lease."""


class BackupFile(Struct, frozen=True):
    """A file of the control plane's directory."""

    path: str
    mode: int
    content: bytes


class BackupEnd(Struct, frozen=True):
    entries: int
    files: int
    sha256: str


class _Line(Struct, frozen=True, omit_defaults=True):
    header: BackupHeader | None = None
    entry: BackupEntry | None = None
    file: BackupFile | None = None
    end: BackupEnd | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode


def write_backup(
    path: Path, header: BackupHeader, entries: Iterable[BackupEntry], files: Iterable[BackupFile]
) -> BackupEnd:
    """Write a temporary file, verify it, and rename it. Replaces an existing file of this name."""
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        new.unlink(missing_ok=True)  # of a process that was killed, or of somebody who wants to read it
        handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ONLY)
        with os.fdopen(handle, "wb") as raw:
            with gzip.GzipFile("", "wb", COMPRESSION, raw, mtime=0) as packed:
                end = _write(packed, header, entries, files)
            raw.flush()
            os.fsync(raw.fileno())
        if verify_backup(new) != (header, end):
            raise BackupError(f"{path} does not read back as it was written; check the disk")
        new.replace(path)
    except OSError as error:
        raise BackupError(f"{path} cannot be written: {error.strerror}") from None
    finally:
        new.unlink(missing_ok=True)
    sync_folder(path.parent)
    return end


def _write(
    to: gzip.GzipFile, header: BackupHeader, entries: Iterable[BackupEntry], files: Iterable[BackupFile]
) -> BackupEnd:
    digest = hashlib.sha256()
    counts = {"entry": 0, "file": 0}

    def lines() -> Iterator[_Line]:
        yield _Line(header=header)
        for entry in entries:
            counts["entry"] += 1
            yield _Line(entry=entry)
        for file in files:
            counts["file"] += 1
            yield _Line(file=file)

    for line in lines():
        text = _encode(line) + b"\n"
        digest.update(text)
        to.write(text)
    end = BackupEnd(counts["entry"], counts["file"], digest.hexdigest())
    to.write(_encode(_Line(end=end)) + b"\n")
    return end


@contextmanager
def open_backup(path: Path) -> Iterator[tuple[BackupHeader, Iterator[BackupEntry | BackupFile | BackupEnd]]]:
    """The header, and the rest in order; the end comes last, and only if everything before it is as it was written."""
    try:
        with path.open("rb") as raw, gzip.GzipFile(fileobj=raw) as packed:
            digest = hashlib.sha256()
            first = _line(path, packed)
            if first is None or first[1].header is None:
                raise BackupError(f"{path} is not a backup of situate")
            header = first[1].header
            if header.version > VERSION:
                raise BackupError(f"{path} was made by situate {header.release}, which is newer; use that release")
            digest.update(first[0])
            yield header, _rest(path, packed, digest)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise BackupError(DAMAGED.format(path=path)) from None
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror or error}") from None


def _rest(path: Path, packed: gzip.GzipFile, digest: hashlib._Hash) -> Iterator[BackupEntry | BackupFile | BackupEnd]:
    entries = files = 0
    while (found := _line(path, packed)) is not None:
        text, line = found
        if line.end is not None:
            if line.end != BackupEnd(entries, files, digest.hexdigest()) or packed.read(1):
                raise BackupError(f"{path} is damaged: its checksum does not match")
            yield line.end
            return
        digest.update(text)
        entries += line.entry is not None
        files += line.file is not None
        part = line.entry or line.file
        if part is None:
            raise BackupError(DAMAGED.format(path=path))
        yield part
    raise BackupError(f"{path} is cut off: it has no end")


def _line(path: Path, packed: gzip.GzipFile) -> tuple[bytes, _Line] | None:
    text = packed.readline(MAX_LINE_BYTES)
    if not text:
        return None
    try:
        return text, _decode(text)
    except msgspec.DecodeError:
        raise BackupError(DAMAGED.format(path=path)) from None


def verify_backup(path: Path) -> tuple[BackupHeader, BackupEnd]:
    """Read all of it. BackupError if it is not as it was written."""
    with open_backup(path) as (header, rest):
        end = next(part for part in rest if isinstance(part, BackupEnd))
    return header, end
