"""Which evictions, and which promises, can change a filter's answer.

The view remembers what a filter read. A filter that read nothing of bound pods stands by its answer whoever is
evicted. One that read tallies changes it on a node only if a pod that is counted in one of them leaves that node, or
was promised it. Of any other, nothing is known: it must be asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from situate.core.contract import FITS, Codes, Detailed, Failure, Filter, Refusal, Verdict
from situate.core.place.profile import Profile
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.preempt.nominated import NominatedPods
from situate.core.state.classes import LabelGroup, PodClass
from situate.core.state.columns import Mask
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import TopologyTally
from situate.core.state.view import LOAD, OVERLAY, TERMS, View


@dataclass(frozen=True, slots=True)
class FilterEffect:
    """A filter that has a say on the pod, or may have once pods are gone; its answer; and what could change that."""

    plugin: Filter
    codes: Codes | None
    """The answer as things stand; None if it fits everywhere."""
    by_anyone: bool
    """Any eviction may change it."""
    by_kinds: dict[PodClass, None]
    """Else, the classes whose pods' eviction may change it on the node they leave."""
    by_nominated: dict[int, None] = field(default_factory=dict)
    """Rows where it may answer otherwise beside the pods that were promised them. Room is not told here: it is summed
    up."""

    @property
    def detailed(self) -> Detailed | None:
        """The plugin, if its texts are more than its reasons."""
        return self.plugin if isinstance(self.plugin, Detailed) else None

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


@dataclass(frozen=True, slots=True)
class FilterRun:
    """What a filter said of the cluster as it is, and what it read to say it."""

    plugin: Filter
    verdict: Verdict
    probe: View
    by_nominated: dict[int, None] = field(default_factory=dict)
    """As in `FilterEffect`."""

    @property
    def by_anyone(self) -> bool:
        """Whether the answer may depend on any bound pod, in ways that nothing is known of."""
        return bool(self.probe.reads & (LOAD | OVERLAY)) or (bool(self.probe.tallies_read) and _forgotten(self.probe))


def ask(profile: Profile, pod: PodClass, view: View) -> list[FilterRun]:
    """Ask every filter about every node."""
    found = []
    for plugin in profile.filters:
        probe = view.without(())
        found.append(FilterRun(plugin, plugin.check(pod, probe), probe))
    return found


def with_nominations(asked: Sequence[FilterRun], pod: PodClass, nominated: NominatedPods) -> list[FilterRun]:
    """The same answers, with the rows where promises may change them."""
    if not nominated:
        return list(asked)
    found = []
    for one in asked:
        rows = _swayed_rows(one, pod, nominated)
        found.append(FilterRun(one.plugin, one.verdict, one.probe, rows) if rows else one)
    return found


def filter_effects(asked: Sequence[FilterRun], pod: PodClass) -> list[FilterEffect]:
    """The filters whose answers make a node fit or not, in the order in which the profile asks them.

    Evictions also change which terms are carried at all. But a term that spoke of the pod has been read as a tally,
    and no new one comes.
    """
    found = []
    for one in asked:
        by_anyone = isinstance(one.verdict, (Refusal, Failure)) or one.by_anyone
        by_kinds = {} if by_anyone else _counted_below(pod.priority, one.probe)
        codes = one.verdict if isinstance(one.verdict, np.ndarray) else None
        if by_anyone or by_kinds or one.by_nominated or codes is not None:
            found.append(FilterEffect(one.plugin, codes, by_anyone, by_kinds, one.by_nominated))
    return found


def _swayed_rows(one: FilterRun, pod: PodClass, nominated: NominatedPods) -> dict[int, None]:
    """The rows where the pods that were promised them may change an answer, but for room."""
    probe = one.probe
    if not (probe.reads or probe.tallies_read) or isinstance(one.plugin, NodeResourcesFit):
        return {}
    if one.by_anyone:
        return dict.fromkeys(nominated.by_row)
    names = probe.namespace_labels
    carriers: dict[PodClass, None] = {}
    if probe.reads & TERMS:
        for kind in nominated.carriers:
            if any(term.pods.matches(pod.namespace, pod.labels, names) for term in kind.terms):
                carriers[kind] = None
    groups: dict[LabelGroup, None] = {}
    for read in probe.tallies_read:
        if isinstance(read, TopologyTally):
            for group in nominated.groups:
                if read.matcher.matches(group.namespace, group.labels, names):
                    groups[group] = None
    if not carriers and not groups:
        return {}
    return {
        row: None
        for row, kinds in nominated.by_row.items()
        if any(kind in carriers or kind.group in groups for kind in kinds)
    }


def _forgotten(probe: View) -> bool:
    """Whether a tally that was read has been dropped since, for want of room."""
    tallies = probe.cluster.tallies
    return any(isinstance(read, TopologyTally) and not tallies.keeps(read) for read in probe.tallies_read)


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
