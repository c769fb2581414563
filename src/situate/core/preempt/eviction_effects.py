"""Which evictions, and which nominations, can change a filter's verdict.

The view records what a filter read. If it read nothing of bound pods, no eviction changes its verdict. If it read
tallies, the verdict on a node changes only if a pod that one of them counts leaves that node, or is nominated to it.
Any other filter must be asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from situate.core.contract import FITS, Codes, Detailed, Failure, Filter, NodeFailures, Refusal, Verdict
from situate.core.place.profile import Profile
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.preempt.nominated import NominatedPods
from situate.core.state.classes import LabelGroup, PodClass
from situate.core.state.columns import Mask
from situate.core.state.terms import CarriedTerm
from situate.core.state.topology import TopologyTally
from situate.core.state.view import CLAIMS, DEVICES, LOAD, OVERLAY, ROW_DEVICES, TERMS, View

ABOUT_DEVICES: Final = DEVICES | CLAIMS | ROW_DEVICES
"""Neither evictions nor nominations change devices: a claim keeps them."""


@dataclass(frozen=True, slots=True)
class FilterEffect:
    """A filter that judges the pod, or may once pods are gone; its verdict; and what could change that."""

    plugin: Filter
    codes: Codes | None
    """The verdict as things stand; None if the pod fits everywhere."""
    by_anyone: bool
    """Any eviction may change it."""
    by_kinds: dict[PodClass, None]
    """Otherwise, the classes whose evictions may change it on the node they leave."""
    by_nominated: dict[int, None] = field(default_factory=dict)
    """Rows where nominated pods may change it. Room does not count here: it is summed up elsewhere."""
    failures: Mapping[int, str] = field(default_factory=dict)
    """By row: why the filter failed there."""

    @property
    def detailed(self) -> Detailed | None:
        """The plugin, if it has more than one reason for a node."""
        return self.plugin if isinstance(self.plugin, Detailed) else None

    @property
    def settled(self) -> bool:
        return not self.by_anyone and not self.by_kinds

    def refused_for_good(self) -> Mask | None:
        """Rows that it refuses whichever pods are evicted; None if there are none."""
        if self.codes is None or self.by_anyone:
            return None
        refused: Mask = self.codes != FITS
        for kind in self.by_kinds:
            refused[list(kind.placed)] = False
        return refused


@dataclass(frozen=True, slots=True)
class FilterRun:
    """A filter's verdict on the cluster as it is, and what the filter read."""

    plugin: Filter
    verdict: Verdict
    probe: View
    by_nominated: dict[int, None] = field(default_factory=dict)
    """As in `FilterEffect`."""

    @property
    def by_anyone(self) -> bool:
        """Whether the verdict may depend on any bound pod, in unknown ways."""
        return bool(self.probe.reads & (LOAD | OVERLAY)) or (bool(self.probe.tallies_read) and _forgotten(self.probe))


def ask(profile: Profile, pod: PodClass, view: View) -> list[FilterRun]:
    found = []
    for plugin in profile.filters:
        probe = view.without(())
        found.append(FilterRun(plugin, plugin.check(pod, probe), probe))
    return found


def with_nominations(asked: Sequence[FilterRun], pod: PodClass, nominated: NominatedPods) -> list[FilterRun]:
    """The same verdicts, with the rows where nominations may change them."""
    if not nominated:
        return list(asked)
    found = []
    for one in asked:
        rows = _nominated_rows(one, pod, nominated)
        found.append(FilterRun(one.plugin, one.verdict, one.probe, rows) if rows else one)
    return found


def filter_effects(asked: Sequence[FilterRun], pod: PodClass) -> list[FilterEffect]:
    """The filters that decide whether a node fits, in the order of the profile.

    Evictions also change which terms are carried. But a term that matches the pod was read as a tally, and evictions
    add none.
    """
    found = []
    for one in asked:
        by_anyone = isinstance(one.verdict, (Refusal, Failure)) or one.by_anyone
        by_kinds = {} if by_anyone else _counted_below(pod.priority, one.probe)
        codes = one.verdict if isinstance(one.verdict, np.ndarray) else None
        failures: Mapping[int, str] = {}
        if isinstance(one.verdict, NodeFailures):
            codes, failures = one.verdict.codes, one.verdict.texts
        if by_anyone or by_kinds or one.by_nominated or codes is not None:
            found.append(FilterEffect(one.plugin, codes, by_anyone, by_kinds, one.by_nominated, failures))
    return found


def _nominated_rows(one: FilterRun, pod: PodClass, nominated: NominatedPods) -> dict[int, None]:
    """The rows where their nominated pods may change a verdict, apart from room."""
    probe = one.probe
    if not (probe.reads & ~ABOUT_DEVICES or probe.tallies_read) or isinstance(one.plugin, NodeResourcesFit):
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
    """Whether a tally that was read has been dropped since, for lack of memory."""
    tallies = probe.cluster.tallies
    return any(isinstance(read, TopologyTally) and not tallies.keeps(read) for read in probe.tallies_read)


def _counted_below(priority: int, probe: View) -> dict[PodClass, None]:
    """The classes of lower priority whose pods the tallies that were read count."""
    found: dict[PodClass, None] = {}
    for read in probe.tallies_read:
        if isinstance(read, CarriedTerm):
            kinds = list(read.classes)
        else:
            kinds = [kind for group in read.groups for kind in group.classes]
        found.update((kind, None) for kind in kinds if kind.total and kind.priority < priority)
    return found
