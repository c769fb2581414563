"""JSON merge patch, RFC 7386."""

from typing import Any

from situate.wire.patching.errors import PatchError


def merge_patched(target: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The target with the patch merged into it: null removes, lists are replaced. The result shares parts with both."""
    if not isinstance(patch, dict):
        raise PatchError("Invalid JSON Patch")
    return _merged(target, patch)


def _merged(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = _merged(result.get(name), value)
        else:
            result[name] = value
    return result
