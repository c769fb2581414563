"""Which nodes suit a pod's claims, over all rows at once: where bound volumes can be reached, which free volume each
unbound claim would get, and where one could be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from situate.core.model.claims import claim_class
from situate.core.model.csi_migration import MigrationError, handle, in_tree_plugin, is_migrated, migrated_affinity
from situate.core.model.labels import EVERYTHING, Selector, SelectorError, parse_selector, requirement
from situate.core.model.nodeselector import NodeSelector, Term, parse_terms
from situate.core.model.quantity import parse_quantity, value
from situate.core.model.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
)
from situate.core.plugins.nodeselection import node_selector_mask, term_mask
from situate.core.state.columns import IdColumn, Mask
from situate.core.state.objects import StorageObjects
from situate.core.state.view import View

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim whose volume is being made for a node."""

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
STORAGE: Final = "storage"
NOTHING: Final = -1

PARSED_SELECTORS: Final = 16_384
"""How many node selectors of volumes are kept parsed: local volumes have one each."""


@dataclass(frozen=True, slots=True)
class Bound:
    """Where bound claims cannot be used: the first claim that fails on a node says why."""

    elsewhere: Mask
    """The volume does not reach the node."""
    gone: Mask
    """The volume is not there."""
    unreadable: tuple[tuple[str, Mask], ...] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """The free volume a claim would get on each row, as an index into `volumes`; NOTHING where there is none."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    chosen: IdColumn


@dataclass(frozen=True, slots=True)
class Unbound:
    """What unbound claims would get, and where they would get nothing."""

    unmatched: Mask
    no_space: Mask
    matches: tuple[Match, ...] = ()
    provisions: tuple[tuple[PersistentVolumeClaim, Mask], ...] = ()
    unreadable: tuple[tuple[str, Mask], ...] = ()

    def matches_at(self, row: int) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume]]:
        for match in self.matches:
            if match.chosen[row] != NOTHING:
                yield match.claim, match.volumes[match.chosen[row]]

    def provisions_at(self, row: int) -> Iterator[PersistentVolumeClaim]:
        return (claim for claim, mask in self.provisions if mask[row])


def bound_claims(claims: Sequence[PersistentVolumeClaim], view: View) -> Bound:
    nowhere = np.zeros(view.size, np.bool_)
    elsewhere = nowhere.copy()
    left = ~nowhere
    unreadable: list[tuple[str, Mask]] = []
    for claim in claims:
        volume = view.storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return Bound(elsewhere, left, tuple(unreadable))
        try:
            reached = _reached(volume, view)
        except MigrationError as error:
            moved = left & _handed_over(volume, view)
            unreadable.append((f"could not translate pv: {error}", moved))
            reached = affinity_mask(volume.spec.node_affinity, view) & ~moved
        elsewhere |= left & ~reached
        left &= reached
    return Bound(elsewhere, nowhere, tuple(unreadable))


def _reached(volume: PersistentVolume, view: View) -> Mask:
    """The rows a bound volume can be reached from; where its plugin was handed over, in its driver's topology."""
    reached = affinity_mask(volume.spec.node_affinity, view)
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.driver:
        return reached
    moved = _handed_over(volume, view)
    if not moved.any():
        return reached
    handle(volume.spec, volume.metadata.labels)
    return np.where(moved, affinity_mask(migrated_affinity(volume, plugin), view), reached)


def _handed_over(volume: PersistentVolume, view: View) -> Mask:
    """The rows where the plugin of an in-tree volume was handed over to its driver."""
    plugin = in_tree_plugin(volume.spec)
    nodes = view.storage.csi_nodes
    handed_over = (plugin is not None and is_migrated(plugin, nodes.get(name)) for name in view.names)
    return np.fromiter(handed_over, np.bool_, view.size)


def affinity_mask(affinity: VolumeNodeAffinity | None, view: View) -> Mask:
    """The rows that a volume's node affinity allows."""
    if affinity is None or affinity.required is None:
        return np.ones(view.size, np.bool_)
    return node_selector_mask(_label_terms(affinity.required), view)


@lru_cache(maxsize=PARSED_SELECTORS)
def _label_terms(selector: NodeSelector) -> tuple[Term, ...]:
    """Only labels count: what a volume asks of a node's fields is checked for errors, and not read."""
    return tuple(Term(labels=term.labels) for term in parse_terms(selector.node_selector_terms))


def unbound_claims(claims: Sequence[PersistentVolumeClaim], view: View) -> Unbound:
    """What the claims get on each row.

    One whose volume is already being made for a node fits that node only. Of the others the smallest chooses first, and
    what finds no free volume has to be made.
    """
    rows = np.ones(view.size, np.bool_)
    selected, others = [], []
    for claim in claims:
        node_name = claim.metadata.annotations.get(SELECTED_NODE)
        if node_name is None:
            others.append(claim)
        else:
            selected.append(claim)
            rows &= np.arange(view.size) == view.find(node_name)
    if not rows.any():
        return Unbound(~rows, rows)
    others.sort(key=_size)
    try:
        matches = _match_all(others, rows, view)
    except SelectorError as error:
        return Unbound(~rows, np.zeros(view.size, np.bool_), unreadable=((str(error), rows),))
    missed = [(match.claim, rows & (match.chosen == NOTHING)) for match in matches]
    provisions = (*((claim, rows) for claim in selected), *missed)
    unmatched, no_space = _not_provided(provisions, view)
    return Unbound(unmatched | ~rows, no_space, tuple(matches), provisions)


