"""Recomputes everything from the pods and claims, and reports ledgers and decisions that differ.

For tests, and for a store of unknown origin. It repairs nothing.
"""

from __future__ import annotations

import msgspec

from situate.core.model.ledger import amounts_of
from situate.core.model.pod import Pod
from situate.server.placing import decisions, device_pools, snapshots
from situate.server.placing.bind_transaction import PODS
from situate.server.placing.decisions import PLACEMENT_DECISIONS
from situate.server.placing.device_pools import DEVICE_POOLS, HeldDevice, PoolId, held_by
from situate.server.placing.device_transaction import CLAIMS
from situate.server.placing.phases import holds_node, phase_of
from situate.server.placing.snapshots import NODE_SNAPSHOTS
from situate.server.placing.write_request import CacheReader


def audit(cache: CacheReader) -> list[str]:
    """One line for each problem, in the order of nodes and pods."""
    total: dict[str, dict[str, int]] = {}
    there: dict[str, set[str]] = {}
    problems = []
    for held in cache.all(PODS):
        pod = held.object(PODS)
        found = cache.get(PLACEMENT_DECISIONS, held.namespace, held.name)
        decision = None if found is None else decisions.decoded(found.value)
        if decision is not None and phase_of(pod, decision.phase) != decision.phase:
            problems.append(f"pod {held.namespace}/{held.name}: its decision says {decision.phase}, which it is not")
        if node := holds_node(pod):
            there.setdefault(node, set()).add(held.uid)
            sums = total.setdefault(node, {})
            for resource, amount in amounts_of(msgspec.convert(pod, Pod)).items():
                sums[resource] = sums.get(resource, 0) + amount
    told = {held.name: snapshots.decoded(held.value)[1] for held in cache.all(NODE_SNAPSHOTS)}
    for node in sorted({*there, *told}):
        ledger = told.get(node)
        listed = set() if ledger is None else {one.uid for one in ledger.pods}
        said = {} if ledger is None else dict(ledger.allocated)
        if listed != there.get(node, set()):
            problems.append(f"node {node}: its snapshot has {len(listed)} pods, and it has {len(there.get(node, ()))}")
        if said != total.get(node, {}):
            problems.append(f"node {node}: its snapshot says {said}, and its pods ask for {total.get(node, {})}")
    return problems + _audit_devices(cache)


def _audit_devices(cache: CacheReader) -> list[str]:
    held: dict[PoolId, list[HeldDevice]] = {}
    problems = []
    for claim in cache.all(CLAIMS):
        for pool, device in held_by(claim.object(CLAIMS)):
            held.setdefault(pool, []).append(device)
    told = {pool: devices for _, pool, devices in map(device_pools.decoded, cache.all(DEVICE_POOLS))}
    for pool in sorted({*held, *told}):
        listed, there = (sorted((one.device, one.uid, one.share) for one in by.get(pool, ())) for by in (told, held))
        if listed != there:
            problems.append(f"pool {'/'.join(pool)}: its ledger has {listed}, and claims hold {there}")
        alone = [one.device for one in held.get(pool, ()) if not one.share]
        problems += (f"device {'/'.join((*pool, one))} is held twice" for one in alone if alone.count(one) > 1)
    return problems
