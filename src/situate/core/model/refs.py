"""Which pod is meant, and when: what changes and effects have in common."""

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Millis", "PodRef"]

Millis: TypeAlias = int
"""Milliseconds on the caller's clock. The engine never reads one."""


@dataclass(frozen=True, slots=True)
class PodRef:
    """One pod, and no other that has had or will have its name."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"
