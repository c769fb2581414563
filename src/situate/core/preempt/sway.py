"""Which evictions can change a filter's answer.

The view remembers what a filter read. A filter that read nothing of bound pods stands by its answer whoever is
evicted. One that read tallies changes it on a node only if a pod that is counted in one of them leaves that node. Of
any other, nothing is known: it must be asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from situate.core.contract import FITS, Codes, Detailed, Failure, Filter, Refusal
from situate.core.place.profile import Profile
from situate.core.state.classes import PodClass
from situate.core.state.columns import Mask
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import Tally
from situate.core.state.view import LOAD, OVERLAY, View


@dataclass(frozen=True, slots=True)
class Question:
    """A filter that has a say on the pod, or may have once pods are gone; its answer; and what could change that."""

    plugin: Filter
    codes: Codes | None
    """The answer as things stand; None if it fits everywhere."""
    by_anyone: bool
    """Any eviction may change it."""
    by_kinds: dict[PodClass, None]
    """Else, the classes whose pods' eviction may change it on the node they leave."""
    detailed: Detailed | None
    """The plugin, if its texts are more than its reasons."""

    @property
    def settled(self) -> bool:
        return not self.by_anyone and not self.by_kinds

    def refused_for_good(self) -> Mask | None:
        """Rows that it refuses whoever is evicted there; None if there is none."""
        if self.codes is None or self.by_anyone:
            return None
        refused: Mask = self.codes != FITS
        for kind in self.by_kinds:
            refused[list(kind.placed)] = False
        return refused


def questions(profile: Profile, pod: PodClass, view: View) -> list[Question]:
    """The filters whose answers make a node fit or not, in the order in which the profile asks them.

    Evictions also change which terms are carried at all. But a term that spoke of the pod has been read as a tally,
    and no new one comes.
    """
    found = []
    for plugin in profile.filters:
        probe = view.without(())
        verdict = plugin.check(pod, probe)
        stopped = isinstance(verdict, (Refusal, Failure))
        by_anyone = stopped or bool(probe.reads & (LOAD | OVERLAY)) or _forgotten(view, probe)
        by_kinds = {} if by_anyone else _counted_below(pod.priority, probe)
        codes = verdict if isinstance(verdict, np.ndarray) else None
        if by_anyone or by_kinds or codes is not None:
            detailed = plugin if isinstance(plugin, Detailed) else None
            found.append(Question(plugin, codes, by_anyone, by_kinds, detailed))
    return found


def _forgotten(view: View, probe: View) -> bool:
    """Whether a tally that was read has been dropped since, for want of room."""
    tallies = view.cluster.tallies
    return any(isinstance(read, Tally) and not tallies.keeps(read) for read in probe.tallies_read)


def _counted_below(priority: int, probe: View) -> dict[PodClass, None]:
    """The classes of lower priority whose pods are counted in what was read."""
    found: dict[PodClass, None] = {}
    for read in probe.tallies_read:
        if isinstance(read, CarriedTerm):
            kinds = list(read.classes)
        else:
            kinds = [kind for group in read.groups for kind in group.classes]
        found.update((kind, None) for kind in kinds if kind.total and kind.priority < priority)
    return found
