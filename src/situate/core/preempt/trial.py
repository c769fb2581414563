"""Trials: would the pod fit on a node if some pods were gone from it?

Room is arithmetic on columns, and what no eviction can change is known for all nodes. Only the other filters are asked
about overlays, one node at a time, and only on nodes that neither rules out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Failure, Refusal
from situate.core.place.filtering import ruled_out
from situate.core.place.profile import Profile
from situate.core.plugins.node_ports import NodePorts
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.preempt.evictable import Evictable, lower_on
from situate.core.preempt.freed import Emptied, freed
from situate.core.preempt.sway import Question, questions
from situate.core.state.classes import PODS, PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.ports import conflicts
from situate.core.state.view import View

Texts: TypeAlias = tuple[str, ...]
"""Why a node was refused; at least one."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is the same for every node while room is sought for one pod."""

    pod: PodClass
    view: View
    questions: tuple[Question, ...]
    unsettled: tuple[Question, ...]
    """Those that must be asked on overlays: all that evictions may change, but for room."""
    slack: Mapping[int, IntColumn]
    """Resource column -> what is left at each row if all pods of lower priority go and the pod comes."""
    freed: Mapping[int, IntColumn]
    """Resource column -> what those pods take; `pods`, that is how many they are, is always there."""
    hopeless: Mask
    """Rows where the pod does not fit even if all pods of lower priority go, as far as columns tell."""

    def lower_count(self, row: int) -> int:
        """How many pods of lower priority are on a node."""
        return int(self.freed[PODS][row])

    def room_at(self, row: int) -> dict[int, int]:
        """Resource column -> how much may come back, if all pods of lower priority are gone."""
        return {column: int(slack[row]) for column, slack in self.slack.items()}


def prepare(profile: Profile, pod: PodClass, view: View) -> Trial:
    asked = questions(profile, pod, view)
    fit = next((one.plugin for one in asked if isinstance(one.plugin, NodeResourcesFit)), None)
    wanted = dict(fit.asked(pod, view)) if fit is not None else {}
    freed_of = freed(view, pod.priority, {**wanted, PODS: 0})
    slack = {
        column: view.allocatable(column) - view.requested(column) + freed_of[column] - amount
        for column, amount in wanted.items()
    }
    hopeless = np.zeros(view.size, np.bool_)
    for left in slack.values():
        hopeless |= left < 0
    for one in asked:
        if (refused := one.refused_for_good()) is not None:
            hopeless |= refused
    unsettled = tuple(one for one in asked if not one.settled and one.plugin is not fit)
    return Trial(pod, view, tuple(asked), unsettled, slack, freed_of, hopeless)


def refusal(trial: Trial, row: int, gone: Sequence[Evictable]) -> Texts | None:
    """Why the pod does not fit on a node that is not hopeless, all of lower priority gone; None if it does."""
    overlay: View | None = None
    for question in trial.unsettled:
        if question.by_anyone or any(pod.kind in question.by_kinds for pod in gone):
            overlay = overlay or trial.view.without(gone).at(row)
            if (texts := _refusal_of(question, trial.pod, overlay)) is not None:
                return texts
    return None


def may_stay(trial: Trial, row: int, pod: Evictable, gone: Sequence[Evictable]) -> bool:
    """Whether all but room lets a pod come back to a node where the preemptor fits while it and `gone` are gone."""
    overlay: View | None = None
    for question in trial.unsettled:
        if isinstance(question.plugin, NodePorts):
            # An overlay frees a host port when one of its holders goes, so it cannot tell that another came back.
            if holds_wanted_port(pod.kind, trial.pod):
                return False
        elif question.by_anyone or pod.kind in question.by_kinds:
            overlay = overlay or trial.view.without(gone).at(row)
            if _refusal_of(question, trial.pod, overlay) is not None:
                return False
    return True


def holds_wanted_port(holder: PodClass, pod: PodClass) -> bool:
    """Whether pods of one class hold a host port that a pod of another asks for."""
    return any(
        (taken.protocol, taken.port) == (port.protocol, port.port) and conflicts(port.ip, (taken.ip,))
        for port in pod.host_ports
        for taken in holder.host_ports
    )


def why_hopeless(trial: Trial, rows: Sequence[int]) -> dict[int, Texts]:
    """What the first filter that refuses each hopeless row says, with all pods of lower priority gone from it."""
    short = _short_of(trial) if rows else {}
    return {row: _first_refusal(trial, row, short) for row in rows}


def _short_of(trial: Trial) -> dict[int, list[str]]:
    """Row -> what it is short of, pods of lower priority gone."""
    emptied = Emptied(trial.view, trial.freed)
    found: dict[int, list[str]] = {}
    for question in trial.questions:
        if isinstance(question.plugin, NodeResourcesFit):
            for text, mask in question.plugin.details(trial.pod, emptied):
                for row in np.flatnonzero(mask).tolist():
                    found.setdefault(row, []).append(text)
    return found


def _first_refusal(trial: Trial, row: int, short: Mapping[int, list[str]]) -> Texts:
    overlay: View | None = None
    for question in trial.questions:
        if question.settled:
            if question.codes is not None and question.codes[row] != FITS:
                return _texts(question, trial.pod, trial.view.at(row), int(question.codes[row]))
        elif isinstance(question.plugin, NodeResourcesFit):
            if row in short:
                return tuple(short[row])
        else:
            overlay = overlay or trial.view.without(lower_on(trial.view, row, trial.pod.priority)).at(row)
            if (texts := _refusal_of(question, trial.pod, overlay)) is not None:
                return texts
    raise LookupError(f"nothing refuses node row {row}")


def _refusal_of(question: Question, pod: PodClass, here: View) -> Texts | None:
    """Why a filter refuses the one row of a view; None if it does not."""
    verdict = question.plugin.check(pod, here)
    if verdict is None:
        return None
    if isinstance(verdict, (Refusal, Failure)):
        return (verdict.text,)
    code = int(verdict[0])
    return None if code == FITS else _texts(question, pod, here, code)


def _texts(question: Question, pod: PodClass, here: View, code: int) -> Texts:
    if code == RULED_OUT:
        return (ruled_out((question.plugin.name,)),)
    if question.detailed is not None:
        return tuple(text for text, mask in question.detailed.details(pod, here) if mask[0])
    return (question.plugin.reasons[code - 1].text,)
