"""Reads request bodies up to a limit, and decodes JSON, YAML or protobuf into an object of the expected kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec
import yaml
from aiohttp import web

from situate.server.errors import StatusError, bad_request
from situate.server.http.negotiation import body_type
from situate.server.http.responses import encode
from situate.server.kinds.custom_version import CustomVersion
from situate.server.registry.normalize import decode_body
from situate.server.registry.warning import warn
from situate.server.requests import Object, WriteOptions
from situate.server.resources import Resource
from situate.wire.errors import InputError
from situate.wire.protobuf import from_protobuf
from situate.wire.schema import Decoded, DecodeError, decode, kinds, normalised, strict_refusal
from situate.wire.yaml import has_aliases, load_yaml

UNSUPPORTED: Final = "the request body has a Content-Encoding; the server supports none"
ALIASES: Final = "error decoding YAML: aliases are not supported in the body of a request"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
MAX_DEPTH: Final = 512
MAX_VALUES: Final = 32_768
"""In a request body: the decoder visits each, and a body of 3 MiB has room for a million."""
_TWICE: Final = re.compile(r"(line \d+), column \d+: (key \".*\") is given twice", re.DOTALL)
_decode: Final = msgspec.json.Decoder().decode


# -- reading -----------------------------------------------------------------------------------------------------------


class BodyReader(Protocol):
    """A request that reads its body."""

    reading: bool
    """While it waits for bytes."""

    def hold(self, size: int) -> None:
        """Count bytes of a body that did not come whole with its headers. Raises StatusError (429)."""


async def read_body(request: web.BaseRequest, most: int, reader: BodyReader) -> bytes:
    """The whole body. Raises StatusError (413) before it holds more than `most` bytes, whatever the headers say."""
    headers = request.headers
    length = request.content_length
    if length is not None and length > most:
        raise _too_large(most)
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise StatusError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", UNSUPPORTED)
    content = request.content
    if content.at_eof():
        return b""
    if headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(CONTINUE)
    reader.reading = True
    piece = await content.readany()
    if content.at_eof() and len(piece) <= most:
        reader.reading = False
        return piece
    pieces, size = [piece], len(piece)
    while True:
        if size > most:
            raise _too_large(most)
        reader.hold(len(piece))
        if content.at_eof():
            reader.reading = False
            return b"".join(pieces)
        piece = await content.readany()
        pieces.append(piece)
        size += len(piece)


def _too_large(most: int) -> StatusError:
    text = f"Request entity too large: limit is {most}"
    return StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", text)


# -- objects -----------------------------------------------------------------------------------------------------------


def decode_resource(body: bytes, content_type: str, resource: Resource, options: WriteOptions) -> Object:
    """The object in a body of a kind, normalized. Raises StatusError; warns of unknown fields."""
    return decode_object(
        body,
        content_type,
        resource.api_version,
        resource.kind,
        options,
        partial(decode_body, resource),
        resource.custom,
    )


def decode_object(
    body: bytes,
    content_type: str,
    api_version: str,
    kind: str,
    options: WriteOptions,
    decoder: Callable[..., Decoded] | None = None,
    custom: CustomVersion | None = None,
) -> Object:
    """The same for what is not a resource, such as a Scale."""
    form = body_type(content_type, custom=custom is not None)
    try:
        if form == "protobuf":
            obj = from_protobuf(body)
            _few(obj, len(body))
            return _expected(obj, api_version, kind)
        if form == "yaml":
            body = encode(_yaml(body))
        if len(body) > 2 * MAX_VALUES:
            _few(_loosely(body), len(body))
        strict = options.field_validation != "Ignore"
        found = decode(api_version, kind, body, strict=strict) if decoder is None else decoder(body, strict=strict)
    except DecodeError as error:
        if custom is None:
            _other_kind(body, form, api_version, kind)
        raise bad_request(str(error)) from None
    except RecursionError:
        raise bad_request("the body of the request is nested too deeply") from None
    obj = found.object if custom is not None else _expected(found.object, api_version, kind)
    if found.problems and strict:
        if options.field_validation == "Strict":
            raise bad_request(strict_refusal(api_version, kind, found.problems))
        warn(found.problems)
    return obj


def _loosely(body: bytes) -> Any:
    """Decode without a schema; None if that fails, since the real decoder has the error text."""
    if body.count(b",") < MAX_VALUES:
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def _few(value: Any, size: int) -> None:
    """Raises StatusError (413) for more than MAX_VALUES values. A value takes at least two bytes."""
    if size <= 2 * MAX_VALUES:
        return
    left, level = MAX_VALUES, [value]
    while level:
        following: list[Any] = []
        for one in level:
            inner = one.values() if type(one) is dict else one if type(one) is list else ()
            left -= len(inner)
            if left < 0:
                text = f"the body of the request has too many values: limit is {MAX_VALUES}"
                raise StatusError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", text)
            following.extend(each for each in inner if type(each) in (dict, list))
        level = following


def _expected(obj: Object, api_version: str, kind: str) -> Object:
    """The object, if it has the kind of this path, or none."""
    given_version, given_kind = obj.get("apiVersion") or api_version, obj.get("kind") or kind
    if given_version == api_version and given_kind == kind:
        return obj
    raise bad_request(_mismatch(given_version, given_kind, api_version, kind))


def _mismatch(given_version: str, given_kind: str, api_version: str, kind: str) -> str:
    version = given_version.rpartition("/")[2]
    if (given_version, given_kind) not in kinds():
        where = f'no kind "{given_kind}" is registered for version "{given_version}"'
        return f'{given_kind} in version "{version}" cannot be handled as a {kind}: {where}'
    if given_kind == kind:
        return f"the API version in the data ({given_version}) does not match the expected API version ({api_version})"
    inside = api_version.rpartition("/")[0].partition(".")[0] or "core"
    why = f"converting ({version}.{given_kind}) to ({inside}.{kind}): unknown conversion"
    return f'{given_kind} in version "{version}" cannot be handled as a {kind}: {why}'


def _other_kind(body: bytes, form: str, api_version: str, kind: str) -> None:
    """If a body that does not decode is of another kind, raise that error instead."""
    if form == "protobuf":
        return
    try:
        loose = _decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return
    if isinstance(loose, dict):
        named = {key: value for key in ("apiVersion", "kind") if isinstance(value := loose.get(key), str)}
        _expected(named, api_version, kind)


def _yaml(body: bytes) -> Any:
    """One document, without aliases: a small body must not expand to a large object."""
    try:
        if has_aliases(body):
            raise bad_request(ALIASES)
        documents = list(load_yaml(body))
    except InputError as error:
        text = _TWICE.sub(
            r"error converting YAML to JSON: yaml: unmarshal errors:\n  \1: \2 already set in map", str(error)
        )
        raise bad_request(f"error decoding YAML: {text}") from None
    except (yaml.YAMLError, UnicodeError) as error:
        raise bad_request(f"error decoding YAML: {str(error).splitlines()[0]}") from None
    if len(documents) > 1:
        raise bad_request("error decoding YAML: more than one document")
    return documents[0] if documents else None


# -- patches -----------------------------------------------------------------------------------------------------------


def decode_patch(body: bytes, how: str) -> Any:
    """A patch, as decoded JSON. Raises StatusError."""
    if how == "apply" and not body.lstrip().startswith(b"{"):
        patch = _yaml(body)
    else:
        try:
            patch = _decode(body)
        except msgspec.DecodeError as error:
            if how != "apply":
                raise bad_request(f"error decoding patch: {error}") from None
            patch = _yaml(body)  # YAML may begin with { and be no JSON
        except (ValueError, RecursionError) as error:
            raise bad_request(f"error decoding patch: {error}") from None
    if how != "json":  # JSON patch has its own limit of operations
        _few(patch, len(body))
    if _depth_over(patch, MAX_DEPTH):
        raise bad_request(f"error decoding patch: nested deeper than {MAX_DEPTH} levels")
    if how == "json":
        if not isinstance(patch, list):
            raise bad_request("error decoding patch: a JSON patch is a list of operations")
    elif not isinstance(patch, dict):
        raise bad_request("error decoding patch: a patch is an object")
    return patch


def _depth_over(value: Any, most: int) -> bool:
    """Whether lists and objects are nested deeper. Goes level by level, so that it does not recurse."""
    level = [value]
    for _ in range(most):
        following: list[Any] = []
        for one in level:
            if type(one) is dict:
                following.extend(inner for inner in one.values() if type(inner) in (dict, list))
            elif type(one) is list:
                following.extend(inner for inner in one if type(inner) in (dict, list))
        if not following:
            return False
        level = following
    return True


# -- options of a delete -----------------------------------------------------------------------------------------------


def decode_delete_options(body: bytes, content_type: str) -> Object:
    """DeleteOptions from a body, {} if it is empty. Raises StatusError."""
    form = body_type(content_type)
    if not body:
        return {}
    try:
        if form == "protobuf":
            obj = from_protobuf(body)
        else:
            raw = encode(_yaml(body)) if form == "yaml" else body
            loose = _decode(raw)
            if loose is None:
                return {}
            if not isinstance(loose, dict):
                raise bad_request("the request body is not a DeleteOptions")
            obj = loose
        version, kind = obj.get("apiVersion") or "v1", obj.get("kind") or "DeleteOptions"
        if not isinstance(version, str) or not isinstance(kind, str) or isinstance(obj.get("apiVersion"), list | dict):
            raise bad_request("couldn't get version/kind; json parse error: apiVersion and kind must be strings")
        if kind != "DeleteOptions":
            raise bad_request(f'no kind "{kind}" is registered for version "{version}"')
        return normalised("v1", "DeleteOptions", {**obj, "apiVersion": "v1", "kind": "DeleteOptions"})
    except DecodeError as error:
        raise bad_request(str(error)) from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
