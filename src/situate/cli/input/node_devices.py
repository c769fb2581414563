"""Reads the file of `--node-devices`, and checks the slices that it makes as the API server would."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from situate.agent.node_devices import API, DeviceSet, slices_of
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.resource.resourceslice import KIND
from situate.wire.errors import InputError
from situate.wire.schema.decoder import DecodeError, decode
from situate.wire.yaml import load_yaml

SAMPLE: Final = "node-1"
"""The slices of a node of this name are checked."""


def node_devices(path: Path | None) -> tuple[DeviceSet, ...]:
    """Raises InputError."""
    if path is None:
        return ()
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=str(path)) from None
    documents = [one for one in load_yaml(data, str(path)) if one is not None]
    try:
        sets = [one for document in documents for one in msgspec.convert(document, list[DeviceSet])]
    except msgspec.ValidationError as error:
        raise InputError(str(error), file=str(path)) from None
    for number, one in enumerate(sets):
        _check(one, str(path), number)
    return tuple(sets)


def _check(one: DeviceSet, file: str, number: int) -> None:
    for body in slices_of(SAMPLE, [msgspec.structs.replace(one, nodes=SAMPLE)]):
        causes = Causes()
        try:
            found = decode(API, "ResourceSlice", msgspec.json.encode(body))
        except DecodeError as error:
            raise InputError(error.why, file=file, path=f"[{number}]") from None
        KIND.strategy.validate(found.object, causes)
        problems = [*found.problems, *(f"{cause.field}: {cause.message}" for cause in causes)]
        if problems:
            raise InputError(problems[0], file=file, path=f"[{number}]")
