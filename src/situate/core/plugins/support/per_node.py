"""Plugins that look at one node at a time: `check_one` and `score_one`, adapted to the contract.

Such a plugin sees one pod and one node, so its answer for a node is recomputed only when that node, or a pod bound to
it, changes. It is called once per node; for thousands of nodes, write `check` and `score` instead.
docs/guides/plugins.md has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from situate.core.contract import FITS, MAX_SCORE, Codes, Reason, Scores, Wake, WakeEvent
from situate.core.model.node import Node
from situate.core.plugins.support.errors import PluginError, call, wakes_pod
from situate.core.state.classes import PodClass
from situate.core.state.view import LOAD, View


class OneNode:
    """A node as `check_one` and `score_one` see it: the object, its requested resources and its pods."""

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
        """One entry per bound pod."""
        return self._view.classes_on(self._row)

    def allocatable(self, resource: str) -> int:
        """The node's allocatable amount: cpu in millicores, memory in bytes."""
        column = self._view.resource(resource)
        return int(self._view.allocatable(column)[self._row]) if column >= 0 else 0

    def requested(self, resource: str) -> int:
        """What the bound pods request."""
        column = self._view.resource(resource)
        return int(self._view.requested(column)[self._row]) if column >= 0 else 0

    def free(self, resource: str) -> int:
        return self.allocatable(resource) - self.requested(resource)


@dataclass(frozen=True, slots=True)
class OutOfTreeFilter:
    """An out-of-tree plugin that filters, under the name that the configuration gives it."""

    plugin: Any
    name: str
    reasons: tuple[Reason, ...]
    wakes_on: frozenset[Wake]

    def wakes(self, pod: PodClass, event: WakeEvent) -> bool:
        return wakes_pod(self.plugin, pod, event)


@dataclass(frozen=True, slots=True)
class PerNodeFilter(OutOfTreeFilter):
    """Calls `check_one` for every node."""

    def check(self, pod: PodClass, view: View) -> Codes:
        check_at = self.checker_at(pod, view)
        return np.array([check_at(row) for row in range(view.size)], np.uint8)

    def checker_at(self, pod: PodClass, view: View) -> Callable[[int], int]:
        view.reads |= LOAD

        def check_at(row: int) -> int:
            node = view.node(row)
            if node is None:
                return FITS
            reason = call(self.name, "check_one", lambda: self.plugin.check_one(pod, OneNode(view, row, node)))
            if reason is None:
                return FITS
            if not isinstance(reason, Reason) or reason not in self.reasons:
                what = f"check_one gave {reason!r} for node {node.metadata.name}"
                raise PluginError(self.name, f"{what}, which is none of its reasons")
            return self.reasons.index(reason) + 1

        return check_at


@dataclass(frozen=True, slots=True)
class PerNodeScorer:
    """Calls `score_one` for every node."""

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
            score = call(self.name, "score_one", lambda: self.plugin.score_one(pod, OneNode(view, row, node)))
            if not isinstance(score, int | np.integer) or not 0 <= score <= MAX_SCORE:
                what = f"score_one gave {score!r} for node {node.metadata.name}"
                raise PluginError(self.name, f"{what}, which is not an integer within 0..{MAX_SCORE}")
            return int(score)

        return score_at
