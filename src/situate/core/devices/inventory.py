"""The devices of a cluster: slices, and the pools that a node can take devices from.

A pool is all slices of one driver and pool name. While a driver replaces them, slices of several generations exist; a
node sees the newest generation among the slices that are for it. A pool of which slices are missing is incomplete; one
with contradictory slices is invalid. Nothing is taken from either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec.structs import replace

from situate.core.devices.allocated import PoolId
from situate.core.devices.errors import AllocationError
from situate.core.model.base import EMPTY
from situate.core.model.devices import CounterSet, Device, DeviceTaintRule, ResourceSlice, selects_device
from situate.core.model.labels import SelectorError
from situate.core.model.nodeselector import NodeSelector, parse_term
from situate.core.model.quantity import parse_quantity
from situate.core.versions import DEFAULT, DeviceRules

_encode: Final = msgspec.json.Encoder().encode

CONTENTS: Final = 1 << 18
"""How many contents of devices and pools are recognised when they come again."""

Amounts = Mapping[str, Mapping[str, int]]
"""Counter set -> counter -> billionths."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What slices read of a node."""

    name: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class PoolDevice:
    """A device of a pool, and the slice that lists it."""

    device: Device
    slice: ResourceSlice
    content: int
    """Equal for devices that no selector and no capacity check can tell apart."""
    consumes: Amounts
    here: bool
    """Whether the device is for this node, where the slice leaves that to its devices."""


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """A pool as one node sees it."""

    driver: str
    name: str
    devices: tuple[PoolDevice, ...] = ()
    others: tuple[PoolDevice, ...] = ()
    """Devices of the pool that are for other nodes: they consume counters too."""
    counters: Amounts = field(default_factory=lambda: EMPTY)
    incomplete: bool = False
    invalid: bool = False
    content: int = 0
    """Equal for pools of equal devices, counters and state, whatever their names."""

    @property
    def id(self) -> PoolId:
        return self.driver, self.name

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid


