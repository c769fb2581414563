"""Tallies: how many matching pods each topology domain holds, kept up to date as pods come and go.

A tally is made when it is first asked for, from the classes that match; after that a pod that comes or goes changes one
number. All tallies are dropped when a node changes (domains and eligibility may have), and single ones when they take
too many bytes. Dropping one moves its version, so cached verdicts notice.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from msgspec import Struct

from situate.core.state.classes import ClassTable, LabelGroup, PodClass
from situate.core.state.columns import IdColumn, IntColumn, Mask
from situate.core.state.labelindex import LabelIndex
from situate.core.state.matching import Matcher, NamespaceLabels

TALLY_BYTES: Final = 128 << 20
"""How many bytes of counts are kept at most; the least recently used goes first."""

FEW_ROWS: Final = 16
"""Up to this many rows are added one by one: setting up arrays takes longer."""


class Eligible(Struct, frozen=True, eq=False):
    """The nodes that a tally covers: a mask over all rows, and a key that is equal for equal masks."""

    key: Hashable
    mask: Mask


@dataclass(eq=False, slots=True)
class TopologyTally:
    """Matching pods by domain of one topology key. The slot after the last domain is for nodes without the label."""

    matcher: Matcher
    topology_key: str | None
    """None where each row is a domain of its own."""
    domains: IdColumn
    eligible: Eligible | None
    counts_leaving: bool
    """Whether pods that are being deleted count."""
    counts: IntColumn
    groups: dict[LabelGroup, None] = field(default_factory=dict)
    version: int = 0

    def add(self, row: int, change: int) -> None:
        domain = self.domains[row]
        if domain >= 0 and (self.eligible is None or self.eligible.mask[row]):
            self.counts[domain] += change
            self.version += 1


TallyKey = tuple[Matcher, str | None, Hashable, bool]


class Tallies:
    """All tallies, and which label groups count in them."""

    __slots__ = ("_bytes", "_index", "_kept")

    def __init__(self) -> None:
        self._kept: dict[TallyKey, TopologyTally] = {}
        self._index: LabelIndex[TopologyTally] = LabelIndex()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, key: object) -> bool:
        return key in self._kept

    def values(self) -> list[TopologyTally]:
        return list(self._kept.values())

    def get(self, key: TallyKey) -> TopologyTally | None:
        found = self._kept.get(key)
        if found is not None and self._bytes > TALLY_BYTES // 2:
            # Keep the order of use only once it may matter.
            del self._kept[key]
            self._kept[key] = found
        return found

    def add(self, key: TallyKey, tally: TopologyTally, classes: ClassTable, namespaces: NamespaceLabels) -> None:
        anchor = tally.matcher.anchor
        candidates = classes.groups() if anchor is None else list(classes.groups_by_label.get(anchor, ()))
        for group in candidates:
            if tally.matcher.matches(group.namespace, group.labels, namespaces):
                self._feed(group, tally)
                for pod_class in group.classes:
                    count_class(tally, pod_class)
        self._kept[key] = tally
        self._index.add(anchor, tally)
        self._bytes += tally.counts.nbytes
        while self._bytes > TALLY_BYTES and len(self._kept) > 1:
            self._drop(next(iter(self._kept)))

    def keeps(self, tally: TopologyTally) -> bool:
        """Whether the tally is still kept: one that was dropped no longer knows its groups."""
        eligible = None if tally.eligible is None else tally.eligible.key
        return self._kept.get((tally.matcher, tally.topology_key, eligible, tally.counts_leaving)) is tally

    def add_group(self, group: LabelGroup, namespaces: NamespaceLabels) -> None:
        """A new group: count it in the tallies that match it."""
        for tally in self._index.candidates(group.labels):
            if tally.matcher.matches(group.namespace, group.labels, namespaces):
                self._feed(group, tally)

    def remove_group(self, group: LabelGroup) -> None:
        for tally in group.tallies:
            tally.groups.pop(group, None)
        group.tallies.clear()

    def clear(self) -> None:
        for key in list(self._kept):
            self._drop(key)

    def _feed(self, group: LabelGroup, tally: TopologyTally) -> None:
        group.tallies.append(tally)
        tally.groups[group] = None

    def _drop(self, key: TallyKey) -> None:
        tally = self._kept.pop(key)
        self._bytes -= tally.counts.nbytes
        self._index.discard(tally.matcher.anchor, tally)
        for group in tally.groups:
            group.tallies.remove(tally)
        tally.groups.clear()
        tally.version += 1


def count_class(tally: TopologyTally, pod_class: PodClass) -> None:
    """Add the pods of a class to a new tally, all at once."""
    mask = None if tally.eligible is None else tally.eligible.mask
    add_up(tally.counts, tally.domains, pod_class.placed, 1, mask)
    if not tally.counts_leaving:
        add_up(tally.counts, tally.domains, pod_class.leaving, -1, mask)


def add_up(
    counts: IntColumn, domains: IdColumn, placed: dict[int, int], times: int, eligible: Mask | None = None
) -> None:
    """Add pods by node row to counts by domain, this many times each; with `eligible`, on those rows only."""
    if len(placed) <= FEW_ROWS:
        for row, amount in placed.items():
            domain = domains[row]
            if domain >= 0 and (eligible is None or eligible[row]):
                counts[domain] += amount * times
        return
    rows = np.fromiter(placed.keys(), np.intp, len(placed))
    amounts = np.fromiter(placed.values(), np.int64, len(placed))
    here = domains[rows]
    counted = here >= 0
    if eligible is not None:
        counted &= eligible[rows]
    np.add.at(counts, here[counted], times * amounts[counted])
