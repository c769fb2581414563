"""Which nodes a pod fits: the verdict of every filter on every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Codes, Failure, Filter, NodeFailures, Refusal, Verdict
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View

FILTER: Final = "Filter"


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """The pod was refused before any node was filtered. `plugin` is empty where several plugins did so together."""

    plugin: str
    refusal: Refusal
    last_asked: str = ""
    """The plugin after which no other ran; empty where all did."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """The verdicts of all filters. `codes` is parallel to the profile's filters."""

    codes: tuple[Codes | None, ...]
    feasible: Mask
    turned_away: TurnedAway | None = None
    failed: tuple[str, Failure] | None = None
    """A filter that failed, and its error."""

    @property
    def failure(self) -> str:
        """The message for the pod if a filter failed, in Kubernetes' words; empty if none did."""
        if self.failed is None:
            return ""
        plugin, failed = self.failed
        if failed.stage == FILTER:
            return f'running "{plugin}" filter plugin: {failed.text}'
        return f'running {failed.stage} plugin "{plugin}": {failed.text}'


def run_filters(profile: Profile, pod: PodClass, view: View) -> Filtered:
    verdicts = [plugin.check(pod, view) for plugin in profile.filters]
    return combine(profile, verdicts, view)


def feasible_rows(profile: Profile, pod: PodClass, view: View) -> tuple[Mask, int]:
    """The rows that pass every filter, read-only, and how many they are, for an answer that nobody explains."""
    feasible: Mask | None = None
    for plugin in profile.filters:
        verdict = plugin.check(pod, view)
        if verdict is None:
            continue
        if not isinstance(verdict, np.ndarray):
            found = run_filters(profile, pod, view).feasible
            return found, int(np.count_nonzero(found))
        if fits_all(verdict):
            continue
        fits = np.logical_not(verdict)  # FITS is 0
        feasible = fits if feasible is None else np.logical_and(feasible, fits, out=feasible)
    if feasible is None:
        return view.present, view.node_count
    if view.node_count < view.size:
        feasible &= view.present
    feasible.setflags(write=False)
    return feasible, int(np.count_nonzero(feasible))


def combine(profile: Profile, verdicts: Sequence[Verdict], view: View) -> Filtered:
    feasible = view.present.copy()
    codes: list[Codes | None] = []
    turned_away = failing = False
    for verdict in verdicts:
        if verdict is None:
            codes.append(None)
        elif isinstance(verdict, np.ndarray):
            if not fits_all(verdict):
                feasible &= np.logical_not(verdict)  # FITS is 0
            codes.append(verdict)
        elif isinstance(verdict, NodeFailures):
            feasible &= verdict.codes == FITS
            codes.append(verdict.codes)
            failing = True
        else:
            turned_away = True
            codes.append(None)
    if turned_away or not np.count_nonzero(feasible):
        stopped = _stopped_before_nodes(profile, verdicts, view)
        if isinstance(stopped, TurnedAway):
            return Filtered(tuple(codes), np.zeros(view.size, np.bool_), turned_away=stopped)
        if stopped is not None:
            return Filtered(tuple(codes), np.zeros(view.size, np.bool_), failed=stopped)
    if failing and (failed := _failed_on_a_node(profile, verdicts, codes, view)) is not None:
        return Filtered(tuple(codes), np.zeros(view.size, np.bool_), failed=failed)
    return Filtered(tuple(codes), feasible)


def fits_all(codes: Codes) -> bool:
    """Whether one code stands for all rows, and it is FITS."""
    return codes.size > 0 and codes.strides[0] == 0 and codes[0] == FITS


def _failed_on_a_node(
    profile: Profile, verdicts: Sequence[Verdict], codes: Sequence[Codes | None], view: View
) -> tuple[str, Failure] | None:
    """The first node on which a filter failed that no filter before it refused."""
    looked_at = view.present.copy()
    for one in codes:
        if one is not None:
            looked_at &= one != RULED_OUT
    found: dict[int, tuple[str, Failure]] = {}
    for plugin, verdict, one in zip(profile.filters, verdicts, codes, strict=True):
        if isinstance(verdict, NodeFailures):
            for row, text in verdict.texts.items():
                if looked_at[row]:
                    found.setdefault(row, (plugin.name, Failure(text, FILTER)))
        if one is not None:
            looked_at &= one == FITS
    return found[min(found)] if found else None


def _stopped_before_nodes(
    profile: Profile, verdicts: Sequence[Verdict], view: View
) -> TurnedAway | tuple[str, Failure] | None:
    """The first filter that refuses a pod for good turns it away, else the last one that refuses it for now."""
    by_name = {plugin.name: verdict for plugin, verdict in zip(profile.filters, verdicts, strict=True)}
    order = profile.before_nodes or tuple(by_name)
    for_now: TurnedAway | None = None
    narrowing: list[str] = []
    left = view.present
    for name in order:
        match by_name.get(name):
            case Failure() as failure:
                return name, failure
            case Refusal() as refusal if not refusal.eviction_helps:
                return TurnedAway(name, refusal, name)
            case Refusal() as refusal:
                for_now = TurnedAway(name, refusal)
            case np.ndarray() as codes if view.size == len(codes) and (codes == RULED_OUT).any():
                narrowing.append(name)
                left = left & (codes != RULED_OUT)
                if len(narrowing) > 1 and not left.any():
                    return TurnedAway("", Refusal(disjoint(narrowing)), name)
            case _:
                pass
    return for_now


def disjoint(plugins: Sequence[str]) -> str:
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously"


def ruled_out(plugins: Sequence[str]) -> str:
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]"


def fits_at(filters: Sequence[Filter], pod: PodClass, view: View, row: int) -> bool:
    """Whether a pod passes every filter on one node. For trials on overlays."""
    here = view.at(row)
    for plugin in filters:
        verdict = plugin.check(pod, here)
        if verdict is None:
            continue
        if not isinstance(verdict, np.ndarray) or verdict[0] != FITS:
            return False
    return True
