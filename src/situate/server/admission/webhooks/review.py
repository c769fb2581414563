"""AdmissionReview: what a webhook is asked, and what it may answer."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from situate.core.model.field_errors import quoted
from situate.server.admission.expressions import request_body
from situate.server.admission.matching import MatchedAs
from situate.server.registry.user_admission import AdmissionRequest
from situate.server.requests import Object

GROUP: Final = "admission.k8s.io"
KIND: Final = "AdmissionReview"
VERSIONS: Final = ("v1", "v1beta1")
JSON_PATCH: Final = "JSONPatch"
MAX_WARNINGS: Final = 100
"""Of one answer."""
_encode: Final = msgspec.json.Encoder().encode


class ReviewStatus(msgspec.Struct, frozen=True):
    """A Status, as far as it is passed on."""

    code: int = 0
    message: str = ""
    reason: str = ""
    details: dict[str, Any] | None = None


class ReviewResponse(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: ReviewStatus | None = None
    patch: str | None = None
    """JSON in base64."""
    patch_type: str | None = None
    audit_annotations: dict[str, str] | None = None
    warnings: list[str] | None = None


class Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: ReviewResponse | None = None


class InvalidResponseError(Exception):
    """The answer is no valid review; the message is Kubernetes'."""


def spoken_version(versions: Sequence[str]) -> str:
    """The first version that the server speaks; "" if the webhook names none."""
    return next((one for one in versions if one in VERSIONS), "")


def review_body(
    uid: str, version: str, request: AdmissionRequest, matched: MatchedAs, new: Object | None, old: Object | None
) -> bytes:
    """`new` and `old`: in the version that the webhook wants."""
    asked = {
        "uid": uid,
        **request_body(request, matched),
        "object": new,
        "oldObject": old,
        "options": request.options or None,
    }
    return _encode({"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": asked})


def decode_review(body: bytes, version: str) -> Review:
    """The answer to a review of this version. Raises InvalidResponseError."""
    try:
        found = msgspec.json.decode(body, type=Review)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InvalidResponseError(f"couldn't get version/kind; json parse error: {error}") from None
    group, _, given = found.api_version.rpartition("/")
    if group == GROUP and given in VERSIONS and given != version and found.kind == KIND:
        raise InvalidResponseError(f"converting ({given}.{KIND}) to ({version}.{KIND}): unknown conversion")
    return found


def check_response(review: Review, uid: str, version: str, *, mutating: bool) -> ReviewResponse:
    """Raises InvalidResponseError."""
    found = review.response
    if found is None:
        raise InvalidResponseError("webhook response was absent")
    if version == "v1":
        _check_v1(review, found, uid, mutating=mutating)
    return found


def decode_patch(found: ReviewResponse) -> list[Any]:
    """The operations of its patch; none if it has no patch. Raises InvalidResponseError."""
    if not found.patch:
        return []
    if found.patch_type not in (JSON_PATCH, None):
        raise InvalidResponseError(f"unsupported patch type {quoted(found.patch_type)}")
    try:
        return msgspec.json.decode(b64decode(found.patch), type=list[Any])
    except (msgspec.DecodeError, Base64Error, ValueError, RecursionError) as error:
        raise InvalidResponseError(f"received undecodable patch in webhook response: {error}") from None


def _check_v1(review: Review, found: ReviewResponse, uid: str, *, mutating: bool) -> None:
    if found.uid != uid:
        raise InvalidResponseError(f"expected response.uid={quoted(uid)}, got {quoted(found.uid)}")
    if (review.api_version, review.kind) != (f"{GROUP}/v1", KIND):
        got = f"{review.api_version}, Kind={review.kind}"
        raise InvalidResponseError(f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {got}")
    if not mutating:
        if found.patch:
            raise InvalidResponseError("validating webhook may not return response.patch")
        if found.patch_type is not None:
            raise InvalidResponseError("validating webhook may not return response.patchType")
        return
    if found.patch and found.patch_type is None:
        raise InvalidResponseError("webhook returned response.patch but not response.patchType")
    if not found.patch and found.patch_type is not None:
        raise InvalidResponseError("webhook returned response.patchType but not response.patch")
    if found.patch_type == "":
        raise InvalidResponseError('webhook returned invalid response.patchType of ""')