def _match_all(claims: Sequence[PersistentVolumeClaim], rows: Mask, view: View) -> list[Match]:
    """Give each claim a free volume where there is one. A volume goes to one claim only."""
    taken: dict[str, Mask] = {}
    found = []
    for claim in claims:
        try:
            prebound, free = _suitable(claim, view.storage)
        except SelectorError as error:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            raise SelectorError(f"error creating internal label selector for claim: {key}: {error}") from None
        found.append(_match(claim, prebound, free, rows, taken, view))
    return found


def _match(
    claim: PersistentVolumeClaim,
    prebound: Sequence[PersistentVolume],
    free: Sequence[PersistentVolume],
    rows: Mask,
    taken: dict[str, Mask],
    view: View,
) -> Match:
    chosen = np.full(view.size, NOTHING, np.intp)
    left = rows.copy()
    for at, volume in enumerate((*prebound, *free)):
        here = left & affinity_mask(volume.spec.node_affinity, view)
        own = taken.get(volume.metadata.name)
        if own is not None:
            here &= ~own
        chosen[here] = at
        taken[volume.metadata.name] = here if own is None else own | here
        if at < len(prebound):
            # Where a volume that was made for the claim cannot be reached, no other will do.
            left &= np.zeros(view.size, np.bool_) if own is None else own
        else:
            left &= ~here
        if not left.any():
            break
    return Match(claim, (*prebound, *free), chosen)


def _suitable(
    claim: PersistentVolumeClaim, storage: StorageObjects
) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
    """The volumes made for the claim; and the free ones that suit it, smallest first. Nodes are not looked at.

    Kubernetes takes any of the smallest; here it is the first by name.
    """
    selector = EVERYTHING if claim.spec.selector is None else parse_selector(claim.spec.selector)
    prebound, free = [], []
    for volume in storage.volumes_of_class.get(claim_class(claim), {}).values():
        if not _large_enough(volume, claim):
            continue
        if volume.spec.claim_ref is not None:
            if _is_made_for(volume, claim):
                prebound.append(volume)
        elif _is_free_for(volume, claim, selector):
            free.append(volume)
    prebound.sort(key=lambda volume: volume.metadata.name)
    free.sort(key=lambda volume: (_capacity(volume), volume.metadata.name))
    return prebound, free


def _large_enough(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """What is asked even of a volume that was made for the claim."""
    return (
        volume.metadata.deletion_timestamp is None
        and volume.spec.volume_mode == claim.spec.volume_mode
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
        and _capacity(volume) >= _size(claim)
    )


def _is_made_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    ref = volume.spec.claim_ref
    return (
        ref is not None
        and (ref.namespace, ref.name) == (claim.metadata.namespace, claim.metadata.name)
        and ref.uid in ("", claim.metadata.uid)
    )


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return (
        volume.status.phase == "Available"
        and all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)
        and selector.matches(volume.metadata.labels)
    )


def _capacity(volume: PersistentVolume) -> int:
    return parse_quantity(volume.spec.capacity.get(STORAGE, 0))


def _size(claim: PersistentVolumeClaim) -> int:
    return parse_quantity(claim.spec.resources.requests.get(STORAGE, 0))


def _not_provided(provisions: Sequence[tuple[PersistentVolumeClaim, Mask]], view: View) -> tuple[Mask, Mask]:
    """The rows where some volume cannot be made, and those without the space: the first claim to fail says which."""
    unmatched = np.zeros(view.size, np.bool_)
    no_space = unmatched.copy()
    for claim, rows in provisions:
        wanted = rows & ~unmatched & ~no_space
        if not wanted.any():
            continue
        made = view.storage.classes.get(claim_class(claim))
        if made is None or made.provisioner in ("", NO_PROVISIONER):
            unmatched |= wanted
            continue
        allowed = _allowed(made, view)
        unmatched |= wanted & ~allowed
        no_space |= wanted & allowed & ~_has_space(claim, made, view)
    return unmatched, no_space


def _allowed(made: StorageClass, view: View) -> Mask:
    """The rows where the class lets volumes be made."""
    if not made.allowed_topologies:
        return np.ones(view.size, np.bool_)
    terms = []
    for term in made.allowed_topologies:
        try:
            demands = tuple(requirement(one.key, "In", one.values) for one in term.match_label_expressions)
        except SelectorError:
            continue
        if demands:
            terms.append(Term(labels=demands))
    return node_selector_mask(tuple(terms), view)


def _has_space(claim: PersistentVolumeClaim, made: StorageClass, view: View) -> Mask:
    """The rows from which a driver that tells its free space has enough of it."""
    asked = claim.spec.resources.requests.get(STORAGE)
    driver = view.storage.csi_drivers.get(made.provisioner)
    if asked is None or driver is None or not driver.spec.storage_capacity:
        return np.ones(view.size, np.bool_)
    size = value(asked)
    mask = np.zeros(view.size, np.bool_)
    for capacity in view.storage.capacities.values():
        if capacity.storage_class_name == made.metadata.name and _holds(capacity, size):
            mask |= _accessible(capacity, view)
    return mask


def _holds(capacity: CSIStorageCapacity, size: int) -> bool:
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return limit is not None and value(limit) >= size


def _accessible(capacity: CSIStorageCapacity, view: View) -> Mask:
    nowhere = np.zeros(view.size, np.bool_)
    if capacity.node_topology is None:
        return nowhere
    try:
        selector = parse_selector(capacity.node_topology)
    except SelectorError:
        return nowhere
    return nowhere if selector.nothing else term_mask(Term(labels=selector.requirements), view)
