"""A cache for functions of text that clients send. Long text is not cached, so the cache is limited in bytes, too."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def cached_if_short(
    entries: int, length: int
) -> Callable[[Callable[Concatenate[str, P], R]], Callable[Concatenate[str, P], R]]:
    """Cache the results for this many texts of at most this length."""

    def decorate(function: Callable[Concatenate[str, P], R]) -> Callable[Concatenate[str, P], R]:
        cached = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(text: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
            if len(text) <= length:
                return cached(text, *args, **kwargs)  # type: ignore[arg-type]
            return function(text, *args, **kwargs)

        return call

    return decorate
