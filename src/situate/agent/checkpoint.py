"""The last snapshot that an agent took over, on disk: what it goes on from when the control plane is away.

What is to run, in which version, and by which configuration. A version that is here is never gone back from.

One file, written whole or not at all, with a sum of itself: one that was torn or altered is said to be so, and counts
as absent. Then whatever runs goes on, and nothing is begun or ended until the control plane is there again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from situate.agent.desired_state import Snapshot

__all__ = ["Checkpoint", "CheckpointError", "load", "save"]

FORMAT: Final = 1
MOST_BYTES: Final = 256 << 20

_encode: Final = msgspec.json.Encoder().encode


class CheckpointError(Exception):
    """The file is there, and cannot be used; in one line."""


class Checkpoint(msgspec.Struct, frozen=True):
    node: str
    pods: Sequence[dict[str, Any]]
    versions: dict[str, int] = {}
    """Of the pods' bindings, by uid."""
    snapshot: Snapshot | None = None
    """None: the server has none."""
    cluster: str = ""
    """Whose this is: with another control plane, nothing of it counts."""
    format: int = FORMAT


_decode: Final = msgspec.json.Decoder(Checkpoint).decode


def save(path: Path, held: Checkpoint) -> None:
    """Raises OSError."""
    body = _encode(held)
    made = path.with_name(f"{path.name}.new")
    with made.open("wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(b"%08x\n" % zlib.crc32(body) + body)
        file.flush()
        os.fsync(file.fileno())
    made.replace(path)


def load(path: Path, node: str) -> Checkpoint | None:
    """None: there is none. Raises CheckpointError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    said, _, body = data.partition(b"\n")
    if said != b"%08x" % zlib.crc32(body):
        raise CheckpointError(f"{path}: torn or altered: its sum is not that of its content; it is not used")
    try:
        found = _decode(body)
    except msgspec.DecodeError as error:
        raise CheckpointError(f"{path}: {error}; it is not used") from None
    if found.format != FORMAT or found.node != node:
        raise CheckpointError(f"{path}: of another node or format ({found.node}, {found.format}); it is not used")
    return found
