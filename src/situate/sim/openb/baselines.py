"""Three baseline policies of the authors as plugins, for comparison only.

From their descriptions in "Beware of Fragmentation" (USENIX ATC '23) and its simulator.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from situate.core.contract import MAX_SCORE, Scores
from situate.core.model.gpu import DEVICE_MILLI, GPU_RESOURCE, GpuNeed
from situate.core.state.classes import CPU, PodClass
from situate.core.state.columns import FloatColumn, IntColumn
from situate.core.state.devices import Devices, need_of
from situate.core.state.view import View

MOST_CPU: Final = 128_000.0
MOST_GPU: Final = 8_000.0
"""The largest node, in thousandths."""


class DotProduct:
    """Prefer the smallest dot product of request and free resources: emptier nodes score lower."""

    def score(self, pod: PodClass, view: View) -> Scores:
        need = need_of(pod, GPU_RESOURCE)
        cpu = (view.allocatable(CPU) - view.requested(CPU)) / MOST_CPU * (pod.requests.milli_cpu / MOST_CPU)
        gpu = view.devices(GPU_RESOURCE).free.sum(axis=1) / MOST_GPU * (need.devices * need.milli / MOST_GPU)
        return _scaled(1 - (cpu + gpu) / 2)


class GpuPacking:
    """Prefer GPUs in use, then nodes in use, then nodes with fewer GPUs."""

    def score(self, pod: PodClass, view: View) -> Scores:
        devices = view.devices(GPU_RESOURCE)
        need = need_of(pod, GPU_RESOURCE)
        third, half = MAX_SCORE // 3, MAX_SCORE // 2
        if not need.devices:
            in_use = np.full(view.size, MAX_SCORE, np.int64)
        elif need.whole:
            in_use = np.full(view.size, max(half - need.devices, third), np.int64)
        else:
            tightest = _tightest(need, devices)
            in_use = np.where(tightest == DEVICE_MILLI, half - 1, MAX_SCORE - tightest * 100 // DEVICE_MILLI // 10)
        idle = devices.whole == devices.count
        return np.where(idle, np.maximum(third - devices.whole, devices.whole), in_use)


class GpuClustering:
    """Prefer nodes with pods of this kind only, then nodes with some. The kind is the number of GPUs."""

    def score(self, pod: PodClass, view: View) -> Scores:
        need = need_of(pod, GPU_RESOURCE)
        if not need.devices:
            return np.zeros(view.size, np.int64)
        quarter = MAX_SCORE // 4
        free = view.devices(GPU_RESOURCE).free.sum(axis=1)
        fullness = (quarter * (int(MOST_GPU) - free)) // int(MOST_GPU)
        own = _kind(need)
        kinds = view.by_row(("GpuClustering", "kinds"), 0, _kinds)
        base = np.where(kinds == own, 3, np.where(kinds & own, 2, np.where(kinds == 0, 1, 0)))
        scores: Scores = fullness + base * quarter
        return scores


def _scaled(part: FloatColumn) -> Scores:
    """From 0 to 1."""
    return (part * MAX_SCORE).astype(np.int64)


def _tightest(need: GpuNeed, devices: Devices) -> IntColumn:
    """The free part of the fullest device that fits the share."""
    tightest: IntColumn = np.where(devices.free >= need.milli, devices.free, DEVICE_MILLI).min(axis=1)
    return tightest


def _kind(need: GpuNeed) -> int:
    """One bit for all shares, and one for each number of whole devices."""
    return 1 << (need.devices if need.whole else 0)


def _kinds(view: View, rows: IntColumn) -> IntColumn:
    """The kinds of pods on these rows, as bits."""
    found = np.zeros(len(rows), np.int64)
    for at, row in enumerate(rows.tolist()):
        for kind in view.classes_on(row):
            need = need_of(kind, GPU_RESOURCE)
            if need.devices:
                found[at] |= _kind(need)
    return found
