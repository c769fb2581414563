"""Turns errors of the store into a Status for the client."""

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

FULL: Final = "the store is full, so nothing was written; reads still work: {why}"
UNKNOWN: Final = "the store did not answer, and the write may or may not have happened; read before you retry: {why}"
UNAVAILABLE: Final = "the store does not answer; nothing was written: {why}"
CLOSED: Final = "the server is shutting down"
FAILED: Final = "the store has failed; restart the server: {why}"
SLOW: Final = "the cache did not reach the newest revision of the store in time"
TOO_LARGE: Final = "the object is too large to store: {why}"


def status_error(error: StoreError) -> StatusError:
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
