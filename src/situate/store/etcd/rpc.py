"""The outcome of a gRPC call that failed."""

from __future__ import annotations

from enum import Enum
from typing import Final


class StatusCode(Enum):
    """gRPC's own numbers and names."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class RpcError(Exception):
    """A call that was not answered, or answered with a status other than OK."""

    def __init__(self, code: StatusCode, details: str = "") -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code
        self.details = details


class _EndOfStream(Enum):
    EOF = "the peer has ended the stream in order"


EOF: Final = _EndOfStream.EOF
EOS = _EndOfStream
"""The type of EOF."""


def unavailable(details: str) -> RpcError:
    return RpcError(StatusCode.UNAVAILABLE, details)


def status_of(number: str) -> StatusCode:
    """The code of a `grpc-status`; UNKNOWN for a number that gRPC does not have."""
    try:
        return StatusCode(int(number))
    except ValueError:
        return StatusCode.UNKNOWN
