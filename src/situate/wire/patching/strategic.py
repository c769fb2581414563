"""Strategic merge patch: a merge patch that merges lists by key.

Directives in a patch: `$patch: replace` or `delete` in an object or a list's item, `$deleteFromPrimitiveList/<field>`,
`$setElementOrder/<field>` and `$retainKeys`. Null removes a field. A list that is not merged is replaced.
Like the API server, it does not check unknown fields: validate the result.
"""

from typing import Any, Final

from situate.wire.patching.errors import UNPROCESSABLE, PatchError, go_text
from situate.wire.patching.ordering import ident, in_order
from situate.wire.patching.schema import MergeSchema

PATCH: Final = "$patch"
RETAIN: Final = "$retainKeys"
ORDER: Final = "$setElementOrder"
DELETE_FROM: Final = "$deleteFromPrimitiveList"

BAD_ORDER: Final = "invalid patch format of setElementOrder list"
BAD_DELETION: Final = "invalid patch format of primitive list"
BAD_RETAIN: Final = "invalid patch format of retainKeys"
LISTS_OF_LISTS: Final = "lists of lists are not supported"


def strategic_patched(target: dict[str, Any], patch: Any, shape: MergeSchema) -> dict[str, Any]:
    """The target with the patch merged into it. The result shares parts with both."""
    if not isinstance(patch, dict):
        raise PatchError("invalid JSON document")
    return _merge_objects(target, patch, shape)


def _merge_objects(target: dict[str, Any], patch: dict[str, Any], shape: MergeSchema) -> dict[str, Any]:
    if PATCH in patch:
        return _directed(patch)
    result = dict(target)
    rest = dict(patch)
    if RETAIN in rest:
        result = _retained(result, rest, rest.pop(RETAIN))
    for name in [name for name in rest if name.startswith(ORDER)]:
        _set_order(result, rest, _field_after(name, ORDER, BAD_ORDER), rest.pop(name), shape)
    for name, value in rest.items():
        if name.startswith(DELETE_FROM):
            _delete_from(result, _field_after(name, DELETE_FROM, BAD_DELETION), value)
        elif value is None:
            result.pop(name, None)
        else:
            _merge_field(result, name, value, shape.field(name))
    return result


def _directed(patch: dict[str, Any]) -> dict[str, Any]:
    match patch[PATCH]:
        case "replace":
            return {name: value for name, value in patch.items() if name != PATCH}
        case "delete":
            return {}
    raise PatchError(f"unknown patch type: {go_text(patch[PATCH])} in map: {go_text(patch)}")


def _retained(target: dict[str, Any], patch: dict[str, Any], keys: Any) -> dict[str, Any]:
    """Keep only the named fields of the target; the patch must not add others."""
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise PatchError(BAD_RETAIN)
    kept = frozenset(keys)
    for name, value in patch.items():
        if value is not None and not name.startswith((DELETE_FROM, ORDER)) and name not in kept:
            raise PatchError(BAD_RETAIN)
    return {name: value for name, value in target.items() if name in kept}


def _field_after(name: str, prefix: str, problem: str) -> str:
    head, slash, field = name.partition("/")
    if head != prefix or not slash:
        raise PatchError(problem)
    return field


def _delete_from(result: dict[str, Any], name: str, gone: Any) -> None:
    if gone is None:
        result.pop(name, None)
    held = result.get(name)
    if not isinstance(held, list) or not isinstance(gone, list):
        return
    if any(isinstance(item, dict | list) for item in (*held, *gone)):
        raise PatchError(BAD_DELETION)
    wanted = frozenset(ident(item) for item in gone)
    result[name] = [item for item in held if ident(item) not in wanted]


def _merge_field(result: dict[str, Any], name: str, value: Any, shape: MergeSchema) -> None:
    held = result.get(name)
    if isinstance(held, dict) and isinstance(value, dict):
        result[name] = value if shape.replaced else _merge_objects(held, value, shape)
    elif isinstance(held, list) and isinstance(value, list):
        result[name] = _merge_lists(held, value, shape)
    elif isinstance(value, dict) and PATCH in value:
        result.pop(name, None)
    else:
        result[name] = _plain(value)


