"""API errors: a Status, with Kubernetes' codes, reasons and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from situate.wire.errors import MODIFIED

CAUSES_SHOWN: Final = 100
"""Limits the size of a response to a request with many errors."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One error of an object: `Invalid value: "x": must be ...` of a field."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class StatusError(Exception):
    """An error response. Raise it anywhere in the server; the HTTP filters send it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        group: str = "",
        kind: str = "",
        name: str = "",
        uid: str = "",
        causes: Sequence[Cause] = (),
        retry_after_s: int = 0,
        with_details: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.group = group
        self.kind = kind
        """In details: the plural of the resource; for Invalid, the kind."""
        self.name = name
        self.uid = uid
        self.causes = tuple(causes)
        self.retry_after_s = retry_after_s
        self.with_details = with_details
        """Even if they are empty: kubectl debug reads them of a path that is not served."""
        self.continue_to = ""
        """For metadata.continue: a token to continue an expired list with the newest state."""

    def status(self) -> dict[str, Any]:
        """The body of the response."""
        named = {"name": self.name, "group": self.group, "kind": self.kind, "uid": self.uid}
        details: dict[str, Any] = {key: value for key, value in named.items() if value}
        if self.causes:
            details["causes"] = [
                {"reason": cause.reason, "message": cause.message, **({"field": cause.field} if cause.field else {})}
                if cause.reason
                else {"message": cause.message}
                for cause in self.causes
            ]
        if self.retry_after_s:
            details["retryAfterSeconds"] = self.retry_after_s
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self.continue_to} if self.continue_to else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:  # a webhook may refuse without one
            body["reason"] = self.reason
        if details or self.with_details:
            body["details"] = details
        body["code"] = self.code
        return body


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> StatusError:
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def unclassified(message: str) -> StatusError:
    """What kube-apiserver answers for an error of its own that has no reason: that of a conversion, say."""
    return StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def not_found(plural: str, group: str, name: str) -> StatusError:
    text = f'{_qualified(plural, group)} "{name}" not found'
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", text, group=group, kind=plural, name=name)


def already_exists(plural: str, group: str, name: str) -> StatusError:
    text = f'{_qualified(plural, group)} "{name}" already exists'
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", text, group=group, kind=plural, name=name)


def conflict(plural: str, group: str, name: str, why: str = MODIFIED) -> StatusError:
    text = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return StatusError(HTTPStatus.CONFLICT, "Conflict", text, group=group, kind=plural, name=name)


def forbidden(plural: str, group: str, name: str, why: str) -> StatusError:
    named = f'{_qualified(plural, group)} "{name}"' if name else _qualified(plural, group)
    text = f"{named} is forbidden: {why}"
    return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", text, group=group, kind=plural, name=name)


def invalid(kind: str, group: str, name: str, causes: Iterable[Cause]) -> StatusError:
    """`Pod "p" is invalid: spec.containers: Required value`."""
    whole = tuple(causes)
    found = whole[:CAUSES_SHOWN]
    # kube-apiserver lists a repeated problem each time among the causes, but once in the message.
    each = [*dict.fromkeys(f"{cause.field}: {cause.message}" for cause in found)]
    if len(whole) > len(found):
        each.append(f"and {len(whole) - len(found)} more")
    text = each[0] if len(each) == 1 else f"[{', '.join(each)}]"
    return StatusError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Invalid",
        f'{_qualified(kind, group)} "{name}" is invalid: {text}',
        group=group,
        kind=kind,
        name=name,
        causes=found,
    )


def expired(message: str) -> StatusError:
    return StatusError(HTTPStatus.GONE, "Expired", message)


def method_not_allowed(plural: str, group: str, verb: str) -> StatusError:
    text = f"{verb} is not supported on resources of kind {_qualified(plural, group)!r}".replace("'", '"')
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", text, group=group, kind=plural)


def too_many_requests(message: str, retry_after_s: int = 1) -> StatusError:
    return StatusError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", message, retry_after_s=retry_after_s)
