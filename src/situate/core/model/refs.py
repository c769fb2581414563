"""Which pod is meant, and when: what changes and effects have in common."""

from typing import TypeAlias

from msgspec import Struct

Millis: TypeAlias = int
"""Milliseconds on the caller's clock. The engine never reads one."""


class PodRef(Struct, frozen=True):
    """One pod, and no other that has had or will have its name."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