def _plain(value: Any) -> Any:
    """A new value, without nulls and directives."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None and not _is_directive(inner)}
    return [_plain(item) for item in value if not _is_directive(item)] if isinstance(value, list) else value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and PATCH in value


def _merge_lists(held: list[Any], patch: list[Any], shape: MergeSchema) -> list[Any]:
    if shape.merge_key is None:
        return patch
    if not held and not patch:
        return held
    if _of_objects(held, patch):
        return _merge_items(held, patch, shape)
    both = list({ident(item): item for item in (*held, *patch)}.values())
    return in_order(both, patch, held, "")


def _merge_items(held: list[Any], patch: list[Any], shape: MergeSchema) -> list[Any]:
    key = shape.merge_key or ""
    if not key:
        raise PatchError("cannot merge lists without merge key")
    held, patch = _with_directives_done(held, patch, key)
    result = list(held)
    places: dict[Any, int] = {}
    for index, item in enumerate(result):
        places.setdefault(ident(item.get(key)), index)
    for item in patch:
        name = ident(_keyed(item, key))
        if name in places:
            result[places[name]] = _merge_objects(result[places[name]], item, shape.item)
        else:
            places[name] = len(result)
            result.append(item)
    return in_order(result, patch, held, key)


def _with_directives_done(held: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The list without items that the patch deletes, and the patch without directives."""
    plain: list[Any] = []
    replace = False
    gone = set()
    for item in patch:
        match item.get(PATCH, plain):
            case "delete":
                gone.add(ident(_keyed(item, key)))
            case "replace":
                replace = True
            case "merge":
                raise PatchError("merging lists cannot yet be specified in the patch")
            case other:
                if other is not plain:
                    raise PatchError(f"unknown patch type: {go_text(other)} in map: {go_text(item)}")
                plain.append(item)
    if replace:
        return plain, []
    return [item for item in held if key not in item or ident(item[key]) not in gone], plain


def _set_order(result: dict[str, Any], patch: dict[str, Any], name: str, order: Any, shape: MergeSchema) -> None:
    """Merge a list in the order that the patch requests, and remove it from the patch."""
    key = shape.field(name).merge_key or ""
    held, change = result.get(name), patch.get(name)
    if not all(part is None or isinstance(part, list) for part in (held, change)) or not isinstance(order, list):
        raise PatchError(BAD_ORDER)
    if key:
        for item in order:
            _keyed(item, key)
    elif any(isinstance(item, dict | list) for item in order):
        raise PatchError(BAD_ORDER)
    _check_order(change or [], order, key)
    if name in patch and name in result:
        merged = _merge_lists(held or [], change or [], shape.field(name))
    elif name in patch:
        merged = _plain(change or [])
    else:
        merged = held or []
    patch.pop(name, None)
    if merged and _of_objects(merged, []) != bool(key):
        raise PatchError(BAD_ORDER)
    if merged:
        result[name] = in_order(merged, order, held or [], key)
    elif name in result:
        result[name] = merged


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """Check that the items of the patch are in its requested order."""
    if not order or not patch:
        return
    wanted = [ident(_keyed(item, key) if key else item) for item in order]
    at = 0
    for item in patch:
        if _is_directive(item):
            continue
        name = ident(_keyed(item, key) if key else item)
        while at < len(wanted) and wanted[at] != name:
            at += 1
        if at == len(wanted):
            raise PatchError(
                f"The order in patch list:\n{go_text(patch)}\n doesn't match {ORDER} list:\n{go_text(order)}\n"
            )
        at += 1


def _keyed(item: Any, key: str) -> Any:
    if not isinstance(item, dict) or key not in item:
        raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return item[key]


def _of_objects(*lists: list[Any]) -> bool:
    """Whether the items are objects. Raises if the types are mixed."""
    types = {type(item) for items in lists for item in items}
    if list in types:
        raise PatchError(LISTS_OF_LISTS, UNPROCESSABLE)
    if len(types) > 1 or type(None) in types:
        raise PatchError(f"list element types are not identical: {go_text(list(lists))}")
    return dict in types
