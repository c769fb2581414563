"""Claims as an API server keeps them: versions, finalizers, and what may be written.

Kubernetes' server compares no claim with another, so two schedulers can give one device twice. The server of
`situate up` refuses that. A world has the one or the other: see `refuses_use`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec.structs import replace

from situate.core.model.devices import ResourceClaim, ResourceClaimStatus
from situate.core.model.meta import key_of
from situate.core.state.pods import timestamp_text
from situate.sim.store import ObjectStore
from situate.sim.timeline import Timeline

WriteProblem: TypeAlias = Literal["", "conflict", "not found", "already exists", "refused"]

CLAIM: Final = "ResourceClaim"


class ClaimServer:
    """Every write names the version that was read, or is refused as a conflict."""

    def __init__(self, timeline: Timeline, store: ObjectStore) -> None:
        self.refuses_use: Callable[[ResourceClaim], bool] = lambda _: False
        """Whether devices of a new allocation are in use."""
        self._timeline = timeline
        self._store = store
        self._protected: dict[str, None] = {}
        """The uids of claims with the finalizer."""
        self._made = 0

    # -- reading -------------------------------------------------------------------------------------------------

    def get(self, key: str) -> ResourceClaim | None:
        found = self._store.others.get((CLAIM, key))
        return found if isinstance(found, ResourceClaim) else None

    def all(self) -> list[ResourceClaim]:
        return [item for item in self._store.others.values() if isinstance(item, ResourceClaim)]

    def is_protected(self, claim: ResourceClaim) -> bool:
        return claim.metadata.uid in self._protected

    # -- writing -------------------------------------------------------------------------------------------------

    def create(self, claim: ResourceClaim, *, protected: bool = False) -> WriteProblem:
        if self.get(key_of(claim.metadata)) is not None:
            return "already exists"
        self._made += 1
        uid = f"claim-{self._made}"
        if protected:
            self._protected[uid] = None
        created = timestamp_text(self._timeline.now // 1_000 * 1_000)
        self._put(replace(claim, metadata=replace(claim.metadata, uid=uid, creation_timestamp=created)))
        return ""

    def protect(self, claim: ResourceClaim, *, protected: bool) -> WriteProblem:
        """Add or remove the finalizer. A claim that is being deleted goes with it."""
        if problem := self._outdated(claim):
            return problem
        if protected:
            self._protected[claim.metadata.uid] = None
        else:
            self._protected.pop(claim.metadata.uid, None)
        if not protected and claim.metadata.deletion_timestamp is not None:
            self._store.drop_other(claim)
        else:
            self._put(claim)
        return ""

    def write_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> WriteProblem:
        """`claim` as it was read."""
        if problem := self._outdated(claim):
            return problem
        before = claim.status
        if status.reserved_for and status.allocation is None:
            return "refused"
        if before.allocation is not None and status.allocation not in (None, before.allocation):
            return "refused"
        users = {one.uid for one in before.reserved_for}
        if claim.metadata.deletion_timestamp is not None and any(one.uid not in users for one in status.reserved_for):
            return "refused"
        after = replace(claim, status=status)
        if status.allocation is not None and before.allocation is None and self.refuses_use(after):
            return "refused"
        self._put(after)
        return ""

    def delete(self, key: str, uid: str) -> None:
        """A claim with the finalizer stays until that is removed."""
        claim = self.get(key)
        if claim is None or claim.metadata.uid != uid:
            return
        if not self.is_protected(claim):
            self._store.drop_other(claim)
        elif claim.metadata.deletion_timestamp is None:
            ends = timestamp_text(self._timeline.now)
            self._put(replace(claim, metadata=replace(claim.metadata, deletion_timestamp=ends)))

    def _outdated(self, claim: ResourceClaim) -> WriteProblem:
        now = self.get(key_of(claim.metadata))
        if now is None or now.metadata.uid != claim.metadata.uid:
            return "not found"
        return "" if now.metadata.resource_version == claim.metadata.resource_version else "conflict"

    def _put(self, claim: ResourceClaim) -> None:
        version = str(self._store.version + 1)
        self._store.put_other(replace(claim, metadata=replace(claim.metadata, resource_version=version)))
