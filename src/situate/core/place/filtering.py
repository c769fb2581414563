"""Which nodes a pod fits: the verdict of every filter on every node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Codes, Failure, Filter, Refusal, Verdict
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.view import View


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
        return f'running {failed.stage} plugin "{plugin}": {failed.text}'


def run_filters(profile: Profile, pod: PodClass, view: View) -> Filtered:
    verdicts = [plugin.check(pod, view) for plugin in profile.filters]
    return combine(profile, verdicts, view)


def combine(profile: Profile, verdicts: Sequence[Verdict], view: View) -> Filtered:
    feasible = view.present.copy()
    codes: list[Codes | None] = []
    turned_away = False
    for verdict in verdicts:
        if isinstance(verdict, np.ndarray):
            feasible &= verdict == FITS
            codes.append(verdict)
        else:
            turned_away |= verdict is not None
            codes.append(None)
    if turned_away or not feasible.any():
        stopped = _stopped_before_nodes(profile, verdicts, view)
        if isinstance(stopped, TurnedAway):
            return Filtered(tuple(codes), np.zeros(view.size, np.bool_), turned_away=stopped)
        if stopped is not None:
            return Filtered(tuple(codes), np.zeros(view.size, np.bool_), failed=stopped)
    return Filtered(tuple(codes), feasible)


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
