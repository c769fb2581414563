"""Which nodes suit a pod's claims, over all rows at once: where bound claims can be used, which free volume each
unbound claim would get, and where one could be provisioned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.model.claims import claim_class
from situate.core.model.labels import EVERYTHING, Selector, SelectorError, parse_selector
from situate.core.model.storage import PersistentVolume, PersistentVolumeClaim
from situate.core.model.volume_claims import claim_size, is_made_for, is_usable, volume_capacity
from situate.core.plugins.support.volume_topology import (
    affinity_terms,
    first_matching,
    matching_rows,
    provisionable_rows,
    reachable_rows,
    rows_with_capacity,
)
from situate.core.state.columns import IdColumn, Mask
from situate.core.state.objects import StorageObjects
from situate.core.state.view import View

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation of a claim whose volume is being provisioned for a node."""

NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class BoundClaims:
    """Where bound claims cannot be used, by the first claim that fails on each node."""

    elsewhere: Mask
    """The volume does not reach the node."""
    gone: Mask
    """The volume does not exist."""
    unreadable: tuple[tuple[str, Mask], ...] = ()


@dataclass(frozen=True, slots=True)
class VolumeMatch:
    """The free volume a claim would get on each row, as an index into `volumes`; NOTHING where there is none."""

    claim: PersistentVolumeClaim
    volumes: Sequence[PersistentVolume]
    names: Mapping[str, int]
    """The index of each volume by its name."""
    chosen: IdColumn

    def at(self, row: int) -> PersistentVolume | None:
        return None if self.chosen[row] == NOTHING else self.volumes[self.chosen[row]]


@dataclass(frozen=True, slots=True)
class UnboundClaims:
    """The volumes that unbound claims would get, and the rows where they would get none."""

    unmatched: Mask
    no_space: Mask
    matches: tuple[VolumeMatch, ...] = ()
    provisions: tuple[tuple[PersistentVolumeClaim, Mask], ...] = ()
    unreadable: tuple[tuple[str, Mask], ...] = ()

    def matches_at(self, row: int) -> Iterator[tuple[PersistentVolumeClaim, PersistentVolume]]:
        for match in self.matches:
            if (volume := match.at(row)) is not None:
                yield match.claim, volume

    def provisions_at(self, row: int) -> Iterator[PersistentVolumeClaim]:
        return (claim for claim, mask in self.provisions if mask[row])


def bound_claims(claims: Sequence[PersistentVolumeClaim], view: View) -> BoundClaims:
    nowhere = np.zeros(view.size, np.bool_)
    elsewhere, left = nowhere.copy(), ~nowhere
    unreadable: list[tuple[str, Mask]] = []
    for claim in claims:
        volume = view.storage.volumes.get(claim.spec.volume_name)
        if volume is None:
            return BoundClaims(elsewhere, left, tuple(unreadable))
        mask, problem, rows = reachable_rows(volume, view)
        if problem:
            unreadable.append((problem, rows & left))
        elsewhere |= left & ~mask
        left &= mask
    return BoundClaims(elsewhere, nowhere, tuple(unreadable))


def unbound_claims(claims: Sequence[PersistentVolumeClaim], view: View) -> UnboundClaims:
    """The volumes that the claims would get on each row.

    A claim whose volume is already being provisioned for a node fits that node only. Of the others the smallest chooses
    first; a claim without a free volume needs a provisioned one.
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
        return UnboundClaims(~rows, rows)
    others.sort(key=claim_size)
    try:
        matches = _match_all(others, rows, view)
    except SelectorError as error:
        return UnboundClaims(~rows, np.zeros(view.size, np.bool_), unreadable=((str(error), rows),))
    missed = [(match.claim, rows & (match.chosen == NOTHING)) for match in matches]
    provisions = (*((claim, rows) for claim in selected), *missed)
    unmatched, no_space = _not_provided(provisions, view)
    return UnboundClaims(unmatched | ~rows, no_space, tuple(matches), provisions)


def _match_all(claims: Sequence[PersistentVolumeClaim], rows: Mask, view: View) -> list[VolumeMatch]:
    """Give each claim a free volume where there is one. A volume goes to one claim only."""
    found: list[VolumeMatch] = []
    for claim in claims:
        try:
            prebound, free = _suitable(claim, view.storage)
        except SelectorError as error:
            key = f"{claim.metadata.namespace}/{claim.metadata.name}"
            raise SelectorError(f"error creating internal label selector for claim: {key}: {error}") from None
        found.append(_match(claim, prebound, free, rows, found, view))
    return found


def _match(
    claim: PersistentVolumeClaim,
    prebound: Sequence[PersistentVolume],
    free: Sequence[PersistentVolume],
    rows: Mask,
    earlier: Sequence[VolumeMatch],
    view: View,
) -> VolumeMatch:
    volumes = (*prebound, *free)
    terms = [affinity_terms(volume.spec.node_affinity) for volume in volumes]
    names = {volume.metadata.name: at for at, volume in enumerate(volumes)}
    if not prebound and all(names.keys().isdisjoint(match.names) for match in earlier):
        chosen = first_matching(terms, view)
        return VolumeMatch(claim, volumes, names, np.where(rows & (chosen < len(volumes)), chosen, NOTHING))
    chosen = np.full(view.size, NOTHING, np.intp)
    left = rows.copy()
    for at, volume in enumerate(volumes):
        untaken = left.copy()
        for match in earlier:
            if (other := match.names.get(volume.metadata.name)) is not None:
                untaken &= match.chosen != other
        here = untaken & matching_rows(terms[at], view)
        chosen[here] = at
        # Where a volume provisioned for the claim cannot be reached, no other will do.
        left = left & ~(untaken if at < len(prebound) else here)
        if not left.any():
            break
    return VolumeMatch(claim, volumes, names, chosen)


def _suitable(
    claim: PersistentVolumeClaim, storage: StorageObjects
) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
    """The volumes provisioned for the claim; and the free ones that suit it, smallest first, whatever the node.

    Kubernetes takes any of the smallest; situate takes the first by name.
    """
    selector = EVERYTHING if claim.spec.selector is None else parse_selector(claim.spec.selector)
    prebound, free = [], []
    for volume in storage.volumes_of_class.get(claim_class(claim), {}).values():
        if not is_usable(volume, claim):
            continue
        if volume.spec.claim_ref is not None:
            if is_made_for(volume, claim):
                prebound.append(volume)
        elif _is_free_for(volume, claim, selector):
            free.append(volume)
    prebound.sort(key=lambda volume: volume.metadata.name)
    free.sort(key=lambda volume: (volume_capacity(volume), volume.metadata.name))
    return prebound, free


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim, selector: Selector) -> bool:
    return (
        volume.status.phase == "Available"
        and all(mode in volume.spec.access_modes for mode in claim.spec.access_modes)
        and selector.matches(volume.metadata.labels)
    )


def _not_provided(provisions: Sequence[tuple[PersistentVolumeClaim, Mask]], view: View) -> tuple[Mask, Mask]:
    """The rows where some volume cannot be provisioned, and those without space, by the first claim that fails."""
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
        may = provisionable_rows(made, view)
        unmatched |= wanted & ~may
        no_space |= wanted & may & ~rows_with_capacity(claim, made, view)
    return unmatched, no_space
