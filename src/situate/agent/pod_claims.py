"""Whether a pod may use its claims for devices, with the kubelet's checks and words.

A pod starts when each of its claims exists, was made for it if a template made it, and is reserved for it. Claims that
are reserved are allocated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

FAILED: Final = "FailedPrepareDynamicResources"


class ClaimReader(Protocol):
    async def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None: ...


class _PodClaim(NamedTuple):
    name: str
    generated: bool


class UnpreparedError(Exception):
    """A claim of the pod cannot be used yet."""


async def check_claims(pod: dict[str, Any], reader: ClaimReader) -> None:
    """Raises UnpreparedError."""
    meta = pod["metadata"]
    for entry in _claims(pod):
        claim = await reader.get("ResourceClaim", meta["namespace"], entry.name)
        if claim is None:
            why = f'fetch ResourceClaim {entry.name}: resourceclaims.resource.k8s.io "{entry.name}" not found'
            raise UnpreparedError(why)
        owners = claim["metadata"].get("ownerReferences", ())
        if entry.generated and not any(one.get("controller") and one.get("uid") == meta["uid"] for one in owners):
            where, who = f"{meta['namespace']}/{entry.name}", f"{meta['namespace']}/{meta['name']}"
            raise UnpreparedError(f"ResourceClaim {where} was not created for Pod {who} (Pod is not owner)")
        holders = (claim.get("status") or {}).get("reservedFor") or ()
        if not any(one.get("uid") == meta["uid"] for one in holders):
            uid = claim["metadata"].get("uid", "")
            raise UnpreparedError(
                f"pod {meta['name']} ({meta['uid']}) is not allowed to use ResourceClaim {entry.name} ({uid})"
            )


def has_claims(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("resourceClaims") or (pod.get("status") or {}).get("extendedResourceClaimStatus"))


def _claims(pod: dict[str, Any]) -> Iterator[_PodClaim]:
    meta, status = pod["metadata"], pod.get("status") or {}
    made = {one.get("name"): one.get("resourceClaimName") for one in status.get("resourceClaimStatuses") or ()}
    for entry in pod["spec"].get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield _PodClaim(entry["resourceClaimName"], False)
        elif entry["name"] not in made:
            raise UnpreparedError(f'pod "{meta["namespace"]}/{meta["name"]}": ResourceClaim not created yet')
        elif made[entry["name"]]:
            yield _PodClaim(made[entry["name"]], True)
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield _PodClaim(extended, False)
