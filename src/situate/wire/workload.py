"""Bench workloads: one JSON object {nodes, bound, pending}, its items left as bytes until they are asked for."""

import msgspec

from situate.wire.errors import InputError, from_decoder

__all__ = ["Workload", "decode_workload"]


class Workload(msgspec.Struct):
    """Nodes, pods that are bound, and pods that wait, each as the bytes of its own object."""

    nodes: list[msgspec.Raw]
    bound: list[msgspec.Raw]
    pending: list[msgspec.Raw]


_WORKLOAD = msgspec.json.Decoder(Workload)


def decode_workload(data: bytes | memoryview, file: str = "") -> Workload:
    """The parts refer to `data`, which stays in memory for as long as any of them does. Raises InputError."""
    try:
        return _WORKLOAD.decode(data)
    except msgspec.ValidationError as error:
        path, problem = from_decoder(str(error), None)
        raise InputError(problem, file=file, path=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=file) from None
