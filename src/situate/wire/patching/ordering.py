"""The order of a list after a strategic merge patch: the patch's for its own items, the old one for the rest."""

from typing import Any

from situate.wire.patching.errors import PatchError

Ident = tuple[type, Any]


def ident(value: Any) -> Ident:
    """A scalar with its JSON type: 1, true and "1" differ."""
    if isinstance(value, dict | list):
        raise PatchError("a merge key must be a scalar")
    return type(value), value


def in_order(items: list[Any], first: list[Any], old: list[Any], key: str) -> list[Any]:
    """The items: those in `first` in its order; each other one before the first of those that `old` had behind it.

    Lists of objects go by their merge key, lists of scalars, for which the key is "", by value.
    """
    wanted, before = _places(first, key), _places(old, key)
    own = sorted((item for item in items if _name(item, key) in wanted), key=lambda item: wanted[_name(item, key)])
    others = [item for item in items if _name(item, key) not in wanted]
    others.sort(key=lambda item: before.get(_name(item, key), len(old)))
    result = []
    waiting = iter(others)
    other = next(waiting, None)
    for item in own:
        place = before.get(_name(item, key))
        while other is not None and place is not None and before.get(_name(other, key), len(old)) < place:
            result.append(other)
            other = next(waiting, None)
        result.append(item)
    return result if other is None else [*result, other, *waiting]


def _places(items: list[Any], key: str) -> dict[Ident, int]:
    places: dict[Ident, int] = {}
    for index, item in enumerate(items):
        places.setdefault(_name(item, key), index)
    return places


def _name(item: Any, key: str) -> Ident:
    return ident(item.get(key) if key else item)
