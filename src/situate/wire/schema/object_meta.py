"""Reads the metadata of an object whose kind is not in the table: of a custom resource, or of an embedded object."""

from typing import Any

import msgspec

from situate.wire.schema.decoder import DecodeError
from situate.wire.schema.slow_decoder import Walk, walked
from situate.wire.schema.structs import builtin, from_builtin
from situate.wire.schema.table import message
from situate.wire.schema.values import ValueRefusedError

META = "meta.v1.ObjectMeta"
_REFUSED = (msgspec.DecodeError, ValueError, RecursionError)


def read_metadata(given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """New metadata, as Go would write it, and the paths of unknown fields. Raises DecodeError."""
    try:
        return builtin(from_builtin(META, given)), ()
    except _REFUSED:
        pass
    walk = Walk()
    try:
        found = walked(message(META), given, walk)
    except ValueRefusedError as refused:
        raise DecodeError(str(refused)) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    return found, tuple(problem.partition('"')[2].removesuffix('"') for problem in walk.problems)
