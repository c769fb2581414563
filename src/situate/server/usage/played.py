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


def usage_of(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """By resource. An annotation that cannot be read, or says less than nothing, means nothing."""
    text = annotations.get(USAGE, "")
    return _parsed(text) if text else NOTHING


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
