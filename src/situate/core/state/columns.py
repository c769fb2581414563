"""Columns that grow: numpy arrays with spare capacity, doubled when it runs out."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

IntColumn: TypeAlias = npt.NDArray[np.int64]
FloatColumn: TypeAlias = npt.NDArray[np.float64]
IdColumn: TypeAlias = npt.NDArray[np.intp]
Mask: TypeAlias = npt.NDArray[np.bool_]

FIRST_CAPACITY: Final = 16


def capacity_for(wanted: int) -> int:
    """The next power of two with room for `wanted` rows."""
    return max(FIRST_CAPACITY, 1 << (wanted - 1).bit_length())


def grown(column: npt.NDArray[Any], capacity: int, fill: int | bool) -> npt.NDArray[Any]:
    """A copy of the column with `capacity` rows; new rows hold `fill`. The rows are the last axis."""
    bigger = np.full((*column.shape[:-1], capacity), fill, dtype=column.dtype)
    bigger[..., : column.shape[-1]] = column
    return bigger


def sealed(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory, read-only, as views return it."""
    view = column.view()
    view.flags.writeable = False
    return view
