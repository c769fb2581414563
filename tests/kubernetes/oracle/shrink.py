"""Makes a JSON document as small as it can be while something stays true of it: delta debugging.

It knows nothing of what the document means. It must stay pure: the same document and the same question give the same
answer.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

Path: TypeAlias = tuple[str | int, ...]


class _SpentError(Exception):
    """No more questions may be asked."""


def shrink(document: Any, holds: Callable[[Any], bool], *, keep: Collection[str] = (), questions: int = 4_000) -> Any:
    """A smaller document of which `holds` is still true; after so many questions, the smallest found so far.

    Whole elements and fields go first, from the top down, many at a time; then what remains is looked at again, until
    nothing more can go. A field is removed, never changed; those named `keep` go only with the whole they are part of.
    """
    best = document

    def ask(candidate: Any) -> bool:
        nonlocal best, questions
        if questions <= 0:
            raise _SpentError
        questions -= 1
        if not holds(candidate):
            return False
        best = candidate
        return True

    try:
        while True:
            before = best
            for path in list(_containers(best)):
                if _at(best, path) is not None:
                    _thin(best, path, ask, keep)
            if best == before:
                return best
    except _SpentError:
        return best


def _thin(document: Any, path: Path, ask: Callable[[Any], bool], keep: Collection[str]) -> None:
    """Remove what can be removed from the list or object at a path: halves, then quarters, down to one at a time."""
    current = document
    size = max(len(_keys(_at(current, path), keep)) // 2, 1)
    while True:
        start = 0
        while start < len(keys := _keys(_at(current, path), keep)):
            candidate = _without(current, path, keys[start : start + size])
            if ask(candidate):
                current = candidate
            else:
                start += size
        if size == 1:
            return
        size = max(size // 2, 1)


def _containers(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where lists and objects are that hold anything, outer ones first."""
    level = [(path, value)]
    while level:
        below = []
        for here, found in level:
            if isinstance(found, (dict, list)) and found:
                yield here
                items = found.items() if isinstance(found, dict) else enumerate(found)
                below += [((*here, key), item) for key, item in items]
        level = below


def _keys(container: Any, keep: Collection[str]) -> list[str | int]:
    if isinstance(container, dict):
        return [key for key in container if key not in keep]
    return list(range(len(container or ())))


def _at(document: Any, path: Path) -> Any:
    """The list or object at a path; None if there is none any more."""
    for step in path:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return document if isinstance(document, (dict, list)) and document else None


def _without(document: Any, path: Path, keys: list[str | int]) -> Any:
    """The document without some keys of what is at a path; the rest is shared, not copied."""
    if not path:
        if isinstance(document, dict):
            return {key: value for key, value in document.items() if key not in keys}
        return [value for index, value in enumerate(document) if index not in keys]
    copy = document.copy()
    copy[path[0]] = _without(document[path[0]], path[1:], keys)
    return copy
