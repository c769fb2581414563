"""What a container of a hollow node uses: its pod's annotation says so, and without it, nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from situate.core.model.quantity import QuantityError, parse_quantity

USAGE: Final = "situate.dev/usage"
"""Annotation of a pod: what each of its containers uses on a hollow node, as `cpu=250m,memory=64Mi`."""
NOTHING: Final[Mapping[str, str]] = {"cpu": "0", "memory": "0"}
MOST_RESOURCES: Final = 16
MOST_CHARACTERS: Final = 1_024
"""Of an annotation; what was read is remembered."""


def usage_of(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """By resource. An annotation that is too long, cannot be read, or says less than nothing, means nothing."""
    text = annotations.get(USAGE, "")
    return _parsed(text) if 0 < len(text) <= MOST_CHARACTERS else NOTHING


@lru_cache(maxsize=1_024)
def _parsed(text: str) -> Mapping[str, str]:
    found: dict[str, str] = {**NOTHING}
    for part in text.split(",", MOST_RESOURCES)[:MOST_RESOURCES]:
        name, _, amount = (piece.strip() for piece in part.partition("="))
        try:
            if not name or parse_quantity(amount) < 0:
                return NOTHING
        except QuantityError:
            return NOTHING
        found[name] = amount
    return found
