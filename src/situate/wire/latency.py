"""Reads latency tables: milliseconds between places. Raises InputError.

places:
  eu-users:
    nodes: {edge-1: 1.5}
    zones: {eu-west-1a: 9, eu-west-1b: 11}
    regions: {us-east-1: 86}
"""

from collections.abc import Mapping, Sequence

from situate.core.config.decode import decode_struct
from situate.core.config.errors import ConfigError
from situate.core.model.latency import PlaceLatencies
from situate.core.plugins.latency import LatencyFile, latency_problems
from situate.wire.errors import InputError
from situate.wire.yaml import load_yaml

SUBJECT = "latency table"


def load_latencies(data: bytes, file: str = "") -> Mapping[str, PlaceLatencies]:
    """The table of a file, by place. Raises InputError."""
    documents = list(load_yaml(data, file))
    if len(documents) != 1 or documents[0] is None:
        raise InputError("one document with `places` is wanted", file=file, subject=SUBJECT)
    try:
        places = decode_struct(LatencyFile, documents[0]).places
    except ConfigError as error:
        raise _wrong(error.problems, file) from None
    if problems := latency_problems("places", places):
        raise _wrong(problems, file)
    if not places:
        raise InputError("has no places", file=file, subject=SUBJECT)
    return places


def _wrong(problems: Sequence[str], file: str) -> InputError:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InputError(f"{problems[0]}{more}", file=file, subject=SUBJECT)
