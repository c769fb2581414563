"""How many events controllers record about one object: as many as client-go's recorder does. Pure.

A ReplicaSet of 10,000 pods would record 10,000 events, which cost as much as the pods and tell nobody anything.
"""

from __future__ import annotations

from typing import Final

from situate.core.model.refs import Millis
from situate.core.reconcile.effects import ObjectRef
from situate.loop.token_buckets import TokenBuckets

BURST: Final = 25
"""Events about one object at once."""
REFILL_MS: Final = 300_000
"""After that, one event in this time."""
OBJECTS: Final = 4_096
"""How many objects are remembered; the one that had no event for longest is forgotten first."""


class EventLimit:
    """A bucket of tokens for each object."""

    def __init__(self) -> None:
        self._buckets = TokenBuckets(1 / REFILL_MS, BURST, OBJECTS)
        """Their clock counts milliseconds."""

    def admits(self, ref: ObjectRef, now: Millis) -> bool:
        """Whether to record one more event about an object."""
        return self._buckets.take(ref, now)
