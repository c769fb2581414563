"""Pods that are gated because a claim of theirs is missing, by the claim that each waits for."""

from __future__ import annotations

from typing import TypeAlias

from situate.core.queue.queued_pod import QueuedPod

ClaimKey: TypeAlias = tuple[str, str]
"""(namespace, name)."""


class PodsAwaitingClaims:
    """A pod without a claim to wait for waits for a change of its own: its claims have not been made yet."""

    __slots__ = ("_by_claim", "_claims")

    def __init__(self) -> None:
        self._claims: dict[str, ClaimKey | None] = {}
        self._by_claim: dict[ClaimKey, dict[str, QueuedPod]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._claims

    def add(self, entry: QueuedPod, claim: ClaimKey | None) -> None:
        self.discard(entry.key)
        self._claims[entry.key] = claim
        if claim is not None:
            self._by_claim.setdefault(claim, {})[entry.key] = entry

    def discard(self, key: str) -> None:
        claim = self._claims.pop(key, None)
        if claim is not None:
            waiting = self._by_claim[claim]
            del waiting[key]
            if not waiting:
                del self._by_claim[claim]

    def of(self, claim: ClaimKey) -> list[QueuedPod]:
        return list(self._by_claim.get(claim, {}).values())
