"""AdmissionReview: what a webhook is asked, and what it may answer."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any, Final

import msgspec

from situate.core.model.field_errors import quoted
from situate.server.admission.expressions import request_body
from situate.server.admission.matching import MatchedAs
from situate.server.admission.webhooks.review_format import Envelope, InvalidReviewError, ReviewFormat, check_v1_uid
from situate.server.registry.user_admission import AdmissionRequest
from situate.server.requests import Object

FORMAT: Final = ReviewFormat("admission.k8s.io", "AdmissionReview")
JSON_PATCH: Final = "JSONPatch"
MAX_WARNINGS: Final = 100
"""Of one answer."""


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


class Review(Envelope, frozen=True):
    response: ReviewResponse | None = None


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
    return FORMAT.encode(version, asked)


def decode_review(body: bytes, version: str) -> Review:
    """The answer to a review of this version. Raises InvalidReviewError."""
    return FORMAT.decode(body, version, Review)


def check_response(review: Review, uid: str, version: str, *, mutating: bool) -> ReviewResponse:
    """Raises InvalidReviewError."""
    found = review.response
    if found is None:
        raise InvalidReviewError("webhook response was absent")
    if version == "v1":
        _check_v1(review, found, uid, mutating=mutating)
    return found


def decode_patch(found: ReviewResponse) -> list[Any]:
    """The operations of its patch; none if it has no patch. Raises InvalidReviewError."""
    if not found.patch:
        return []
    if found.patch_type not in (JSON_PATCH, None):
        raise InvalidReviewError(f"unsupported patch type {quoted(found.patch_type)}")
    try:
        return msgspec.json.decode(b64decode(found.patch), type=list[Any])
    except (msgspec.DecodeError, Base64Error, ValueError, RecursionError) as error:
        raise InvalidReviewError(f"received undecodable patch in webhook response: {error}") from None


def _check_v1(review: Review, found: ReviewResponse, uid: str, *, mutating: bool) -> None:
    check_v1_uid(uid, found.uid)
    FORMAT.check_v1_head(review)
    if not mutating:
        if found.patch:
            raise InvalidReviewError("validating webhook may not return response.patch")
        if found.patch_type is not None:
            raise InvalidReviewError("validating webhook may not return response.patchType")
        return
    if found.patch and found.patch_type is None:
        raise InvalidReviewError("webhook returned response.patch but not response.patchType")
    if not found.patch and found.patch_type is not None:
        raise InvalidReviewError("webhook returned response.patchType but not response.patch")
    if found.patch_type == "":
        raise InvalidReviewError('webhook returned invalid response.patchType of ""')
