"""What the store's errors are to a client: a Status in plain words."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError
from situate.store.errors import (
    ClosedError,
    InvalidRequestError,
    OutcomeUnknownError,
    StoreError,
    StoreFullError,
    UnavailableError,
)

__all__ = ["status_error", "stale_cache", "too_large"]

FULL: Final = "the store has no room left, so nothing was written; reads go on: {why}"
UNKNOWN: Final = "the store did not answer, and whether this was written is not known; read before trying again: {why}"
UNAVAILABLE: Final = "the store does not answer, and nothing was written: {why}"
CLOSED: Final = "the server is shutting down"
FAILED: Final = "the store has failed, and the server must be started anew: {why}"
SLOW: Final = "the store did not show its newest state in time"
TOO_LARGE: Final = "the object is too large to be stored: {why}"


def status_error(error: StoreError) -> StatusError:
    """Of an error of the store."""
    match error:
        case StoreFullError():
            return StatusError(HTTPStatus.INSUFFICIENT_STORAGE, "InsufficientStorage", FULL.format(why=error))
        case OutcomeUnknownError():
            return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", UNKNOWN.format(why=error))
        case UnavailableError():
            text = UNAVAILABLE.format(why=error)
            return StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text, retry_after_s=1)
        case ClosedError():
            return StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", CLOSED, retry_after_s=1)
        case InvalidRequestError():
            return too_large(str(error))
        case _:
            return StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", FAILED.format(why=error))


def too_large(why: str) -> StatusError:
    text = TOO_LARGE.format(why=why)
    return StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", text)


def stale_cache() -> StatusError:
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", SLOW, retry_after_s=1)
