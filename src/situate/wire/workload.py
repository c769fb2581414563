"""Bench workloads: one JSON object {nodes, bound, pending}, with items that are decoded on demand."""

import msgspec

from situate.wire.errors import InputError, from_decoder


class Workload(msgspec.Struct):
    """Nodes, bound pods and pending pods, each as JSON bytes."""

    nodes: list[msgspec.Raw]
    bound: list[msgspec.Raw]
    pending: list[msgspec.Raw]


_WORKLOAD = msgspec.json.Decoder(Workload)


def decode_workload(data: bytes | memoryview, file: str = "") -> Workload:
    """The items refer to `data`, and keep it in memory. Raises InputError."""
    try:
        return _WORKLOAD.decode(data)
    except msgspec.ValidationError as error:
        path, problem = from_decoder(str(error), None)
        raise InputError(problem, file=file, path=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=file) from None
