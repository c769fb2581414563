"""The result of an allocation, as it is written in the status of a claim."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from situate.core.devices.allocator import Pick, Solution
from situate.core.devices.errors import AllocationError
from situate.core.devices.inventory import Pool, PoolDevice
from situate.core.devices.requests import AllocatorInputs, alternatives
from situate.core.model.base import EMPTY
from situate.core.model.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from situate.core.model.nodeselector import METADATA_NAME, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


def allocation_results(
    solution: Solution, claims: Sequence[ResourceClaim], pools: Sequence[Pool], node: str, inputs: AllocatorInputs
) -> list[AllocationResult]:
    """One for each claim. Raises AllocationError."""
    devices = [(pool, one) for pool in pools if pool.usable for one in pool.devices]
    return [
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_result(claim, number, pick, *devices[pick.at]) for number, pick in enumerate(picks)),
                config=_config(claim, picks, inputs),
            ),
            node_selector=_node_selector(claim, [devices[pick.at][1] for pick in picks], node),
        )
        for claim, picks in zip(claims, solution, strict=True)
    ]


def _result(
    claim: ResourceClaim, number: int, pick: Pick, pool: Pool, one: PoolDevice
) -> DeviceRequestAllocationResult:
    parent, request = alternatives(claim.spec.devices.requests[pick.request])[pick.alternative]
    device = one.device
    return DeviceRequestAllocationResult(
        request=f"{parent}/{request.name}" if parent else request.name,
        driver=pool.driver,
        pool=pool.name,
        device=device.name,
        admin_access=True if request.admin_access else None,
        tolerations=request.tolerations,
        binding_conditions=device.binding_conditions or (),
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=None if pick.consumed is None else _share_id(claim, number, pool, device.name),
        consumed_capacity={name: amount.text for name, amount in (pick.consumed or {}).items()} or EMPTY,
    )


def _share_id(claim: ResourceClaim, number: int, pool: Pool, device: str) -> str:
    """A UUID that depends on the claim and the device alone: the core uses no randomness."""
    meta = claim.metadata
    parts = (meta.uid, meta.namespace, meta.name, str(number), pool.driver, pool.name, device)
    digest = blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-8{digest[17:20]}-{digest[20:]}"


def _config(
    claim: ResourceClaim, picks: Sequence[Pick], inputs: AllocatorInputs
) -> tuple[DeviceAllocationConfiguration, ...]:
    """The configurations of the classes, each once, and those of the claim for its requests."""
    chosen = {pick.request: pick.alternative for pick in picks}
    requests = claim.spec.devices.requests
    names: list[str] = []
    by_class: dict[str, list[str]] = {}
    for number, request in enumerate(requests):
        parent, ask = alternatives(request)[chosen.get(number, 0)]
        names.append(f"{parent}/{ask.name}" if parent else ask.name)
        by_class.setdefault(ask.device_class_name, []).append(names[-1])
    found = [
        DeviceAllocationConfiguration(source="FromClass", requests=tuple(asking), opaque=config.opaque)
        for name, asking in by_class.items()
        for config in inputs.classes[name].spec.config
    ]
    for own in claim.spec.devices.config:
        for_them = [
            request.name
            for request, name in zip(requests, names, strict=True)
            if request.name in own.requests or (request.first_available and name in own.requests)
        ]
        listed, times = own.requests, len(for_them) if own.requests else 1
        if inputs.rules.config_listed_once and for_them:
            listed, times = () if len(for_them) == len(requests) else own.requests, 1
        found += [DeviceAllocationConfiguration(source="FromClaim", requests=listed, opaque=own.opaque)] * times
    return tuple(found)


def _node_selector(claim: ResourceClaim, devices: Sequence[PoolDevice], node: str) -> NodeSelector | None:
    """The nodes from which all devices can be reached; None: from any."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for one in devices:
        spec = one.slice.spec
        where = one.device if spec.per_device_node_selection else spec
        if where.node_name is not None or one.device.binds_to_node:
            here = NodeSelectorRequirement(key=METADATA_NAME, operator="In", values=(node,))
            return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
        terms = () if where.node_selector is None else where.node_selector.node_selector_terms
        if len(terms) > 1:
            problem = f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {problem}")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=tuple(fields), match_expressions=tuple(expressions))
    return NodeSelector(node_selector_terms=(term,))


def _add_new(found: list[NodeSelectorRequirement], more: Sequence[NodeSelectorRequirement]) -> None:
    for one in more:
        if not any(_same(one, other) for other in found):
            found.append(one)


def _same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return one.key == other.key and one.operator == other.operator and set(one.values) == set(other.values)
