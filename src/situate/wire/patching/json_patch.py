"""JSON patch (RFC 6902) with the jsonpatch library and limits."""

import copy
from typing import Any, Final

import jsonpatch
import msgspec

from situate.wire.patching.errors import BAD_REQUEST, TOO_LARGE, UNPROCESSABLE, PatchError, UnmetTestError

MAX_OPERATIONS: Final = 10_000
MAX_COPIED_BYTES: Final = 128 * 1024
"""Of JSON, by all `copy` operations of a patch: each can double what the next one copies. The API server has 3 MiB."""
MAX_SHOWN: Final = 500
"""Characters of the library's own words."""

TOO_MANY: Final = "The allowed maximum operations in a JSON patch is {limit}, got {count}"
TOO_MUCH: Final = (
    "Unable to complete the copy, the accumulated size increase of copy operations is {size}, "
    "exceeding the limit {limit}"
)


def json_patched(target: dict[str, Any], operations: Any) -> dict[str, Any]:
    """The target after all operations. PatchError if one of them fails; then none was applied."""
    if not isinstance(operations, list):
        raise PatchError("a JSON patch must be a list of operations", BAD_REQUEST)
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(TOO_MANY.format(limit=MAX_OPERATIONS, count=len(operations)), TOO_LARGE)
    result: Any = copy.deepcopy(target)
    copied = 0
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("a JSON patch must be a list of operations", BAD_REQUEST)
        try:
            asked = _lenient(operation, result)
            if asked is None:
                continue
            if asked.get("op") == "copy":
                copied += _size_at(result, asked.get("from"))
                if copied > MAX_COPIED_BYTES:
                    raise PatchError(TOO_MUCH.format(size=copied, limit=MAX_COPIED_BYTES), UNPROCESSABLE)
            # The library inserts the value itself; a later operation must not change the patch.
            result = jsonpatch.JsonPatch([copy.deepcopy(asked)]).apply(result, in_place=True)
        except (
            jsonpatch.JsonPatchException,
            jsonpatch.JsonPointerException,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            failure = UnmetTestError if operation.get("op") == "test" else PatchError
            raise failure(_problem(operation, error), UNPROCESSABLE) from error
    if not isinstance(result, dict):
        raise PatchError("the patched document is not an object", UNPROCESSABLE)
    return result


def _problem(operation: dict[str, Any], error: Exception) -> str:
    """In the words of the API server's library, where a path is missing; the document is not quoted."""
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(error, jsonpatch.JsonPointerException | jsonpatch.JsonPatchConflict) or kind not in _MISSING:
        return str(error)[:MAX_SHOWN] or type(error).__name__
    return _MISSING[kind].format(path=path, source=operation.get("from"))


_MISSING: Final = {
    "add": 'add operation does not apply: doc is missing path: "{path}": missing value',
    "remove": 'remove operation does not apply: doc is missing path: "{path}": missing value',
    "replace": "replace operation does not apply: doc is missing path: {path}: missing value",
    "move": "move operation does not apply: doc is missing from path: {source}: missing value",
    "test": "test operation does not apply: is missing path: {path}: missing value",
    "copy": "copy operation does not apply: doc is missing from path: {source}: missing value",
}


def _lenient(operation: dict[str, Any], document: Any) -> dict[str, Any] | None:
    """The operation for the library, or None if there is nothing to do.

    The API server's library is laxer than the RFC, and clients count on that: a field that is not there can be
    replaced, is equal to null, and is copied as null.
    """
    kind = operation.get("op")
    pointer = operation.get("from" if kind == "copy" else "path")
    if kind not in ("replace", "test", "copy") or not isinstance(pointer, str):
        return operation
    parent, last = jsonpatch.JsonPointer(pointer).to_last(document)
    if not isinstance(parent, dict) or last is None or last in parent:
        return operation
    if kind == "test":
        return None if operation.get("value", kind) is None else operation
    return {"op": "add", "path": operation.get("path"), "value": operation["value"] if kind == "replace" else None}


def _size_at(document: Any, pointer: Any) -> int:
    if not isinstance(pointer, str):
        return 0  # the library says what is wrong
    return len(msgspec.json.encode(jsonpatch.JsonPointer(pointer).resolve(document)))
