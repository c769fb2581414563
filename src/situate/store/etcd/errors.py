"""Maps etcd's errors: by the gRPC status, and where that is not enough, by etcd's text."""

from __future__ import annotations

from typing import Final

from situate.store.errors import InvalidRequestError, StoreError, StoreFullError, UnavailableError
from situate.store.etcd.rpc import RpcError, StatusCode

COMPACTED: Final = "required revision has been compacted"
FUTURE: Final = "required revision is a future revision"
NO_SPACE: Final = "database space exceeded"
DENIED: Final = "permission denied"
NO_LEASE: Final = "requested lease not found"
STALE_TOKEN: Final = "invalid auth token"  # noqa: S105
OLD_AUTH: Final = "revision of auth store is old"

# These come from etcd itself and are final. After any other, the outcome may be unknown.
_FINAL: Final = frozenset(
    {
        StatusCode.INVALID_ARGUMENT,
        StatusCode.NOT_FOUND,
        StatusCode.ALREADY_EXISTS,
        StatusCode.PERMISSION_DENIED,
        StatusCode.UNAUTHENTICATED,
        StatusCode.OUT_OF_RANGE,
        StatusCode.UNIMPLEMENTED,
        StatusCode.FAILED_PRECONDITION,
    }
)


def says(error: RpcError, words: str) -> bool:
    return words in error.details


def is_final(error: RpcError) -> bool:
    """Whether etcd itself refused: then nothing happened, and a retry gives the same."""
    return error.code in _FINAL or says(error, NO_SPACE)


def wants_new_token(error: RpcError) -> bool:
    return says(error, STALE_TOKEN) or says(error, OLD_AUTH)


def lease_is_gone(error: RpcError) -> bool:
    return says(error, NO_LEASE)


def explained(error: RpcError) -> StoreError:
    text = f"etcd: {error.details or error.code.name}"
    if says(error, NO_SPACE):
        return StoreFullError(text)
    if error.code in {StatusCode.INVALID_ARGUMENT, StatusCode.OUT_OF_RANGE}:
        return InvalidRequestError(text)
    return StoreError(text) if is_final(error) else UnavailableError(text)
