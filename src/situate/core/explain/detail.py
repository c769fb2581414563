"""The detail behind a verdict: a sentence with names and amounts, the same as values, and the nodes it applies to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from situate.core.state.columns import IdColumn
from situate.core.state.view import View

NAMED: Final = 3
"""How many nodes, pods or values a text names; it counts the rest."""
DETAILS: Final = 8
"""How many details a verdict has; those of most nodes come first."""


@dataclass(frozen=True, slots=True)
class VerdictDetail:
    text: str
    nodes: tuple[str, ...]
    """Some of the nodes it applies to."""
    count: int
    """How many nodes it applies to."""
    values: Mapping[str, Any] = field(default_factory=dict)


def detail(view: View, rows: IdColumn, text: str, **values: Any) -> VerdictDetail:
    names = view.names
    return VerdictDetail(text, tuple(names[row] for row in rows[:NAMED].tolist()), len(rows), values)


def most_first(found: Iterable[VerdictDetail]) -> list[VerdictDetail]:
    """Sorted by the number of nodes, descending; stable."""
    return sorted(found, key=lambda one: -one.count)


def rows_of(mask: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> IdColumn:
    return np.flatnonzero(mask)
