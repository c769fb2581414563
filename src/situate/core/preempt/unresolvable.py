"""Why no eviction helps: the reason of the first filter that refuses a node with all pods of lower priority gone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Codes, Unjudged
from situate.core.place.filtering import ruled_out
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.preempt.eviction_effects import FilterEffect
from situate.core.preempt.nominated import WithNominated
from situate.core.preempt.trial import Trial, overlays, refusal_of
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, Mask
from situate.core.state.view import View


class ReasonCounts(dict[str, int]):
    def count(self, text: str, times: int = 1) -> None:
        if times:
            self[text] = self.get(text, 0) + times

    def count_all(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.count(text)


def count_unresolvable(trial: Trial, rows: IdColumn, counts: ReasonCounts) -> None:
    """Count the reasons for unresolvable rows.

    A filter judges all rows at once where evictions do not matter to it, or where that is arithmetic.
    """
    left = np.zeros(trial.view.size, np.bool_)
    left[rows] = True
    for row in _nominated_rows(trial, left):
        counts.count_all(_first_refusal(trial, row))
        left[row] = False
    for effect in trial.effects:
        if not left.any():
            return
        if isinstance(effect.plugin, NodeResourcesFit):
            left &= ~_short_of(trial, effect.plugin, left, counts)
            continue
        again = left & _must_ask(effect, left)
        for row in np.flatnonzero(again).tolist():
            overlay = trial.view.without(trial.lower.on(row)).at(row)
            if (texts := refusal_of(effect, trial.pod, overlay)) is not None:
                counts.count_all(texts)
                left[row] = False
        if effect.codes is not None and not effect.by_anyone:
            refused = left & ~again & (effect.codes != FITS)
            _count(effect, effect.codes, trial.pod, trial.view, refused, counts)
            left &= ~refused
    if left.any():
        raise LookupError(f"nothing refuses node row {int(np.flatnonzero(left)[0])}")


def _nominated_rows(trial: Trial, rows: Mask) -> list[int]:
    """The rows where a nomination may change a reason, apart from room."""
    every = dict.fromkeys(row for effect in trial.unsettled for row in effect.by_nominated)
    return [row for row in every if rows[row]]


def _first_refusal(trial: Trial, row: int) -> Sequence[str]:
    for overlay in overlays(trial, row, trial.lower.on(row)):
        for effect in trial.effects:
            if (texts := refusal_of(effect, trial.pod, overlay)) is not None:
                return texts
    raise LookupError(f"nothing refuses node row {row}")


def _short_of(trial: Trial, fit: NodeResourcesFit, left: Mask, counts: ReasonCounts) -> Mask:
    """Count the resources that rows lack; which rows lack any."""
    emptied = WithNominated(trial.view, trial.nominated, trial.lower.taken(trial.slack))
    refused = np.zeros(len(left), np.bool_)
    for text, mask in fit.details(trial.pod, emptied):
        short = mask & left
        counts.count(text, int(np.count_nonzero(short)))
        refused |= short
    return refused


def _must_ask(effect: FilterEffect, left: Mask) -> Mask:
    """Rows where evictions may change the verdict, so that the filter must be asked again."""
    if effect.by_anyone:
        return left
    found = np.zeros(len(left), np.bool_)
    for kind in effect.by_kinds:
        found[list(kind.placed)] = True
    return found


def _count(effect: FilterEffect, codes: Codes, pod: PodClass, view: View, refused: Mask, counts: ReasonCounts) -> None:
    """Count the reasons of a filter whose verdict stands, on the rows that it is the first to refuse."""
    if not refused.any():
        return
    outside = refused & (codes == RULED_OUT)
    counts.count(ruled_out((effect.plugin.name,)), int(np.count_nonzero(outside)))
    inside = refused & ~outside
    for row, text in effect.failures.items():
        if inside[row]:
            counts.count(Unjudged(text, effect.plugin.name))
    if (detailed := effect.detailed) is not None:
        reasons = [(text, mask & inside) for text, mask in detailed.details(pod, view)]
    else:
        reasons = [(reason.text, inside & (codes == at)) for at, reason in enumerate(effect.plugin.reasons, 1)]
    for text, mask in reasons:
        counts.count(text, int(np.count_nonzero(mask)))
