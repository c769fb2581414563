"""References to pods and times, shared by changes and effects."""

from typing import TypeAlias

from msgspec import Struct

Millis: TypeAlias = int
"""Milliseconds on the caller's clock. The engine never reads a clock."""


class PodRef(Struct, frozen=True):
    """One pod by name and uid."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