class Inventory:
    """All slices, and the pools of each node as far as they were asked for."""

    def __init__(self, rules: DeviceRules = DEFAULT.devices) -> None:
        self.rules = rules
        self.slices: dict[str, ResourceSlice] = {}
        self.taint_rules: dict[str, DeviceTaintRule] = {}
        self._by_pool: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._on_node: dict[str, dict[str, ResourceSlice]] = {}
        """Slices of devices that are all on one node."""
        self._elsewhere: dict[str, ResourceSlice] = {}
        """Slices of devices for other sets of nodes."""
        self._counter_slices: dict[str, ResourceSlice] = {}
        self._contents: dict[bytes, int] = {}
        self._last_content = 0
        self._foreign: tuple[Pool, ...] | None = None
        self._views: dict[str, tuple[Pool, ...]] = {}
        """By node: its pools."""
        self._prepared: dict[str, tuple[PoolDevice, ...]] = {}
        """By slice: its devices."""

    # -- writing -------------------------------------------------------------------------------------------------

    def use_rules(self, rules: DeviceRules) -> None:
        if rules != self.rules:
            self.rules = rules
            self._prepared.clear()
            self.forget_views()

    def put(self, before: ResourceSlice | None, after: ResourceSlice | None) -> str | None:
        """A slice came, changed or went. The one node whose pools change; None if there may be several."""
        pools = [_pool_of(one) for one in (before, after) if one is not None]
        sees = [self._seen_by(pool) for pool in pools]
        if before is not None:
            self._file(before, remove=True)
        if after is not None:
            self._file(after, remove=False)
        sees += [self._seen_by(pool) for pool in pools]
        nodes = {node: None for one in sees for node in one}
        if len(nodes) == 1 and (node := next(iter(nodes))) is not None:
            self._views.pop(node, None)
            return node
        self.forget_views()
        return None

    def put_taint_rule(self, name: str, rule: DeviceTaintRule | None) -> None:
        if rule is None:
            self.taint_rules.pop(name, None)
        else:
            self.taint_rules[name] = rule
        self._prepared.clear()
        self.forget_views()

    def forget_views(self) -> None:
        """Nodes changed, or so many slices that every node's pools may have."""
        self._views.clear()
        self._foreign = None

    def forget_node(self, name: str) -> None:
        self._views.pop(name, None)

    def _file(self, item: ResourceSlice, *, remove: bool) -> None:
        name, spec, pool = item.metadata.name, item.spec, _pool_of(item)
        self._prepared.pop(name, None)
        if spec.shared_counters:
            _edit(self._counter_slices, name, item, remove)
        elif spec.node_name:
            _edit(self._on_node.setdefault(spec.node_name, {}), name, item, remove)
            if not self._on_node[spec.node_name]:
                del self._on_node[spec.node_name]
        else:
            _edit(self._elsewhere, name, item, remove)
        _edit(self.slices, name, item, remove)
        _edit(self._by_pool.setdefault(pool, {}), name, item, remove)
        if not self._by_pool[pool]:
            del self._by_pool[pool]

    def local_node(self, pool: PoolId) -> str | None:
        """The only node that can take devices of a pool; None if there may be several, or the pool is not known."""
        known = self._by_pool.get(pool, {}).values()
        nodes = {one.spec.node_name or None: None for one in known if not one.spec.shared_counters}
        return next(iter(nodes)) if len(nodes) == 1 else None

    def has_pool_of(self, item: ResourceSlice) -> bool:
        """Whether there are slices of the pool that this slice is or was part of."""
        return _pool_of(item) in self._by_pool

    def _seen_by(self, pool: PoolId) -> dict[str | None, None]:
        """The nodes that see a pool; None stands for any number of others."""
        return {
            None if one.spec.shared_counters else one.spec.node_name or None: None
            for one in self._by_pool.get(pool, {}).values()
        }

    # -- the pools of a node ---------------------------------------------------------------------------------------

    def pools(self, node: NodeFacts) -> tuple[Pool, ...]:
        """The pools of a node, in the order in which devices are tried. Raises AllocationError."""
        found = self._views.get(node.name)
        if found is None:
            found = self._views[node.name] = self._gather(node)
        return found

    def listed(self, node: NodeFacts) -> list[tuple[PoolId, PoolDevice]]:
        """All devices of slices that are for a node, whatever their generation or state, as if none were shared.

        Raises AllocationError.
        """
        slices = [*self._on_node.get(node.name, {}).values()]
        slices += [item for item in self._elsewhere.values() if _is_for(item, node)]
        return [
            (_pool_of(item), self._prepare(replace(one.device, allow_multiple_allocations=False), item))
            if one.device.allow_multiple_allocations
            else (_pool_of(item), one)
            for item in slices
            for one in self._devices(item, node)
            if one.here
        ]

    def _gather(self, node: NodeFacts) -> tuple[Pool, ...]:
        groups: dict[PoolId, list[ResourceSlice]] = {}
        for item in self._on_node.get(node.name, {}).values():
            _keep_newest(groups, item)
        for item in self._elsewhere.values():
            if _is_for(item, node):
                _keep_newest(groups, item)
        by_rules = self.rules.counter_slices_obey_nodes
        for item in self._counter_slices.values():
            if _is_for(item, node) if by_rules else _pool_of(item) in groups:
                _keep_newest(groups, item)
        pools = [pool for id_, kept in groups.items() if (pool := self._pool(id_, kept, node)) is not None]
        if not by_rules:
            pools += [pool for pool in self._foreign_problems() if pool.id not in groups]
        return tuple(sorted(pools, key=lambda pool: (_binds_late(pool), pool.driver.encode(), pool.name.encode())))

    def _foreign_problems(self) -> tuple[Pool, ...]:
        """The pools that nodes see by their counters alone, and that are incomplete or invalid."""
        if self._foreign is None:
            groups: dict[PoolId, list[ResourceSlice]] = {}
            for item in self._counter_slices.values():
                _keep_newest(groups, item)
            nobody = NodeFacts("", EMPTY)
            made = (self._pool(id_, kept, nobody) for id_, kept in groups.items())
            self._foreign = tuple(pool for pool in made if pool is not None and not pool.usable)
        return self._foreign

    def _pool(self, id_: PoolId, kept: list[ResourceSlice], node: NodeFacts) -> Pool | None:
        """One pool from the slices that are for a node; None if a newer generation replaces it."""
        wanted, generation = kept[0].spec.pool.resource_slice_count, kept[0].spec.pool.generation
        missing: list[ResourceSlice] = []
        if len(kept) != wanted:
            everywhere = self._by_pool[id_].values()
            if any(item.spec.pool.generation > generation for item in everywhere):
                return None
            current = [item for item in everywhere if item.spec.pool.generation == generation]
            if len(current) != wanted:
                return Pool(*id_, incomplete=True, content=self._content(("incomplete", id_[0])))
            names = {item.metadata.name for item in kept}
            missing = [item for item in current if item.metadata.name not in names]
        kept.sort(key=lambda item: item.metadata.name.encode())
        counting = [item for item in kept if item.spec.shared_counters]
        if self.rules.counter_slices_obey_nodes:
            counting += [item for item in missing if item.spec.shared_counters]
        devices = [one for item in kept if not item.spec.shared_counters for one in self._devices(item, node)]
        others = [one for item in missing for one in self._devices(item, node)]
        counters = _counters(counting)
        if counters is None or _has_twins(devices) or _lacks_counters([*devices, *others], counters):
            return Pool(*id_, invalid=True, content=self._content(("invalid", id_[0])))
        return Pool(
            *id_,
            devices=tuple(devices),
            others=tuple(others),
            counters=counters,
            content=self._content(
                (
                    id_[0],
                    [(one.device.name, one.content, one.here, one.device) for one in devices],
                    [(one.device.name, one.consumes) for one in others] if counters else [],
                    counters,
                    [item.spec.node_selector for item in kept],
                )
            ),
        )

    def _devices(self, item: ResourceSlice, node: NodeFacts) -> Sequence[PoolDevice]:
        name, spec = item.metadata.name, item.spec
        found = self._prepared.get(name)
        if found is None:
            found = self._prepared[name] = tuple(
                self._prepare(self._tainted(device, spec.driver, spec.pool.name), item) for device in spec.devices
            )
        if not spec.per_device_node_selection:
            return found
        try:
            return [_placed(one, node) for one in found]
        except SelectorError as error:
            raise AllocationError(f"gather pool information: failed to parse node selector: {error}") from None

    def _prepare(self, device: Device, item: ResourceSlice) -> PoolDevice:
        content = (item.spec.driver, device.attributes, device.capacity, device.allow_multiple_allocations)
        consumes: dict[str, dict[str, int]] = {}
        for taken in device.consumes_counters:
            mine = consumes.setdefault(taken.counter_set, {})
            for counter, amount in taken.counters.items():
                mine[counter] = mine.get(counter, 0) + parse_quantity(amount.value)
        return PoolDevice(device, item, self._content(content), consumes, here=True)

    def _tainted(self, device: Device, driver: str, pool: str) -> Device:
        if not self.rules.reads_device_taint_rules or not self.taint_rules:
            return device
        added = tuple(
            rule.spec.taint
            for _, rule in sorted(self.taint_rules.items())
            if selects_device(rule.spec.device_selector, driver, pool, device.name)
        )
        return replace(device, taints=(*device.taints, *added)) if added else device

    def _content(self, content: object) -> int:
        digest = blake2b(_encode(content), digest_size=16).digest()
        found = self._contents.get(digest)
        if found is None:
            if len(self._contents) >= CONTENTS:
                self._contents.clear()
            self._last_content += 1
            found = self._contents[digest] = self._last_content
        return found


