"""Invariants of devices in worlds with agents: at every write of a claim or pod, against the store and the machines.

No device is in two claims. A pod is bound only with its claims allocated there and reserved for it, and they stay so
while any machine runs it: until then nobody else gets its devices.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from situate.sim.nodes.run_log import RunLog

CLAIMS: Final = "/objects/resource.k8s.io/resourceclaims/"

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ClaimingPod(Protocol):
    key: str
    uid: str
    node: str
    body: dict[str, Any]


class ClaimChecker:
    def __init__(self, log: RunLog, running: Mapping[str, Container[str]]) -> None:
        """`running`: the machines that run a pod, by its uid."""
        self.claims: dict[str, dict[str, Any]] = {}
        """As stored, by key."""
        self.allocations = 0
        self._log = log
        self._running = running
        self._holders: dict[tuple[str, str, str], str] = {}
        """By driver, pool and device: the key of the claim that has it."""

    def written(self, key: str, value: bytes) -> None:
        name, claim = key.removeprefix(CLAIMS), _decode(value)
        before = self.claims.get(name)
        if before is not None and before["metadata"]["uid"] != claim["metadata"]["uid"]:
            self.gone(key)
            before = None
        had, has = _devices(before), _devices(claim)
        self._taken_away(name, before, claim)
        for one in had:
            if one not in has:
                self._holders.pop(one, None)
        for one in has:
            holder = self._holders.setdefault(one, name)
            if holder != name:
                self._log.violation(f"device {'/'.join(one)} is given to claim {name}, and {holder} has it")
        if has and not had:
            self.allocations += 1
            self._log.record(f"claim {name} gets {', '.join('/'.join(one[1:]) for one in has)}")
        elif had and not has:
            self._log.record(f"claim {name} has no devices any more")
        self.claims[name] = claim

    def gone(self, key: str) -> None:
        name = key.removeprefix(CLAIMS)
        before = self.claims.pop(name, None)
        if before is None:
            return
        self._taken_away(name, before, None)
        for one in _devices(before):
            if self._holders.get(one) == name:
                del self._holders[one]

    def _taken_away(self, name: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        same = _devices(before) == _devices(after)
        kept = _users(after) if same else {}
        for uid, user in _users(before).items():
            if uid not in kept and (places := self._running.get(uid)):
                self._log.violation(f"claim {name} is taken from {user} ({uid[:8]}), which {places} still runs")

    def bound(self, pod: ClaimingPod) -> None:
        """A pod has got its node."""
        for name in _claims_of(pod.body):
            claim = self.claims.get(name)
            if claim is None:
                self._log.violation(f"pod {pod.key} is bound without its claim {name}")
            elif not _devices(claim):
                self._log.violation(f"pod {pod.key} is bound, and its claim {name} is not allocated")
            elif pod.uid not in _users(claim):
                self._log.violation(f"pod {pod.key} is bound, and its claim {name} is not reserved for it")
            elif any(pool != pod.node for _, pool, _ in _devices(claim)):
                self._log.violation(f"pod {pod.key} is bound to {pod.node}, where the devices of {name} are not")

    def left(self, pods: Container[str]) -> Iterator[str]:
        """What is left behind. `pods`: the uids of those that are there and not over."""
        for name, claim in self.claims.items():
            for uid, user in _users(claim).items():
                if uid not in pods:
                    yield f"claim {name} is reserved for {user} ({uid[:8]}), which is gone or over"
            for owner in claim["metadata"].get("ownerReferences", ()):
                if owner["kind"] == "Pod" and owner["uid"] not in pods:
                    yield f"claim {name} of {owner['name']} is there, which is gone or over"
            if "deletionTimestamp" in claim["metadata"]:
                yield f"claim {name} is still being deleted"


def _devices(claim: Mapping[str, Any] | None) -> list[tuple[str, str, str]]:
    allocation = {} if claim is None else claim.get("status", {}).get("allocation", {})
    results = allocation.get("devices", {}).get("results", ())
    return [(one["driver"], one["pool"], one["device"]) for one in results]


def _users(claim: Mapping[str, Any] | None) -> dict[str, str]:
    """The pods that a claim is reserved for: uid to name."""
    found = () if claim is None else claim.get("status", {}).get("reservedFor", ())
    return {one["uid"]: one["name"] for one in found}


def _claims_of(pod: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a pod's claims. One that was not made yet has no name."""
    status, space = pod.get("status", {}), pod["metadata"]["namespace"]
    made = {one["name"]: one.get("resourceClaimName", "") for one in status.get("resourceClaimStatuses", ())}
    for entry in pod["spec"].get("resourceClaims", ()):
        yield f"{space}/{entry.get('resourceClaimName') or made.get(entry['name'], '')}"
    extended = status.get("extendedResourceClaimStatus")
    if extended is not None:
        yield f"{space}/{extended['resourceClaimName']}"
