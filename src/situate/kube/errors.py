"""ApiError: an error response of the API server, or none. Callers decide by its predicates, never by its message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from situate.wire.errors import InputError, is_modified

MESSAGE_CHARS: Final = 1_000
"""The longest message to keep; a server may respond with pages of HTML."""

# Our own reasons, for when no response came.
UNREACHABLE: Final = "Unreachable"  # no connection, so nothing was sent
LOST: Final = "Lost"  # the connection broke before the whole response arrived
TIMEOUT: Final = "Timeout"  # also Kubernetes' own, for 504
NO_CREDENTIALS: Final = "NoCredentials"  # an exec plugin failed, a token file is gone
TOO_LARGE: Final = "TooLarge"  # the response is longer than we read
NOT_HTTP: Final = "NotHTTP"
NOT_LEADER: Final = "NotLeader"  # not sent: we had lost the right to write

_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_SERVER_FAULTS: Final = 500
_GONE: Final = frozenset({"Expired", "Gone", "ResourceExpired"})


class ApiError(Exception):
    """A request that failed.

    status          the HTTP status, or 0: no response
    reason          Kubernetes' Status.reason, or one of ours
    message         one line for people
    retry_after_s   how long the server asks us to wait
    sent            whether the request may have reached the server
    causes          the reasons of Status.details.causes: which checks failed
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after_s: float | None = None,
        sent: bool = True,
        causes: tuple[str, ...] = (),
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = str(InputError(message))[:MESSAGE_CHARS]
        self.retry_after_s = retry_after_s
        self.sent = sent
        self.causes = causes
        super().__init__(self.message)

    @property
    def unauthorized(self) -> bool:
        return self.status == 401

    @property
    def forbidden(self) -> bool:
        return self.status == 403

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """Somebody else changed it first, or it exists (then the reason is AlreadyExists)."""
        return self.status == 409

    @property
    def modified(self) -> bool:
        """Other writers changed the object while the request was being applied: the same request may succeed."""
        return is_modified(self.status, self.message)

    @property
    def gone(self) -> bool:
        """The resourceVersion is too old: list again."""
        return self.status == 410 or self.reason in _GONE

    @property
    def lost(self) -> bool:
        """Unknown whether it was done: read before a retry. A 5xx counts: the server may have stored the object."""
        return self.sent and (self.status == 0 or self.status >= _SERVER_FAULTS)

    @property
    def temporary(self) -> bool:
        """Whether the same request may succeed later."""
        return self.status == 0 or self.status in (408, 429) or self.status >= _SERVER_FAULTS


class _Cause(msgspec.Struct, frozen=True, gc=False):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True, gc=False):
    retry_after_seconds: int = msgspec.field(default=0, name="retryAfterSeconds")
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_decode = msgspec.json.Decoder(_Status).decode


def from_status(status: int, body: bytes, retry_after_s: float | None = None) -> ApiError:
    """The error of a response. The body may be anything.

    For an ERROR event of a watch, pass its Status object and 0: then its own code counts.
    """
    try:
        told = _decode(body)
    except msgspec.DecodeError:
        told = _Status()
    if told.kind != "Status":
        told = _Status(message="" if told.kind else _as_text(body))
    code = status or told.code
    reason = told.reason or _REASONS.get(code, "Unknown")
    if retry_after_s is None and told.details is not None and told.details.retry_after_seconds > 0:
        retry_after_s = float(told.details.retry_after_seconds)
    found = () if told.details is None else told.details.causes or ()
    causes = tuple(one.reason for one in found)
    return ApiError(code, reason, told.message or f"HTTP {code} {reason}", retry_after_s=retry_after_s, causes=causes)


def _as_text(body: bytes) -> str:
    return " ".join(body[:MESSAGE_CHARS].decode("utf-8", "replace").split())
