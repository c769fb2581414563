"""ConversionReview: what a conversion webhook is asked, and what it may answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from situate.server.admission.webhooks.review_format import Envelope, InvalidReviewError, ReviewFormat, check_v1_uid
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.metadata import validate_annotations
from situate.server.objects import Object, go_type

FORMAT: Final = ReviewFormat("apiextensions.k8s.io", "ConversionReview")
SUCCESS: Final = "Success"
NO_OBJECT: Final = "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
_JSON_KINDS: Final = {list: "array", str: "string", bool: "bool", type(None): "null"}
SHOWN: Final = 2_000
"""Characters of an object to quote in an error."""
_MAY_CHANGE: Final = ("labels", "annotations")
"""All that a webhook may change of the metadata."""
_IDENTITY: Final = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class UnreadableObjectError(Exception):
    """A converted object cannot be decoded."""


class InvalidObjectError(Exception):
    """A converted object is not what was asked for; the message is Kubernetes'."""

    def __init__(self, why: str, *, in_metadata: bool = False, names_index: bool = False) -> None:
        super().__init__(why)
        self._in_metadata = in_metadata
        self._names_index = names_index

    def text(self, at: int, *, alone: bool) -> str:
        """With the place of the object in its review; `alone`: there are no others."""
        if self._in_metadata:
            what = "metadata" if alone else f"metadata in object at index {at}"
        elif alone:
            what = "object at index 0" if self._names_index else "object"
        else:
            what = f"converted object at index {at}"
        return f"returned invalid {what}: {self}"


class _Result(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    converted_objects: list[msgspec.Raw] | None = None
    result: _Result = _Result()


class _Review(Envelope, frozen=True):
    response: _Response | None = None


def review_body(uid: str, version: str, objects: Sequence[Object], wanted: str) -> bytes:
    """`wanted`: the API version to convert the objects to."""
    return FORMAT.encode(version, {"uid": uid, "desiredAPIVersion": wanted, "objects": objects})


def converted_objects(body: bytes, uid: str, version: str) -> list[msgspec.Raw]:
    """What the answer to a review of this version has converted, not decoded. Raises InvalidReviewError."""
    found = FORMAT.decode(body, version, _Review)
    response = found.response
    if version == "v1":  # v1beta1 names neither the review nor its uid
        FORMAT.check_v1_head(found)
    if response is None:
        raise InvalidReviewError("no response provided")
    if version == "v1":
        check_v1_uid(uid, response.uid)
    if response.result.status != SUCCESS:
        other = f"response.result.status was '{response.result.status}', not '{SUCCESS}'"
        raise InvalidReviewError(response.result.message or other)
    return response.converted_objects or []


def check_converted(raw: msgspec.Raw, original: Object, wanted: str) -> Object:
    """A converted object, with the metadata of the original but for labels and annotations. Raises InvalidObjectError,
    or UnreadableObjectError."""
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UnreadableObjectError(str(error)) from None
    if not isinstance(found, dict):
        raise UnreadableObjectError(NO_OBJECT.format(kind=_JSON_KINDS.get(type(found), "number")))
    version, kind = _text(found.get("apiVersion")), _text(found.get("kind"))
    if not kind:
        raise UnreadableObjectError(f"Object 'Kind' is missing in '{bytes(raw)[:SHOWN].decode(errors='replace')}'")
    if version != wanted:
        why = f"invalid groupVersion (expected {wanted}, received {version})"
        raise InvalidObjectError(why, names_index=True)
    if kind != original["kind"]:
        raise InvalidObjectError(f"invalid kind (expected {original['kind']}, received {kind})", names_index=True)
    given = found.get("metadata")
    _check_identity(original["metadata"], given if isinstance(given, dict) else {})
    if "metadata" not in found:
        raise InvalidObjectError("missing metadata in converted object", in_metadata=True)
    if not isinstance(given, dict):
        raise InvalidObjectError(f"invalid metadata of type {go_type(given)} in converted object", in_metadata=True)
    return {**found, "metadata": _restored(original["metadata"], given)}


def _check_identity(was: Object, now: Object) -> None:
    for field, name in _IDENTITY:
        if _text(was.get(field)) != _text(now.get(field)):
            raise InvalidObjectError(f"must have the same {name}: {_text(was.get(field))} != {_text(now.get(field))}")


def _restored(was: Object, now: Object) -> Object:
    """The metadata as it was, with the labels and annotations as they are now. Raises InvalidObjectError."""
    restored = {name: value for name, value in was.items() if name not in _MAY_CHANGE}
    for field in _MAY_CHANGE:
        given = now.get(field)
        if given is None:
            continue
        if not isinstance(given, dict):
            why = f"invalid metadata.{field} of type {go_type(given)} in converted object"
            raise InvalidObjectError(why, in_metadata=True)
        for key, value in given.items():
            if not isinstance(value, str):
                why = f"metadata.{field}[{key}] must be a string, but is {go_type(value)} in converted object"
                raise InvalidObjectError(why, in_metadata=True)
        if given != was.get(field):
            _check_field(field, given)
        restored[field] = given
    return restored


def _check_field(field: str, given: dict[str, str]) -> None:
    causes = Causes()
    if field == "labels":
        causes.labels(given, "metadata.labels")
    else:
        validate_annotations(given, "metadata.annotation", causes)  # so called by kube-apiserver
    texts = [f"{one.field}: {one.message}" for one in causes]
    if texts:
        raise InvalidObjectError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]", in_metadata=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