def _edit(table: dict[str, ResourceSlice], name: str, item: ResourceSlice, remove: bool) -> None:
    if remove:
        table.pop(name, None)
    else:
        table[name] = item


def _pool_of(item: ResourceSlice) -> PoolId:
    return item.spec.driver, item.spec.pool.name


def _keep_newest(groups: dict[PoolId, list[ResourceSlice]], item: ResourceSlice) -> None:
    kept = groups.setdefault(_pool_of(item), [])
    if kept and item.spec.pool.generation < kept[0].spec.pool.generation:
        return
    if kept and item.spec.pool.generation > kept[0].spec.pool.generation:
        kept.clear()
    kept.append(item)


def _is_for(item: ResourceSlice, node: NodeFacts) -> bool:
    spec = item.spec
    try:
        if spec.node_name or spec.all_nodes or spec.node_selector is not None:
            return _node_matches(node, spec.node_name, spec.all_nodes, spec.node_selector)
        if spec.per_device_node_selection:
            return any(_placed(one, node).here for one in _bare(item))
    except SelectorError as error:
        problem = f"failed to perform node selection for slice {item.metadata.name}: {error}"
        raise AllocationError(f"gather pool information: {problem}") from None
    return False


def _bare(item: ResourceSlice) -> Iterable[PoolDevice]:
    return (PoolDevice(device, item, 0, EMPTY, here=True) for device in item.spec.devices)


def _placed(one: PoolDevice, node: NodeFacts) -> PoolDevice:
    device = one.device
    here = _node_matches(node, device.node_name, device.all_nodes, device.node_selector)
    return one if here else PoolDevice(device, one.slice, one.content, one.consumes, here=False)


def _node_matches(node: NodeFacts, name: str | None, everywhere: bool, selector: NodeSelector | None) -> bool:
    if name:
        return node.name == name
    if everywhere:
        return True
    return selector is not None and selects(selector, node)


def selects(selector: NodeSelector, node: NodeFacts) -> bool:
    """Whether a node selector matches. Raises SelectorError for one that Kubernetes cannot parse."""
    terms = [parse_term(term) for term in selector.node_selector_terms]
    return any(term is not None and term.matches(node.labels, node.name) for term in terms)


def _counters(slices: Iterable[ResourceSlice]) -> dict[str, dict[str, int]] | None:
    """The counters of a pool; None if two sets have one name."""
    found: dict[str, dict[str, int]] = {}
    sets: list[CounterSet] = [one for item in slices for one in item.spec.shared_counters]
    for one in sets:
        if one.name in found:
            return None
        found[one.name] = {name: parse_quantity(counter.value) for name, counter in one.counters.items()}
    return found


def _has_twins(devices: Sequence[PoolDevice]) -> bool:
    return len({one.device.name for one in devices}) != len(devices)


def _lacks_counters(devices: Iterable[PoolDevice], counters: Amounts) -> bool:
    """Whether a device consumes a counter that the pool does not have."""
    return any(
        taken.counter_set not in counters or any(name not in counters[taken.counter_set] for name in taken.counters)
        for one in devices
        for taken in one.device.consumes_counters
    )


def _binds_late(pool: Pool) -> bool:
    return any(one.device.binding_conditions is not None for one in pool.devices)
