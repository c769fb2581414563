"""Applies JSON, merge, strategic merge and apply patches, with kube-apiserver's error texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from situate.server.errors import Cause, StatusError, bad_request, conflict, invalid
from situate.server.kinds.field_errors import invalid as invalid_value
from situate.server.registry.context import RegistryContext
from situate.server.registry.normalize import decode_body
from situate.server.registry.stored_object import UpdateResult
from situate.server.registry.update import UpdatedObject, update
from situate.server.registry.warning import warn
from situate.server.requests import Caller, Object, Target, WriteOptions
from situate.server.resources import Resource
from situate.wire.patching import (
    ApplyConflictError,
    FieldWriter,
    PatchError,
    applied,
    json_patched,
    merge_patched,
    merge_schema,
    strategic_patched,
    without_nulls,
)
from situate.wire.patching.errors import go_text
from situate.wire.schema import DecodeError

PatchType: TypeAlias = Literal["merge", "json", "strategic", "apply"]
Refused: TypeAlias = Callable[..., StatusError]
"""Makes the error from the patched object, as JSON, and what is wrong with it."""

REASONS: Final = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Invalid",
}
UID_WITHOUT_OBJECT: Final = "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
ANNOTATIONS: Final = "/metadata/annotations"
ANNOTATION: Final = f"{ANNOTATIONS}/"
SHOWN: Final = 2_000
"""Characters of a patched object to quote in an error."""


async def patch_object(
    context: RegistryContext, target: Target, how: PatchType, patch: Any, caller: Caller, options: WriteOptions
) -> UpdateResult:
    """409 if conflicts do not end, or at once if the patch names a resourceVersion that is not current."""
    resource = target.resource

    strictly = replace(options, field_validation="Strict")

    def refused(body: str, why: str, unknown: Sequence[str] = ()) -> StatusError:
        if how == "apply":
            return _untyped(target, _undeclared(unknown) if unknown else why)
        return _unreadable(go_text(patch) if how == "strategic" else body, why)

    def make(old: Object | None, writer: FieldWriter) -> UpdatedObject:
        try:
            if how == "apply":
                made = _applied(target, old, patch, writer, options)
                # Nobody can own an unknown field, so an apply rejects it whatever fieldValidation says.
                sets = patched_annotations(how, patch) if target.subresource else {}
                return UpdatedObject(_decoded(resource, made, strictly, refused), True, False, sets)
            if old is None:
                raise context.cache.missing(target.resource, target.namespace, target.name)
            made = _patched(how, old, patch, resource)
            decoded = _decoded(resource, made, options, refused, converts=how == "strategic")
            sets = patched_annotations(how, patch) if target.subresource else {}
            return UpdatedObject(decoded, False, False, sets)
        except ApplyConflictError as error:
            raise _apply_conflict(error) from None
        except PatchError as error:
            raise StatusError(error.status, REASONS.get(HTTPStatus(error.status), ""), str(error)) from None

    may_create = how == "apply" and not target.subresource
    return await update(context, target, make, caller, options, may_create=may_create)


def patched_annotations(how: PatchType, patch: Any) -> dict[str, Any]:
    """The annotations that a patch sets. What is not an object sets none."""
    if how != "json":
        return _object_in(_object_in(patch, "metadata"), "annotations")
    found: dict[str, Any] = {}
    for step in patch:
        path, value = step.get("path", ""), step.get("value")
        if step.get("op") not in ("add", "replace"):
            continue
        if path.startswith(ANNOTATION):
            found[path.removeprefix(ANNOTATION).replace("~1", "/").replace("~0", "~")] = value
        elif path == ANNOTATIONS and isinstance(value, dict):
            found |= value
        elif path == "/metadata" and isinstance(value, dict):
            found |= _object_in(value, "annotations")
    return found


def _object_in(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _patched(how: Literal["merge", "json", "strategic"], old: Object, patch: Any, resource: Resource) -> Object:
    match how:
        case "merge":
            return merge_patched(old, patch)
        case "json":
            return json_patched(old, patch)
        case "strategic":
            return strategic_patched(old, patch, merge_schema(resource.api_version, resource.kind))
        case _:
            assert_never(how)


def _applied(target: Target, old: Object | None, patch: Any, writer: FieldWriter, options: WriteOptions) -> Object:
    if not isinstance(patch, dict):
        raise bad_request("an apply configuration must be an object")
    config = without_nulls(patch)
    metadata = config.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise bad_request("metadata must be an object")
    resource = target.resource
    if old is None and (uid := metadata.get("uid")):
        raise conflict(resource.plural, resource.group, target.name, UID_WITHOUT_OBJECT.format(uid=uid))
    if not options.field_manager:
        cause = Cause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
        raise invalid("PatchOptions", "meta.k8s.io", "", [cause])
    return applied(old, config, writer, force=options.force)


def _decoded(
    resource: Resource, obj: Object, options: WriteOptions, refused: Refused, *, converts: bool = False
) -> Object:
    """The patched object, decoded as its kind, without unknown fields. `converts`: errors are those of a conversion."""
    body = msgspec.json.encode(obj)
    strict = options.field_validation != "Ignore"
    try:
        decoded = decode_body(resource, body, strict=strict)
    except DecodeError as error:
        raise refused(body.decode(), error.converting if converts else error.why) from None
    if decoded.problems and options.field_validation == "Strict":
        raise refused(body.decode(), f"strict decoding error: {', '.join(decoded.problems)}", decoded.problems)
    if decoded.problems and strict:
        warn(decoded.problems)
    return decoded.object


def _unreadable(shown: str, why: str) -> StatusError:
    return invalid("", "", "", [invalid_value("patch", shown[:SHOWN], why)])


def _undeclared(unknown: Sequence[str]) -> str:
    lines = [f".{one.removeprefix('unknown field ').strip(chr(34))}: field not declared in schema" for one in unknown]
    return lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines])


def _untyped(target: Target, why: str) -> StatusError:
    resource = target.resource
    which = f"{target.namespace}/{target.name}; {resource.group}/{resource.version}, Kind={resource.kind}"
    return bad_request(f"failed to create typed patch object ({which}): {why}")


def _apply_conflict(error: ApplyConflictError) -> StatusError:
    causes = [Cause(one["field"], one["message"], one["reason"]) for one in error.causes]
    return StatusError(HTTPStatus.CONFLICT, "Conflict", str(error), causes=causes)
