"""For authors who think of one node at a time: `check_one` and `score_one` made into what the contract asks for.

    class QuietNodes:
        name = "QuietNodes"
        reasons = (Reason("node(s) were too noisy", eviction_helps=False),)
        wakes_on = frozenset({Wake.NODE_LABEL})

        def check_one(self, pod, node):
            return self.reasons[0] if node.labels.get("noise") == "high" else None

        def score_one(self, pod, node):
            return 100 if node.labels.get("noise") == "low" else 50

A plugin of this kind sees one pod and one node, so its answer for a node is computed again only when that node, or
what is bound to it, changes. It is called once a node; at thousands of nodes, write `check` and `score` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from situate.core.contract import FITS, MAX_SCORE, Codes, Reason, Scores, Wake, WakeEvent
from situate.core.model.node import Node
from situate.core.plugins.faults import PluginError, ask, worth
from situate.core.state.classes import PodClass
from situate.core.state.view import LOAD, View


class OneNode:
    """A node as `check_one` and `score_one` see it: the object, what is taken of it, and the pods on it."""

    def __init__(self, view: View, row: int, node: Node) -> None:
        self._view = view
        self._row = row
        self.node = node

    @property
    def name(self) -> str:
        return self.node.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @cached_property
    def pods(self) -> list[PodClass]:
        """One entry a pod that is bound here."""
        return self._view.classes_on(self._row)

    def allocatable(self, resource: str) -> int:
        """What the node can give of a resource: cpu in thousandths, memory in bytes, others counted."""
        column = self._view.resource(resource)
        return int(self._view.allocatable(column)[self._row]) if column >= 0 else 0

    def requested(self, resource: str) -> int:
        """What is taken of it."""
        column = self._view.resource(resource)
        return int(self._view.requested(column)[self._row]) if column >= 0 else 0

    def free(self, resource: str) -> int:
        return self.allocatable(resource) - self.requested(resource)


@dataclass(frozen=True, slots=True)
class WrappedFilter:
    """A `check_one` asked about every node."""

    plugin: Any
    name: str
    reasons: tuple[Reason, ...]
    wakes_on: frozenset[Wake]

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return worth(self.plugin, pod, event)

    def check(self, pod: PodClass, view: View) -> Codes:
        check_at = self.checker_at(pod, view)
        return np.array([check_at(row) for row in range(view.size)], np.uint8)

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        view.reads |= LOAD

        def check_at(row: int) -> int:
            node = view.node(row)
            if node is None:
                return FITS
            reason = ask(self.name, "check_one", lambda: self.plugin.check_one(pod, OneNode(view, row, node)))
            if reason is None:
                return FITS
            if not isinstance(reason, Reason) or reason not in self.reasons:
                what = f"check_one gave {reason!r} for node {node.metadata.name}"
                raise PluginError(self.name, f"{what}, which is none of its reasons")
            return self.reasons.index(reason) + 1

        return check_at


@dataclass(frozen=True, slots=True)
class WrappedScorer:
    """A `score_one` asked about every node."""

    plugin: Any
    name: str

    def score(self, pod: PodClass, view: View) -> Scores:
        score_at = self.scorer_at(pod, view)
        return np.array([score_at(row) for row in range(view.size)], np.int64)

    def scorer_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        view.reads |= LOAD

        def score_at(row: int) -> int:
            node = view.node(row)
            if node is None:
                return 0
            score = ask(self.name, "score_one", lambda: self.plugin.score_one(pod, OneNode(view, row, node)))
            if not isinstance(score, int | np.integer) or not 0 <= score <= MAX_SCORE:
                what = f"score_one gave {score!r} for node {node.metadata.name}"
                raise PluginError(self.name, f"{what}, which is not an integer within 0..{MAX_SCORE}")
            return int(score)

        return score_at
