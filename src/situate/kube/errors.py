"""What can go wrong between us and the API server, as one exception: its answer, or that none came.

Nothing here talks to anybody. Whoever catches an ApiError decides what to do by its predicates, never by its words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from situate.wire.errors import InputError

MESSAGE_CHARS: Final = 1_000
"""How much of a message is kept; a server may answer with pages of HTML."""

# Our own reasons, for when the server gave none: no answer came.
UNREACHABLE: Final = "Unreachable"  # no connection could be made, so nothing was asked
LOST: Final = "Lost"  # the connection broke before the whole answer was here
TIMEOUT: Final = "Timeout"  # also Kubernetes' own, for 504
NO_CREDENTIALS: Final = "NoCredentials"  # we have nothing to show: a plugin failed, a token file is gone
TOO_LARGE: Final = "TooLarge"  # the answer is longer than we read
NOT_HTTP: Final = "NotHTTP"
NOT_LEADER: Final = "NotLeader"  # it was not sent: by the time it could be, we had no right to write

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

    status          the HTTP status, or 0: no answer came
    reason          Kubernetes' Status.reason, or one of ours above
    message         one line for people
    retry_after_s   how long the server wants us to wait, if it said so
    sent            whether the request may have reached the server; False only if it certainly did not
    causes          the reasons of Status.details.causes: which of its checks failed, where the server says so
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
        """Somebody else changed it first, or it is there already (then the reason is AlreadyExists)."""
        return self.status == 409

    @property
    def gone(self) -> bool:
        """The resourceVersion asked for is too old: list again."""
        return self.status == 410 or self.reason in _GONE

    @property
    def lost(self) -> bool:
        """Nobody knows whether it was done: read before trying again. A server's own faults count, too: it may have
        stored the object and failed to say so."""
        return self.sent and (self.status == 0 or self.status >= _SERVER_FAULTS)

    @property
    def temporary(self) -> bool:
        """Whether the same request may succeed later, with nobody changing anything."""
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
    """The error that an answer's status and body tell of. The body may be anything.

    Of an ERROR event of a watch, give the Status object inside, and 0: its own code counts then.
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
