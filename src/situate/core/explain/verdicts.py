"""Every filter's verdict on every node, where kube-scheduler reports only the first refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from situate.core.contract import FAILED, FITS, RULED_OUT, Codes, Detailed, Failure, Filter, NodeFailures, Refusal
from situate.core.place.filtering import ruled_out
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View


@dataclass(frozen=True, slots=True)
class PluginVerdict:
    """One reason of one filter, and the rows it applies to."""

    plugin: str
    text: str
    rows: Mask
    helps: Mask
    """The rows where preemption could help."""
    of_pod: bool = False
    """The filter rejected the pod before any node was checked."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts of all filters, in their order."""

    verdicts: tuple[PluginVerdict, ...]
    refused_by: dict[str, Mask]
    """Plugin -> the rows it refuses; only plugins that refuse some."""

    @property
    def blockers(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """How many filters refuse each row."""
        masks = list(self.refused_by.values())
        return np.sum(masks, axis=0, dtype=np.intp) if masks else np.zeros(0, np.intp)

    def at(self, row: int) -> list[PluginVerdict]:
        return [one for one in self.verdicts if one.rows[row]]


def verdicts(profile: Profile, pod: PodClass, view: View) -> Verdicts:
    """Run every filter on every node and collect all verdicts."""
    found_verdicts: list[PluginVerdict] = []
    refused_by: dict[str, Mask] = {}
    for plugin in profile.filters:
        found = _verdicts_of(plugin, pod, view)
        if found:
            found_verdicts.extend(found)
            refused_by[plugin.name] = np.logical_or.reduce([one.rows for one in found])
    return Verdicts(tuple(found_verdicts), refused_by)


def _verdicts_of(plugin: Filter, pod: PodClass, view: View) -> list[PluginVerdict]:
    match plugin.check(pod, view):
        case Refusal(text=text, eviction_helps=helps):
            return [PluginVerdict(plugin.name, text, view.present, view.present & helps, of_pod=True)]
        case Failure(text=text):
            return [PluginVerdict(plugin.name, text, view.present, np.zeros(view.size, np.bool_), of_pod=True)]
        case np.ndarray() as codes:
            return _by_text(plugin, pod, view, codes)
        case NodeFailures(codes=codes, texts=texts):
            known = np.where(codes == FAILED, FITS, codes).astype(np.uint8)
            return _by_text(plugin, pod, view, known) + _failed(plugin, view, texts)
        case _:
            return []


def _failed(plugin: Filter, view: View, texts: Mapping[int, str]) -> list[PluginVerdict]:
    """The nodes that a filter could not judge, by why."""
    rows: dict[str, Mask] = {}
    for row, text in texts.items():
        rows.setdefault(text, np.zeros(view.size, np.bool_))[row] = True
    never = np.zeros(view.size, np.bool_)
    return [PluginVerdict(plugin.name, text, mask, never, of_pod=False) for text, mask in rows.items()]


def _by_text(plugin: Filter, pod: PodClass, view: View, codes: Codes) -> list[PluginVerdict]:
    refused = (codes != FITS) & view.present
    helping = np.zeros(RULED_OUT + 1, np.bool_)
    helping[1 : len(plugin.reasons) + 1] = [reason.eviction_helps for reason in plugin.reasons]
    helps = helping[codes]
    outside = refused & (codes == RULED_OUT)
    refused = refused & ~outside
    if isinstance(plugin, Detailed):
        by_text = [(text, mask & refused) for text, mask in plugin.details(pod, view)]
    else:
        by_text = [(reason.text, refused & (codes == at)) for at, reason in enumerate(plugin.reasons, 1)]
    by_text.append((ruled_out([plugin.name]), outside))
    return [PluginVerdict(plugin.name, text, rows, rows & helps) for text, rows in by_text if rows.any()]
