"""Verdicts with nominated pods: a node must accept the pod with them there, and without them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.core.contract import FITS, Codes, RowFilter
from situate.core.place.filtering import Filtered
from situate.core.preempt.eviction_effects import FilterRun
from situate.core.preempt.nominated import NominatedPods, WithNominated
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import DEVICES, LOAD, View


def filter_with_nominated(
    plain: Filtered, asked: Sequence[FilterRun], pod: PodClass, view: View, nominated: NominatedPods
) -> Filtered:
    """The verdicts with nominated pods, where `plain` are the verdicts on the cluster as it is.

    A node that refuses the pod with its nominated pods is refused for that reason; any other as in `plain`.
    """
    if not nominated or plain.turned_away is not None or plain.failed is not None:
        return plain
    joined_view = WithNominated(view, nominated)
    moved: dict[int, Codes] = {}
    for at, one in enumerate(asked):
        codes = _codes_with_nominated(one, plain.codes[at], pod, view, joined_view, nominated)
        if codes is not None:
            moved[at] = codes
    if not moved:
        return plain
    rows = np.fromiter(nominated.by_row, np.intp, len(nominated.by_row))
    taken = np.ones(len(rows), np.bool_)
    for at, before in enumerate(plain.codes):
        codes = moved.get(at, before)
        if codes is not None:
            taken &= codes[rows] == FITS
    for at, codes in moved.items():
        before = plain.codes[at]
        codes[rows[taken]] = FITS if before is None else before[rows[taken]]
    return _joined(plain.codes, moved, view)


def _joined(plain: Sequence[Codes | None], moved: dict[int, Codes], view: View) -> Filtered:
    joined = tuple(moved.get(at, codes) for at, codes in enumerate(plain))
    feasible: Mask = view.present.copy()
    for codes in joined:
        if codes is not None:
            feasible &= codes == FITS
    return Filtered(joined, feasible)


def _codes_with_nominated(
    one: FilterRun,
    before: Codes | None,
    pod: PodClass,
    view: View,
    joined_view: WithNominated,
    nominated: NominatedPods,
) -> Codes | None:
    """The verdicts of a filter with the nominated pods of each node; None if they are the same."""
    probe = one.probe
    if probe.reads & ~DEVICES == LOAD and not probe.tallies_read and isinstance(one.plugin, RowFilter):
        # It reads the load of the node's own row only.
        verdict = one.plugin.check(pod, joined_view)
        return verdict.copy() if isinstance(verdict, np.ndarray) else None
    if not one.by_nominated:
        return None
    codes = np.zeros(view.size, np.uint8) if before is None else before.copy()
    for row in one.by_nominated:
        verdict = one.plugin.check(pod, view.plus(nominated.at(row)).at(row))
        if verdict is None:
            codes[row] = FITS
        elif isinstance(verdict, np.ndarray):
            codes[row] = verdict[0]
    return codes
