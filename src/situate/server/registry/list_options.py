"""Checks the options of lists and watches, and reads and writes continue tokens."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from http import HTTPStatus
from typing import Final

import msgspec
from msgspec import Struct

from situate.core.model.integers import parse_int64
from situate.server.errors import Cause, StatusError, bad_request, invalid
from situate.server.kinds.field_errors import forbidden, not_supported
from situate.server.requests import ListOptions, WatchOptions

EXACT, NOT_OLDER = "Exact", "NotOlderThan"
_MATCH: Final = "resourceVersionMatch"
_VERSION: Final = "meta.k8s.io/v1"
_INVALID: Final = "invalid continue token: continue key is not valid"
LATEST: Final = -1
"""In a token: continue with the newest state, though the list started with an older one."""


def parse_resource_version(text: str) -> int:
    """The revision of a resourceVersion; "" and "0" are 0. Raises 400 for anything else that is not a number."""
    if not text:
        return 0
    number = parse_int64(text) if text.isdigit() else None
    if number is None:
        quoted = msgspec.json.encode(text[:100]).decode()
        why = "value out of range" if text.isdigit() else "invalid syntax"
        raise bad_request(
            f"invalid resource version: resourceVersion: Invalid value: {quoted}: "
            f"strconv.ParseUint: parsing {quoted}: {why}"
        )
    return number


def list_problems(options: ListOptions, *, initial_events: bool = False) -> list[Cause]:
    match, causes = options.resource_version_match, []
    if match:
        if not options.resource_version and not initial_events:
            causes.append(forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided"))
        if options.continue_from:
            causes.append(forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER):
            causes.append(not_supported(_MATCH, match, (EXACT, NOT_OLDER, "")))
        if match == EXACT and options.resource_version == "0":
            causes.append(forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"'))
    return causes


def validate_list_options(options: ListOptions) -> None:
    _refuse(list_problems(options))
    if options.continue_from and options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def validate_watch_options(options: WatchOptions) -> None:
    match, causes = options.resource_version_match, []
    if options.initial_events is not None and match != NOT_OLDER:
        causes.append(forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to {NOT_OLDER}"))
    if match:
        if options.initial_events is None:
            causes.append(forbidden(_MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"))
        if match != NOT_OLDER:
            causes.append(not_supported(_MATCH, match, (NOT_OLDER,)))
    _refuse(causes)


def _refuse(causes: list[Cause]) -> None:
    if causes:
        raise invalid("ListOptions", "meta.k8s.io", "", causes)


def resource_version_too_large(asked: int, current: int) -> StatusError:
    """Kubernetes clients recognise this error and retry."""
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause = Cause("", "Too large resource version", "ResourceVersionTooLarge")
    return StatusError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", text, causes=(cause,), retry_after_s=1)


class ContinueToken(Struct, frozen=True, rename={"version": "v", "revision": "rv", "after": "start"}):
    """Where to continue a list: after which key, without the resource's prefix, and at which revision."""

    version: str = ""
    revision: int = 0
    after: str = ""

    def text(self) -> str:
        return urlsafe_b64encode(msgspec.json.encode(self)).rstrip(b"=").decode()


def continue_token(after: str, revision: int) -> ContinueToken:
    return ContinueToken(_VERSION, revision, after)


def parse_continue_token(text: str) -> ContinueToken:
    """Raises 400 for a token that this server did not issue."""
    try:
        found = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=ContinueToken)
    except (binascii.Error, ValueError) as error:
        raise bad_request(f"{_INVALID}: {error}") from None
    if found.version != _VERSION:
        raise bad_request(f"{_INVALID}: server does not recognize this encoded version {found.version[:100]}")
    if found.revision < LATEST or found.revision == 0:
        raise bad_request(f"{_INVALID}: incorrect encoded start resourceVersion (version {_VERSION})")
    if not found.after or "\0" in found.after:
        raise bad_request(f"{_INVALID}: encoded start key empty (version {_VERSION})")
    if any(part in ("", ".", "..") for part in found.after.split("/")):
        raise bad_request(f"{_INVALID}: {found.after[:100]}")
    return found
