"""Adapters for out-of-tree plugins. They validate each answer: a wrong one is an error, never a wrong placement.

Built-in plugins do not pass through here; their tests hold them to the contract. Validation costs a pass or two over
each answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from situate.core.contract import (
    MAX_SCORE,
    RULED_OUT,
    Assigner,
    Codes,
    Failure,
    Filter,
    Reason,
    Refusal,
    Scorer,
    Scores,
    Verdict,
    Wake,
)
from situate.core.model.names import qualified_name_problems
from situate.core.plugins.support.errors import PluginError, call
from situate.core.plugins.support.per_node import OutOfTreeFilter, PerNodeFilter, PerNodeScorer
from situate.core.state.classes import PodClass
from situate.core.state.view import View

MAX_REASONS: Final = RULED_OUT - 1
"""A code is a byte, and two of its values are taken."""


@dataclass(frozen=True, slots=True)
class CheckedFilter(OutOfTreeFilter):
    """Calls `check` and validates the answer."""

    def check(self, pod: PodClass, view: View) -> Verdict:
        verdict = call(self.name, "check", lambda: self.plugin.check(pod, view))
        if verdict is None or isinstance(verdict, Refusal | Failure):
            return verdict
        codes: Codes = _column(self.name, "check", verdict, np.dtype(np.uint8), view)
        wrong = np.flatnonzero((codes > len(self.reasons)) & (codes != RULED_OUT) & view.present)
        if wrong.size:
            what = f"check gave code {codes[wrong[0]]} for node {view.names[wrong[0]]}"
            raise PluginError(self.name, f"{what}, and it has {len(self.reasons)} reasons")
        return codes


@dataclass(frozen=True, slots=True)
class CheckedScorer:
    """Calls `score` and validates the answer."""

    plugin: Any
    name: str

    def score(self, pod: PodClass, view: View) -> Scores | None:
        answer = call(self.name, "score", lambda: self.plugin.score(pod, view))
        if answer is None:
            return None
        scores: Scores = _column(self.name, "score", answer, np.dtype(np.int64), view)
        reads = view.reads
        wrong = np.flatnonzero(((scores < 0) | (scores > MAX_SCORE)) & view.feasible)
        view.reads = reads  # this adapter read which nodes are feasible, not the plugin
        if wrong.size:
            what = f"score gave {scores[wrong[0]]} for node {view.names[wrong[0]]}"
            raise PluginError(self.name, f"{what}, which is not within 0..{MAX_SCORE}")
        return scores


@dataclass(frozen=True, slots=True)
class CheckedAssigner:
    """Calls `assign` and validates the answer."""

    plugin: Any
    name: str

    def assign(self, pod: PodClass, view: View, row: int) -> Mapping[str, str]:
        answer = call(self.name, "assign", lambda: self.plugin.assign(pod, view, row))
        if not isinstance(answer, Mapping):
            raise PluginError(self.name, f"assign gave {type(answer).__name__}, not a mapping of annotations")
        for key, text in answer.items():
            if not isinstance(text, str) or qualified_name_problems(key if isinstance(key, str) else ""):
                raise PluginError(self.name, f"assign gave {key!r}: {text!r}, which is no annotation")
        return dict(answer)


def construct(name: str, kind: type, arguments: object) -> object:
    """The plugin; its `args` in the configuration are the constructor's keyword arguments."""
    if not isinstance(arguments, Mapping | None):
        raise PluginError(name, "its args in pluginConfig are not an object")
    return call(name, f"{kind.__name__}(...)", lambda: kind(**(arguments or {})))


def as_filter(name: str, plugin: object) -> Filter | None:
    """None if the plugin does not filter."""
    if hasattr(plugin, "check"):
        return CheckedFilter(plugin, name, _reasons(name, plugin), _wakes_on(name, plugin))  # type: ignore[return-value]
    if hasattr(plugin, "check_one"):
        return PerNodeFilter(plugin, name, _reasons(name, plugin), _wakes_on(name, plugin))  # type: ignore[return-value]
    return None


def as_scorer(name: str, plugin: object) -> Scorer | None:
    """None if the plugin does not score."""
    if hasattr(plugin, "score"):
        return CheckedScorer(plugin, name)  # type: ignore[return-value]
    return PerNodeScorer(plugin, name) if hasattr(plugin, "score_one") else None  # type: ignore[return-value]


def as_assigner(name: str, plugin: object) -> Assigner | None:
    """None if the plugin does not assign."""
    return CheckedAssigner(plugin, name) if hasattr(plugin, "assign") else None  # type: ignore[return-value]


def _reasons(name: str, plugin: object) -> tuple[Reason, ...]:
    """The plugin's reasons. A plugin that rejects only whole pods needs none."""
    reasons = getattr(plugin, "reasons", ())
    if not isinstance(reasons, tuple) or not all(isinstance(reason, Reason) for reason in reasons):
        raise PluginError(name, "its reasons are not a tuple of Reason")
    if len(reasons) > MAX_REASONS:
        raise PluginError(name, f"it has {len(reasons)} reasons, and may have {MAX_REASONS}")
    return reasons


def _wakes_on(name: str, plugin: object) -> frozenset[Wake]:
    """The events that the plugin waits for; by default all."""
    wakes_on = getattr(plugin, "wakes_on", frozenset(Wake))
    if not isinstance(wakes_on, set | frozenset) or not all(isinstance(wake, Wake) for wake in wakes_on):
        raise PluginError(name, "its wakes_on is not a set of Wake")
    return frozenset(wakes_on)


def _column(name: str, what: str, answer: object, dtype: np.dtype[Any], view: View) -> npt.NDArray[Any]:
    """A copy of the answer, if it has one number of the right type per node."""
    if not isinstance(answer, np.ndarray):
        raise PluginError(name, f"{what} gave {type(answer).__name__}, not an array of {dtype}")
    if answer.dtype != dtype or answer.shape != (view.size,):
        shape = "x".join(str(length) for length in answer.shape) or "no"
        raise PluginError(name, f"{what} gave {shape} values of {answer.dtype}, not {view.size} of {dtype}")
    return np.array(answer)
