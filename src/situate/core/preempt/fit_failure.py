"""Why pods of one profile fit nowhere, and which evictions help. Failures of one class are cached.

A cached failure is valid while nothing has changed that it depends on; that is checked every time.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final, TypeAlias

from situate.core.place.diagnosis import Diagnosis, diagnose
from situate.core.place.filtering import Filtered, combine
from situate.core.place.profile import Profile
from situate.core.preempt.eviction_effects import FilterRun, ask, with_nominations
from situate.core.preempt.lower_priority import LowerTables
from situate.core.preempt.nominated import NO_NOMINATED_PODS, NominatedPods, WithNominated
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter import post_filter
from situate.core.preempt.post_filter_result import PostFilterResult
from situate.core.preempt.preemption import PreemptionInputs
from situate.core.preempt.with_nominated import filter_with_nominated
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

CACHED: Final = 1_024
"""For how many classes failures are cached. The least recently used is dropped first."""

Moment: TypeAlias = tuple[int, ...]
"""The versions of everything that a failure depends on."""


@dataclass(frozen=True, slots=True)
class FitFailure:
    filtered: Filtered
    diagnosis: Diagnosis
    post_filter: PostFilterResult | None
    """None if a node was found, or a filter failed: then PostFilter does not run."""
    message: str
    """The text of the FailedScheduling event."""


@dataclass(frozen=True, slots=True)
class _FilterRuns:
    """The verdicts of the filters on one class at some moment, without nominations."""

    pod: PodClass
    moment: Moment
    asked: list[FilterRun]
    filtered: Filtered


class FitFailureFinder:
    __slots__ = ("_cache", "_cluster", "_lower", "_options", "_profile", "_runs")

    def __init__(self, cluster: Cluster, profile: Profile, options: PreemptionOptions, lower: LowerTables) -> None:
        self._cluster = cluster
        self._profile = profile
        self._options = options
        self._lower = lower
        self._cache: dict[PodClass, tuple[Moment, FitFailure]] = {}
        self._runs: _FilterRuns | None = None
        """The last: unschedulable pods come in bursts of one class."""

    def find(
        self,
        pod: PodClass,
        nominated: NominatedPods = NO_NOMINATED_PODS,
        *,
        nominated_node: str = "",
        evicting: Container[str] = (),
    ) -> FitFailure:
        """Why a pod fits nowhere beside the nominated pods, and which evictions help.

        `nominated_node` is the pod's own nomination; `evicting` are the uids of pods that are being evicted.
        """
        if nominated_node or self._options.never_break_budgets:
            # This depends on which pods are leaving that node, or on the budgets, which have no version.
            return self._find(pod, nominated, nominated_node, evicting)
        moment = (*_moment(self._cluster), nominated.version)
        cached = self._cache.pop(pod, None)
        if cached is None or cached[0] != moment:
            cached = moment, self._find(pod, nominated, "", ())
        if cached[1].post_filter is None or cached[1].post_filter.node_row is None:
            self._cache[pod] = cached
            if len(self._cache) > CACHED:
                del self._cache[next(iter(self._cache))]
        return cached[1]

    def _find(
        self, pod: PodClass, nominated: NominatedPods, nominated_node: str, evicting: Container[str]
    ) -> FitFailure:
        profile, view = self._profile, View(self._cluster)
        runs = self._runs_of(pod, view)
        asked = with_nominations(runs.asked, pod, nominated)
        filtered = filter_with_nominated(runs.filtered, asked, pod, view, nominated)
        diagnosis = diagnose(profile, pod, WithNominated(view, nominated) if nominated else view, filtered)
        if filtered.failed is not None:
            return FitFailure(filtered, diagnosis, None, filtered.failure)
        if filtered.feasible.any():
            return FitFailure(filtered, diagnosis, None, diagnosis.message())
        known = PreemptionInputs(nominated, evicting, self._lower.below(pod.priority), self._lower.budgets(), asked)
        result = post_filter(profile, pod, view, diagnosis, self._options, nominated_node=nominated_node, known=known)
        return FitFailure(filtered, diagnosis, result, diagnosis.message(result.message))

    def _runs_of(self, pod: PodClass, view: View) -> _FilterRuns:
        moment = _moment(self._cluster)
        cached = self._runs
        if cached is None or cached.pod is not pod or cached.moment != moment:
            asked = ask(self._profile, pod, view)
            filtered = combine(self._profile, [one.verdict for one in asked], view)
            cached = self._runs = _FilterRuns(pod, moment, asked, filtered)
        return cached


def _moment(cluster: Cluster) -> Moment:
    return (
        cluster.epoch,
        cluster.touched_base + len(cluster.touched),
        cluster.terms.version,
        cluster.objects.storage.version,
        cluster.objects.workloads.version,
        cluster.objects.devices.changes,
    )
