"""Normalizes raw scores to 0..100, as most of Kubernetes' plugins do: relative to the highest feasible node.

Raw scores that depend on nodes alone are computed once (`ranked`), and the scaled array is cached for each highest
score, so that the next pod pays for one lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from situate.core.contract import FITS, MAX_SCORE, Codes, Scores
from situate.core.state.columns import IntColumn, Mask, sealed
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class NodeRanking:
    """Raw scores of all rows, none negative; and the row of the highest, feasible or not."""

    values: IntColumn
    top_row: int


Ranking: TypeAlias = NodeRanking | Scores
"""Raw scores; or final scores, if they do not depend on which nodes are feasible."""


def normalized(raw: IntColumn, feasible: Mask, *, reverse: bool = False) -> Scores:
    """Scores relative to the highest raw score of a feasible node; inverted if `reverse`."""
    return scaled(raw, highest(raw, feasible), reverse=reverse)


def highest(raw: IntColumn, feasible: Mask) -> int:
    """The highest raw score of a feasible node; 0 if there is none."""
    return int(np.multiply(raw, feasible).max(initial=0))


def scaled(raw: IntColumn, top: int, *, reverse: bool = False) -> Scores:
    """`top` becomes 100, 0 stays 0, the rest is rounded down. If all are 0, reversed scores are all 100."""
    if top == 0:
        return np.full(len(raw), MAX_SCORE if reverse else 0, np.int64)
    scores: Scores = raw * MAX_SCORE // top
    return np.subtract(MAX_SCORE, scores, out=scores) if reverse else scores


def rank_scores(raw: IntColumn, feasible: Mask) -> Scores:
    """Scores by rank: 100 for the lowest raw score of a feasible node, less for the next, and so on.

    Ranks are equally far apart, by at least 1, down to 0: the best are distinguished however close they are, and after
    a hundred ranks all others have 0.
    """
    there = raw[feasible]
    order = np.unique(there)
    step = max(1, MAX_SCORE // max(1, len(order) - 1))
    scores: Scores = np.zeros(len(raw), np.int64)
    scores[feasible] = np.maximum(MAX_SCORE - np.searchsorted(order, there) * step, 0)
    return scores


def constant(value: int, view: View) -> Scores:
    """The same score for every row of the view, stored once."""
    whole = view.memo(("constant", value), lambda whole: np.broadcast_to(np.int64(value), whole.size))
    return whole if view.row is None else whole[view.rows]


def fits_everywhere(view: View) -> Codes:
    """The verdict that every row fits, stored once."""
    whole = view.memo(("fits",), lambda whole: np.broadcast_to(np.uint8(FITS), whole.size))
    return whole if view.row is None else whole[view.rows]


def ranked(values: IntColumn, whole: View, *, reverse: bool = False) -> Ranking:
    """Raw scores over all rows, ready for `settled`."""
    there = np.where(whole.present, values, -1)
    top_row = int(there.argmax()) if len(there) else 0
    top = int(values[top_row]) if len(there) else 0
    if top == 0:
        return constant(MAX_SCORE if reverse else 0, whole)
    if there.min(where=whole.present, initial=top) == top:
        return constant(0 if reverse else MAX_SCORE, whole)
    return NodeRanking(sealed(values), top_row)


def cached_scores(key: Hashable, rank: Callable[[View], Ranking], view: View, *, reverse: bool = False) -> Scores:
    """The scores of a ranking that depends on nodes alone, normalized over the feasible nodes of the view."""
    found = view.memo(key, rank)
    if not isinstance(found, NodeRanking):
        return found if view.row is None else found[view.rows]
    values = found.values
    if view.size != len(values):
        return normalized(values[view.rows], view.feasible, reverse=reverse)
    feasible = view.feasible
    # Usually the best node is feasible, and no search is needed.
    top = int(values[found.top_row]) if feasible[found.top_row] else highest(values, feasible)
    return view.memo((key, top), lambda _: sealed(scaled(values, top, reverse=reverse)))
