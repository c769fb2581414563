"""Finds the selectors that may match a set of labels without trying them all.

A selector that demands one value of one label (most do) is indexed under that pair; the rest are tried every time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

T = TypeVar("T")

Anchor = tuple[str, str]


class LabelIndex(Generic[T]):
    """Items indexed under a label pair that they cannot match without; or under none."""

    __slots__ = ("_anchored", "_loose")

    def __init__(self) -> None:
        self._anchored: dict[Anchor, dict[T, None]] = {}
        self._loose: dict[T, None] = {}

    def add(self, anchor: Anchor | None, item: T) -> None:
        bucket = self._loose if anchor is None else self._anchored.setdefault(anchor, {})
        bucket[item] = None

    def discard(self, anchor: Anchor | None, item: T) -> None:
        if anchor is None:
            self._loose.pop(item, None)
            return
        bucket = self._anchored.get(anchor)
        if bucket is not None:
            bucket.pop(item, None)
            if not bucket:
                del self._anchored[anchor]

    def candidates(self, labels: Mapping[str, str]) -> list[T]:
        """Every item that might match these labels; each once, in a fixed order."""
        found: list[T] = []
        anchored = self._anchored
        if anchored:
            for pair in labels.items():
                bucket = anchored.get(pair)
                if bucket is not None:
                    found += bucket
        if self._loose:
            found += self._loose
        return found
