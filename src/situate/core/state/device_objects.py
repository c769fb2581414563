"""Devices, and the claims for them: what is there, and what is in use.

`version` moves when the devices of several nodes may have changed; what changes on one node alone is in `touched`, and
the cluster marks the node's row. `claims_version` moves when a claim changed so that its pods may be judged otherwise.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final, TypeAlias

import msgspec

from situate.core.devices.allocated import AllocatedDevices, PoolUse, pools_of
from situate.core.devices.allocator import NoSolution, Solution
from situate.core.devices.budget import TimedOutError
from situate.core.devices.extended import CLAIM_ANNOTATION, IN_MEMORY_NAME, ExtendedResources
from situate.core.devices.inventory import Inventory, NodeFacts, Pool
from situate.core.devices.selectors import Compile, SelectorAnswers
from situate.core.model.devices import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceSlice,
)
from situate.core.model.meta import controller_of
from situate.core.model.named import DeviceObject
from situate.core.model.pod import Pod
from situate.core.versions import DeviceRules

Outcome: TypeAlias = Solution | NoSolution

OUTCOMES: Final = 1 << 16
"""How many outcomes of searches are remembered."""
SPECS: Final = 1 << 16
"""How many specs of claims are recognised when they come again."""

DIGEST_BYTES: Final = 16

_encode: Final = msgspec.json.Encoder().encode


class DeviceObjects:
    """Only the Cluster writes this."""

    def __init__(self) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self.claims: dict[tuple[str, str], ResourceClaim] = {}
        self.inventory = Inventory()
        self.allocated = AllocatedDevices()
        self.extended = ExtendedResources()
        self.extended_claims: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        """(namespace, uid of a pod) -> the claims that were made for its extended resources: more than one if earlier
        attempts left some."""
        self.in_flight: dict[tuple[str, str], None] = {}
        """Claims whose devices are decided and not written yet: other pods have to wait."""
        self.version = 0
        self.claims_version = 0
        self.changes = 0
        """How many objects came, changed or went."""
        self.touched: dict[str, None] = {}
        """Names of nodes whose devices changed since the cluster last looked."""
        self.outcomes: dict[tuple[object, ...], Outcome | TimedOutError] = {}
        """What searches found, by what they read."""
        self.work = 0
        """How much work searches have been so far."""
        self._answers: SelectorAnswers | None = None
        self._specs: dict[bytes, int] = {}
        """By digest: a spec may be large, and this outlives it."""
        self._last_spec = 0

    @property
    def taint_rules(self) -> dict[str, DeviceTaintRule]:
        return self.inventory.taint_rules

    @property
    def slices(self) -> dict[str, ResourceSlice]:
        return self.inventory.slices

    @property
    def is_empty(self) -> bool:
        return not self.classes and not self.claims

    # -- reading -------------------------------------------------------------------------------------------------

    def pools(self, node: NodeFacts) -> list[tuple[Pool, PoolUse]]:
        """The pools of a node, with what is in use. Raises AllocationError."""
        allocated = self.allocated
        return [(pool, allocated.of((pool.driver, pool.name))) for pool in self.inventory.pools(node)]

    def answers(self, compile_selector: Compile) -> SelectorAnswers:
        if self._answers is None:
            self._answers = SelectorAnswers(compile_selector)
        return self._answers

    def use_rules(self, rules: DeviceRules) -> None:
        """Another release is asked about the same cluster."""
        if rules != self.inventory.rules:
            self.inventory.use_rules(rules)
            self.outcomes.clear()
            self._answers = None

    def spec_id(self, spec: ResourceClaimSpec) -> int:
        """A number for the content of a claim's spec."""
        key = blake2b(_encode(spec), digest_size=DIGEST_BYTES).digest()
        found = self._specs.get(key)
        if found is None:
            if len(self._specs) >= SPECS:
                self._specs.clear()
            self._last_spec += 1
            found = self._specs[key] = self._last_spec
        return found

    def remember(self, key: tuple[object, ...], outcome: Outcome | TimedOutError) -> None:
        if len(self.outcomes) >= OUTCOMES:
            self.outcomes.clear()
        self.outcomes[key] = outcome

    def serve(self, pod: Pod) -> bool:
        """Whether a DeviceClass stands behind an extended resource of a pod: such a pod may get a claim of its own."""
        served = self.extended.classes
        if not served:
            return False
        containers = (*pod.spec.containers, *pod.spec.init_containers)
        return any(name in served for container in containers for name in container.resources.requests)

    # -- writing -------------------------------------------------------------------------------------------------

    def begin_flight(self, name: tuple[str, str]) -> None:
        if name not in self.in_flight:
            self.in_flight[name] = None
            self.claims_version += 1

    def end_flight(self, name: tuple[str, str]) -> bool:
        """Whether it was in flight."""
        if name not in self.in_flight:
            return False
        del self.in_flight[name]
        self.claims_version += 1
        return True

    def changed(self, before: DeviceObject | None, after: DeviceObject | None) -> None:
        """An object came, changed or went; the tables have it."""
        self.changes += 1
        item = before if after is None else after
        match item:
            case ResourceClaim():
                self._claim_changed(_claim(before), _claim(after))
            case ResourceSlice():
                self._slice_changed(
                    before if isinstance(before, ResourceSlice) else None,
                    after if isinstance(after, ResourceSlice) else None,
                )
            case DeviceClass():
                self.extended.put(
                    before if isinstance(before, DeviceClass) else None,
                    after if isinstance(after, DeviceClass) else None,
                )
                self.outcomes.clear()
                self.version += 1
            case DeviceTaintRule():
                rule = after if isinstance(after, DeviceTaintRule) else None
                self.inventory.put_taint_rule(item.metadata.name, rule)
                self.version += 1

    def _slice_changed(self, before: ResourceSlice | None, after: ResourceSlice | None) -> None:
        node = self.inventory.put(before, after)
        if node is None:
            self.version += 1
        else:
            self.touched[node] = None

    def _claim_changed(self, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        had = None if before is None else before.status.allocation
        has = None if after is None else after.status.allocation
        if had != has:
            if had is not None:
                self.allocated.remove(had)
            if has is not None:
                self.allocated.add(has)
            for pool in pools_of(had) | pools_of(has):
                node = self.inventory.local_node(pool)
                if node is None:
                    self.version += 1
                else:
                    self.touched[node] = None
        if before is None or after is None or _judged(before) != _judged(after):
            self.claims_version += 1
        self._note_extended(before, after)

    def _note_extended(self, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        for claim, present in ((before, False), (after, True)):
            if claim is None or claim.metadata.annotations.get(CLAIM_ANNOTATION) != "true":
                continue
            if claim.metadata.name.startswith(IN_MEMORY_NAME):
                continue  # it is not created yet, so no earlier attempt has left it
            owner = controller_of(claim.metadata)
            if owner is not None:
                key, name = (claim.metadata.namespace, owner.uid), (claim.metadata.namespace, claim.metadata.name)
                made = self.extended_claims.setdefault(key, {})
                if present:
                    made[name] = None
                else:
                    made.pop(name, None)
                if not made:
                    del self.extended_claims[key]


def _claim(item: DeviceObject | None) -> ResourceClaim | None:
    return item if isinstance(item, ResourceClaim) else None


def _judged(claim: ResourceClaim) -> tuple[object, ...]:
    """What a verdict depends on: not who else has reserved the claim."""
    return claim.metadata, claim.spec, claim.status.allocation, claim.status.devices


def cleared(claim: ResourceClaim) -> ResourceClaim:
    """The claim without its allocation."""
    return msgspec.structs.replace(claim, status=ResourceClaimStatus())
