"""What AdmissionReview and ConversionReview have in common: two versions, an envelope, and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from situate.core.model.field_errors import quoted
from situate.server.requests import Object

VERSIONS: Final = ("v1", "v1beta1")
_encode: Final = msgspec.json.Encoder().encode


class Envelope(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A review as a webhook returns it; a subclass adds the response."""

    api_version: str = ""
    kind: str = ""


Review = TypeVar("Review", bound=Envelope)


class InvalidReviewError(Exception):
    """The answer is no valid review; the message is Kubernetes'."""


def spoken_version(versions: Sequence[str]) -> str:
    """The first version that the server speaks; "" if the webhook names none."""
    return next((one for one in versions if one in VERSIONS), "")


class ReviewFormat(NamedTuple):
    group: str
    kind: str

    def encode(self, version: str, request: Object) -> bytes:
        return _encode({"kind": self.kind, "apiVersion": f"{self.group}/{version}", "request": request})

    def decode(self, body: bytes, version: str, made: type[Review]) -> Review:
        """The answer to a review of this version. Raises InvalidReviewError."""
        try:
            found = msgspec.json.decode(body, type=made)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise InvalidReviewError(f"couldn't get version/kind; json parse error: {error}") from None
        group, _, given = found.api_version.rpartition("/")
        if group == self.group and given in VERSIONS and given != version and found.kind == self.kind:
            raise InvalidReviewError(f"converting ({given}.{self.kind}) to ({version}.{self.kind}): unknown conversion")
        return found

    def check_v1_head(self, review: Envelope) -> None:
        """Raises InvalidReviewError."""
        if (review.api_version, review.kind) != (f"{self.group}/v1", self.kind):
            group, _, version = review.api_version.rpartition("/")
            got = f"{group}/{version}, Kind={review.kind}"
            raise InvalidReviewError(f"expected webhook response of {self.group}/v1, Kind={self.kind}, got {got}")


def check_v1_uid(expected: str, given: Any) -> None:
    """Raises InvalidReviewError."""
    if given != expected:
        raise InvalidReviewError(f"expected response.uid={quoted(expected)}, got {quoted(given)}")
