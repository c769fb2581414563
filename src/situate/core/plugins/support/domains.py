"""Which rows are in which domain of a topology key."""

from __future__ import annotations

from typing import Final

import numpy as np

from situate.core.state.columns import Mask
from situate.core.state.view import View

FEW_DOMAINS: Final = 8
"""Keys with fewer domains have a mask for each."""


def in_row_order(view: View, topology_key: str) -> bool:
    """Whether domain ids equal row numbers, as for hostnames until a node is replaced."""
    return view.memo(("each row its own domain", topology_key), lambda whole: _in_row_order(whole, topology_key))


def _in_row_order(whole: View, topology_key: str) -> bool:
    ids, _ = whole.label(topology_key)
    return bool(np.array_equal(ids, np.arange(whole.size)))


def rows_by_domain(view: View, topology_key: str, rows: Mask, count: int) -> list[int]:
    """How many of these nodes, `count` in all, each domain has, those without the label last. For views of all rows."""
    masks, sizes = view.memo(("rows of each domain", topology_key), lambda whole: _masks(topology_key, whole))
    if count == view.node_count:
        return list(sizes)
    return [int(np.count_nonzero(mask & rows)) for mask in masks]


def _masks(topology_key: str, whole: View) -> tuple[list[Mask], list[int]]:
    """The nodes of each domain, and how many there are."""
    ids, values = whole.label(topology_key)
    masks = [(ids == domain) & whole.present for domain in range(len(values))] + [(ids < 0) & whole.present]
    return masks, [int(np.count_nonzero(mask)) for mask in masks]
