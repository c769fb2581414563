"""The agent's checkpoint on disk: the last snapshot and its pods, for when the control plane cannot be reached.

The file is replaced atomically and has a checksum. If it is damaged, the agent ignores it: running containers go on,
and none is started or stopped until the control plane can be reached.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from situate.agent.desired_state import Snapshot

FORMAT: Final = 1
MOST_BYTES: Final = 256 << 20

_encode: Final = msgspec.json.Encoder().encode


class CheckpointError(Exception):
    """The file exists and cannot be used; the message is one line."""


class Checkpoint(msgspec.Struct, frozen=True):
    node: str
    pods: Sequence[dict[str, Any]]
    versions: dict[str, int] = {}
    """The versions of the pods' bindings, by uid."""
    snapshot: Snapshot | None = None
    """None: the server has no snapshots."""
    cluster: str = ""
    """The cluster of the pods. An agent of another cluster ignores them."""
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
    """None: there is no file. Raises CheckpointError."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    checksum, _, body = data.partition(b"\n")
    if checksum != b"%08x" % zlib.crc32(body):
        raise CheckpointError(f"{path}: wrong checksum; ignored")
    try:
        found = _decode(body)
    except msgspec.DecodeError as error:
        raise CheckpointError(f"{path}: {error}; ignored") from None
    if found.format != FORMAT or found.node != node:
        raise CheckpointError(f"{path}: of another node or format ({found.node}, {found.format}); ignored")
    return found
