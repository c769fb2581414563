"""Why pods of one profile fit nowhere, and what can be done: for one after another, remembering what it can between.

What is remembered is right as long as nothing moves that it was computed from; and that is looked up every time.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final, TypeAlias

from situate.core.place.diagnosis import Diagnosis, diagnose
from situate.core.place.filtering import Filtered, combine
from situate.core.place.profile import Profile
from situate.core.preempt.beside import filtered_beside
from situate.core.preempt.lower import LowerTables
from situate.core.preempt.options import PreemptionOptions
from situate.core.preempt.post_filter import post_filter
from situate.core.preempt.preempting import Known
from situate.core.preempt.promised import NOBODY, Beside, Promised
from situate.core.preempt.remedy import Remedy
from situate.core.preempt.sway import Asked, ask, with_promises
from situate.core.state.classes import PodClass
from situate.core.state.cluster import Cluster
from situate.core.state.view import View

SAID: Final = 1_024
"""For how many classes it is remembered what was said; the one that was asked for longest ago goes first."""

Moment: TypeAlias = tuple[int, ...]
"""Where everything stands that an answer was computed from."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a pod fits nowhere, and what can be done about it."""

    filtered: Filtered
    diagnosis: Diagnosis
    remedy: Remedy | None
    """None if a node was found, or a filter failed: then there is nothing to remedy."""
    message: str
    """The text of the FailedScheduling event."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What the filters said of one class, at some moment, whoever was promised what."""

    pod: PodClass
    moment: Moment
    asked: list[Asked]
    filtered: Filtered


class Remedies:
    """Finds remedies for one profile on one cluster."""

    __slots__ = ("_answers", "_cluster", "_lower", "_options", "_profile", "_said")

    def __init__(self, cluster: Cluster, profile: Profile, options: PreemptionOptions, lower: LowerTables) -> None:
        self._cluster = cluster
        self._profile = profile
        self._options = options
        self._lower = lower
        self._said: dict[PodClass, tuple[Moment, Refused]] = {}
        self._answers: Answers | None = None
        """The last: pods that need a remedy come in bursts of one class."""

    def find(
        self, pod: PodClass, promised: Promised = NOBODY, *, nominated_node: str = "", evicting: Container[str] = ()
    ) -> Refused:
        """Why a pod fits nowhere beside those who were promised nodes, and what can be done.

        `nominated_node` is the one that the pod itself was promised; `evicting`, the uids of those who were asked to
        leave.
        """
        if nominated_node or self._options.never_break_budgets:
            # What is said depends on who is leaving that node, or on the budgets, of which no version is kept.
            return self._seek(pod, promised, nominated_node, evicting)
        moment = (*_moment(self._cluster), promised.version)
        said = self._said.pop(pod, None)
        if said is None or said[0] != moment:
            said = moment, self._seek(pod, promised, "", ())
        if said[1].remedy is None or said[1].remedy.node_row is None:
            self._said[pod] = said
            if len(self._said) > SAID:
                del self._said[next(iter(self._said))]
        return said[1]

    def _seek(self, pod: PodClass, promised: Promised, nominated_node: str, evicting: Container[str]) -> Refused:
        profile, view = self._profile, View(self._cluster)
        answers = self._answers_for(pod, view)
        asked = with_promises(answers.asked, pod, promised)
        filtered = filtered_beside(answers.filtered, asked, pod, view, promised)
        diagnosis = diagnose(profile, pod, Beside(view, promised) if promised else view, filtered)
        if filtered.failed is not None:
            return Refused(filtered, diagnosis, None, filtered.failure)
        if filtered.feasible.any():
            return Refused(filtered, diagnosis, None, diagnosis.message())
        known = Known(promised, evicting, self._lower.below(pod.priority), self._lower.budgets(), asked)
        remedy = post_filter(profile, pod, view, diagnosis, self._options, nominated_node=nominated_node, known=known)
        return Refused(filtered, diagnosis, remedy, diagnosis.message(remedy.message))

    def _answers_for(self, pod: PodClass, view: View) -> Answers:
        """What the filters say of the cluster as it is."""
        moment = _moment(self._cluster)
        kept = self._answers
        if kept is None or kept.pod is not pod or kept.moment != moment:
            asked = ask(self._profile, pod, view)
            filtered = combine(self._profile, [one.verdict for one in asked], view)
            kept = self._answers = Answers(pod, moment, asked, filtered)
        return kept


def _moment(cluster: Cluster) -> Moment:
    return (
        cluster.epoch,
        cluster.touched_base + len(cluster.touched),
        cluster.terms.version,
        cluster.objects.storage.version,
        cluster.objects.workloads.version,
    )
