"""Why a pod fits nowhere: the first refusal on each node, counted, in Kubernetes' words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import FITS, RULED_OUT, Codes, Detailed, Filter, status_code
from situate.core.place.filtering import Filtered, TurnedAway, ruled_out
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

NO_NODES: Final = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """The first filter, in profile order, that refused a node, and its reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """One reason of one filter, and the rows that the filter was the first to refuse for it."""

    plugin: str
    text: str
    rows: Mask


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The refusals of one pod, by reason. Nodes that were ruled out before filtering are in `absent`."""

    node_count: int
    turned_away: TurnedAway | None
    rejections: tuple[Rejection, ...]
    eviction_helps: Mask
    """Rows that were refused for a reason that evictions could remove."""
    absent: Mask
    absent_text: str
    plugins: tuple[str, ...]
    """The filters that refused something. Only a change that one of them waits for wakes the pod."""

    @property
    def refusals(self) -> dict[int, NodeRefusal]:
        """Node row -> its first refusal, in node order. This walks all rows: use it for output and comparisons only."""
        texts: dict[int, list[str]] = {}
        plugins: dict[int, str] = {}
        for rejection in self.rejections:
            for row in np.flatnonzero(rejection.rows).tolist():
                texts.setdefault(row, []).append(rejection.text)
                plugins[row] = rejection.plugin
        return {
            row: NodeRefusal(plugins[row], status_code(bool(self.eviction_helps[row])), tuple(sorted(texts[row])))
            for row in sorted(texts)
        }

    def histogram(self) -> str:
        """`1 Insufficient cpu, 2 node(s) were unschedulable`: sorted as text, as Kubernetes does."""
        counts: dict[str, int] = {}
        for rejection in self.rejections:
            counts[rejection.text] = counts.get(rejection.text, 0) + int(np.count_nonzero(rejection.rows))
        if self.absent_text:
            counts[self.absent_text] = counts.get(self.absent_text, 0) + int(np.count_nonzero(self.absent))
        return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))

    def message(self, preemption: str = "") -> str:
        """The whole text of the FailedScheduling event. `preemption` is the message of preemption."""
        if self.node_count == 0:
            return NO_NODES
        text = f"0/{self.node_count} nodes are available:"
        reasons = self.turned_away.refusal.text if self.turned_away is not None else self.histogram()
        if reasons:
            text += f" {reasons}."
        return f"{text} {preemption}" if preemption else text

    def eviction_may_help(self, row: int) -> bool:
        """Whether the node at a row was refused for a reason that evictions could remove."""
        return bool(self.eviction_helps[row])


def diagnose(profile: Profile, pod: PodClass, view: View, filtered: Filtered) -> Diagnosis:
    nowhere = np.zeros(view.size, np.bool_)
    if filtered.turned_away is not None:
        named = (filtered.turned_away.plugin,) if filtered.turned_away.plugin else ()
        helps = view.present if filtered.turned_away.refusal.eviction_helps else nowhere
        return Diagnosis(view.node_count, filtered.turned_away, (), helps, nowhere, "", named)
    absent, narrowing = _absent(profile, filtered, view)
    first = _first_refusals(filtered.codes, view.present & ~absent)
    rejections: list[Rejection] = []
    helps = nowhere.copy()
    refusing = []
    for at, (plugin, codes) in enumerate(zip(profile.filters, filtered.codes, strict=True)):
        rows = first == at + 1
        if codes is not None and rows.any():
            refusing.append(plugin.name)
            rejections.extend(_rejections_of(plugin, pod, view, codes, rows))
            helps |= rows & _helping(plugin)[codes]
    absent_text = ruled_out(narrowing) if absent.any() else ""
    plugins = tuple(dict.fromkeys((*narrowing, *refusing)))
    return Diagnosis(view.node_count, None, tuple(rejections), helps, absent, absent_text, plugins)


def _absent(profile: Profile, filtered: Filtered, view: View) -> tuple[Mask, list[str]]:
    """The nodes that were ruled out before filtering, and the filters that did so."""
    absent = np.zeros(view.size, np.bool_)
    narrowing = []
    for plugin, codes in zip(profile.filters, filtered.codes, strict=True):
        if codes is not None and (mask := codes == RULED_OUT).any():
            absent |= mask
            narrowing.append(plugin.name)
    return absent & view.present, narrowing


def _first_refusals(codes: tuple[Codes | None, ...], looked_at: Mask) -> npt.NDArray[np.int16]:
    """For each row, the 1-based index of the first filter that refused it; 0 where none did."""
    first = np.zeros(len(looked_at), np.int16)
    for at, answer in enumerate(codes):
        if answer is not None:
            first[(answer != FITS) & (first == 0) & looked_at] = at + 1
    return first


def _helping(plugin: Filter) -> Mask:
    """By code: whether evictions could remove the refusal."""
    table = np.zeros(RULED_OUT + 1, np.bool_)
    table[1 : len(plugin.reasons) + 1] = [reason.eviction_helps for reason in plugin.reasons]
    return table


def _rejections_of(plugin: Filter, pod: PodClass, view: View, codes: Codes, rows: Mask) -> list[Rejection]:
    """The reasons of one filter on the rows that it was the first to refuse."""
    if isinstance(plugin, Detailed):
        found = [Rejection(plugin.name, text, mask & rows) for text, mask in plugin.details(pod, view)]
    else:
        found = [
            Rejection(plugin.name, reason.text, rows & (codes == at)) for at, reason in enumerate(plugin.reasons, 1)
        ]
    return [one for one in found if one.rows.any()]
