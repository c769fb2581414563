"""From which nodes a volume is reachable, a class allows provisioning, and a driver has capacity: over all rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from situate.core.model.csi_migration import MigrationError, handle, in_tree_plugin, is_migrated, migrated_affinity
from situate.core.model.labels import IN, LabelSelector, SelectorError, parse_selector, requirement
from situate.core.model.nodeselector import NodeSelector, Term, parse_terms
from situate.core.model.quantity import value
from situate.core.model.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
)
from situate.core.model.volume_claims import STORAGE
from situate.core.plugins.support.node_selectors import node_selector_mask
from situate.core.state.columns import IdColumn, Mask
from situate.core.state.view import View

Terms = tuple[Term, ...] | None
"""Any of these; None for everywhere."""

PARSED_SELECTORS: Final = 16_384
"""How many parsed node selectors of volumes are cached: each local volume has its own."""


def affinity_terms(affinity: VolumeNodeAffinity | None) -> Terms:
    """The terms of a volume's node affinity. Field requirements are only checked for errors."""
    if affinity is None or affinity.required is None:
        return None
    return _label_terms(affinity.required)


@lru_cache(maxsize=PARSED_SELECTORS)
def _label_terms(selector: NodeSelector) -> tuple[Term, ...]:
    return tuple(Term(labels=term.labels) for term in parse_terms(selector.node_selector_terms))


def matching_rows(terms: Terms, view: View) -> Mask:
    return np.ones(view.size, np.bool_) if terms is None else node_selector_mask(terms, view)


def first_matching(choices: Sequence[Terms], view: View) -> IdColumn:
    """For each row, the first choice whose terms match it; `len(choices)` if none does.

    Most of many choices are pinned to one value of one label (a local volume to its node): those are looked up by
    value, and only the others are tried one by one.
    """
    first_by_value: dict[str, dict[str, int]] = {}
    others: list[int] = []
    for at, terms in enumerate(choices):
        pinned = _pinned(terms)
        if pinned is None:
            others.append(at)
        else:
            first_by_value.setdefault(pinned[0], {}).setdefault(pinned[1], at)
    found = np.full(view.size, len(choices), np.intp)
    for key, firsts in first_by_value.items():
        ids, vocab = view.label(key)
        table = np.full(len(vocab) + 1, len(choices), np.intp)
        for label, at in firsts.items():
            if (known := vocab.find(label)) >= 0:
                table[known] = at
        np.minimum(found, table.take(ids), out=found)
    for at in others:
        open_rows = found > at
        if not open_rows.any():
            break
        found[open_rows & matching_rows(choices[at], view)] = at
    return found


def _pinned(terms: Terms) -> tuple[str, str] | None:
    """The label and its single value, if the terms require nothing else."""
    if terms is None or len(terms) != 1 or len(terms[0].labels) != 1:
        return None
    only = terms[0].labels[0]
    return (only.key, only.values[0]) if only.operator == IN and len(only.values) == 1 else None


def reachable_rows(volume: PersistentVolume, view: View) -> tuple[Mask, str, Mask]:
    """Where a bound volume can be reached; and what is wrong with it, if anything.

    For a migrated in-tree volume, the CSI driver's topology counts.
    """
    mask = matching_rows(affinity_terms(volume.spec.node_affinity), view)
    nowhere = np.zeros(view.size, np.bool_)
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not plugin.driver:
        return mask, "", nowhere
    nodes = view.storage.csi_nodes
    moved = np.fromiter((is_migrated(plugin, nodes.get(name)) for name in view.names), np.bool_, view.size)
    if not moved.any():
        return mask, "", nowhere
    try:
        handle(volume.spec, volume.metadata.labels)
    except MigrationError as error:
        return mask & ~moved, f"could not translate pv: {error}", moved
    by_driver = matching_rows(affinity_terms(migrated_affinity(volume, plugin)), view)
    return np.where(moved, by_driver, mask), "", nowhere


def provisionable_rows(made: StorageClass, view: View) -> Mask:
    """The rows where the class allows provisioning."""
    if not made.allowed_topologies:
        return np.ones(view.size, np.bool_)
    terms = []
    for term in made.allowed_topologies:
        try:
            demands = tuple(requirement(one.key, IN, one.values) for one in term.match_label_expressions)
        except SelectorError:
            continue
        if demands:
            terms.append(Term(labels=demands))
    return node_selector_mask(tuple(terms), view)


def rows_with_capacity(claim: PersistentVolumeClaim, made: StorageClass, view: View) -> Mask:
    """The rows where a driver that reports capacity has enough of it."""
    found = reported_capacity(claim, made, view)
    return np.ones(view.size, np.bool_) if found is None else found[0]


def reported_capacity(
    claim: PersistentVolumeClaim, made: StorageClass, view: View
) -> tuple[Mask, npt.NDArray[np.int64]] | None:
    """The rows where the driver reports enough capacity, and how much; None if its capacity is not known.

    Of several reports that suit a row Kubernetes takes any; situate takes the first.
    """
    asked = claim.spec.resources.requests.get(STORAGE)
    driver = view.storage.csi_drivers.get(made.provisioner)
    if asked is None or driver is None or not driver.spec.storage_capacity:
        return None
    size = value(asked)
    roomy = [
        capacity
        for capacity in view.storage.capacities.values()
        if capacity.storage_class_name == made.metadata.name and _holds(capacity, size)
    ]
    first = first_matching([_topology_terms(capacity.node_topology) for capacity in roomy], view)
    amounts = [0 if capacity.capacity is None else value(capacity.capacity) for capacity in roomy]
    return first < len(roomy), np.array([*amounts, 0], np.int64)[first]


def _holds(capacity: CSIStorageCapacity, size: int) -> bool:
    limit = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return limit is not None and value(limit) >= size


def _topology_terms(topology: LabelSelector | None) -> Terms:
    """An absent topology matches no row, an empty one every row."""
    try:
        selector = parse_selector(topology)
    except SelectorError:
        return ()
    return () if selector.nothing else (Term(labels=selector.requirements),)
