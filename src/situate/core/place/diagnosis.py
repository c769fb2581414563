"""Why a pod fits nowhere: the first refusal on each node, counted and told in Kubernetes' words."""

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
    """The first filter, in profile order, that refused a node, and what it said."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The refusals of one pod. Nodes that were ruled out before anybody looked at them are in `absent`."""

    node_count: int
    turned_away: TurnedAway | None
    refusals: dict[int, NodeRefusal]
    """Node row -> its first refusal."""
    absent: Mask
    absent_text: str
    plugins: tuple[str, ...]
    """The filters that refused something: a change that none of them waits for does not wake the pod."""

    def histogram(self) -> str:
        """`1 Insufficient cpu, 2 node(s) were unschedulable`: sorted as text, as Kubernetes does."""
        counts: dict[str, int] = {}
        for refusal in self.refusals.values():
            for reason in refusal.reasons:
                counts[reason] = counts.get(reason, 0) + 1
        if self.absent_text:
            counts[self.absent_text] = counts.get(self.absent_text, 0) + int(self.absent.sum())
        return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))

    def message(self, remedy: str = "") -> str:
        """The whole text of the FailedScheduling event; `remedy` is what preemption had to say."""
        if self.node_count == 0:
            return NO_NODES
        text = f"0/{self.node_count} nodes are available:"
        told = self.turned_away.refusal.text if self.turned_away is not None else self.histogram()
        if told:
            text += f" {told}."
        return f"{text} {remedy}" if remedy else text

    def eviction_may_help(self, row: int) -> bool:
        """Whether the node at a row was refused for a reason that evicting pods could remove."""
        if self.turned_away is not None:
            return self.turned_away.refusal.eviction_helps
        refusal = self.refusals.get(row)
        return refusal is not None and refusal.code == status_code(eviction_helps=True)


def diagnose(profile: Profile, pod: PodClass, view: View, filtered: Filtered) -> Diagnosis:
    """Find the first refusal on every node, and what it said."""
    nowhere = np.zeros(view.size, np.bool_)
    if filtered.turned_away is not None:
        named = (filtered.turned_away.plugin,) if filtered.turned_away.plugin else ()
        return Diagnosis(view.node_count, filtered.turned_away, {}, nowhere, "", named)
    absent, narrowing = _absent(profile, filtered, view)
    first = _first_refusals(filtered.codes, view.present & ~absent)
    refusals: dict[int, NodeRefusal] = {}
    refusing = []
    for at, (plugin, codes) in enumerate(zip(profile.filters, filtered.codes, strict=True)):
        rows = np.flatnonzero(first == at + 1)
        if codes is not None and rows.size:
            refusing.append(plugin.name)
            refusals.update(_told(plugin, pod, view, codes, rows))
    absent_text = ruled_out(narrowing) if absent.any() else ""
    plugins = tuple(dict.fromkeys((*narrowing, *refusing)))
    return Diagnosis(view.node_count, None, dict(sorted(refusals.items())), absent, absent_text, plugins)


def _absent(profile: Profile, filtered: Filtered, view: View) -> tuple[Mask, list[str]]:
    """The nodes ruled out beforehand, and the filters that did it."""
    absent = np.zeros(view.size, np.bool_)
    narrowing = []
    for plugin, codes in zip(profile.filters, filtered.codes, strict=True):
        if codes is not None and (mask := codes == RULED_OUT).any():
            absent |= mask
            narrowing.append(plugin.name)
    return absent & view.present, narrowing


def _first_refusals(codes: tuple[Codes | None, ...], looked_at: Mask) -> npt.NDArray[np.int16]:
    """For each row, the 1-based place of the first filter that refused it; 0 where none did."""
    first = np.zeros(len(looked_at), np.int16)
    for at, answer in enumerate(codes):
        if answer is not None:
            first[(answer != FITS) & (first == 0) & looked_at] = at + 1
    return first


def _told(
    plugin: Filter, pod: PodClass, view: View, codes: Codes, rows: npt.NDArray[np.intp]
) -> dict[int, NodeRefusal]:
    """What one filter said of the rows that it was the first to refuse."""
    by_code = {
        code: NodeRefusal(plugin.name, reason.code, (reason.text,)) for code, reason in enumerate(plugin.reasons, 1)
    }
    if not isinstance(plugin, Detailed):
        return {row: by_code[code] for row, code in zip(rows.tolist(), codes[rows].tolist(), strict=True)}
    texts: dict[int, list[str]] = {row: [] for row in rows.tolist()}
    for text, mask in plugin.details(pod, view):
        for row in rows[mask[rows]].tolist():
            texts[row].append(text)
    return {
        row: NodeRefusal(plugin.name, by_code[code].code, tuple(sorted(texts[row])))
        for row, code in zip(rows.tolist(), codes[rows].tolist(), strict=True)
    }
