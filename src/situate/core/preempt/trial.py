"""Trials: would the pod fit on a node if some pods were gone from it?

A filter whose answer does not depend on bound pods is asked once for all nodes; the view tells which those are, since
it remembers what was read. Room is arithmetic on columns. Only the other filters are asked about overlays, one node at
a time, and only on nodes that neither rules out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Codes, Detailed, Failure, Filter, Refusal, Verdict
from situate.core.place.filtering import ruled_out
from situate.core.place.profile import Profile
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.preempt.freed import Emptied, freed
from situate.core.state.classes import PODS, PodClass
from situate.core.state.columns import IntColumn, Mask
from situate.core.state.ports import conflicts
from situate.core.state.view import LOAD, View

Texts = tuple[str, ...]
"""Why a node was refused; at least one."""


@dataclass(frozen=True, slots=True)
class Question:
    """One filter that has a say on the pod."""

    plugin: Filter
    settled: Codes | None
    """Its answer for every row, where that is the same whoever is evicted."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is the same for every node while room is sought for one pod."""

    pod: PodClass
    view: View
    questions: tuple[Question, ...]
    """In the order in which the profile asks."""
    asked_again: tuple[Filter, ...]
    """The filters that must be asked on each overlay: all that are not settled, but for room."""
    slack: Mapping[int, IntColumn]
    """Resource column -> what is left at each row if all pods of lower priority go and the pod comes."""
    freed: Mapping[int, IntColumn]
    """Resource column -> what those pods take; `pods`, that is how many they are, is always there."""
    hopeless: Mask
    """Rows where the pod does not fit even if all pods of lower priority go, as far as columns tell."""
    ports_count: bool

    def victims_at(self, row: int) -> int:
        """How many pods of lower priority are on a node."""
        return int(self.freed[PODS][row])

    def room_at(self, row: int) -> dict[int, int]:
        return {column: int(slack[row]) for column, slack in self.slack.items()}

    def holds_wanted_port(self, kind: PodClass) -> bool:
        """Whether pods of a class hold a host port that the pod asks for."""
        if not self.ports_count:
            return False
        return any(
            (taken.protocol, taken.port) == (port.protocol, port.port) and conflicts(port.ip, (taken.ip,))
            for port in self.pod.host_ports
            for taken in kind.host_ports
        )


def prepare(profile: Profile, pod: PodClass, view: View) -> Trial:
    questions = _questions(profile, pod, view)
    fit = next((one.plugin for one in questions if isinstance(one.plugin, NodeResourcesFit)), None)
    asked = fit.asked(pod, view) if fit is not None else []
    freed_of = freed(view, pod.priority, dict.fromkeys((PODS, *(column for column, _ in asked))))
    slack = {
        column: view.allocatable(column) - view.requested(column) + freed_of[column] - amount
        for column, amount in asked
    }
    hopeless = np.zeros(view.size, np.bool_)
    for left in slack.values():
        hopeless |= left < 0
    for one in questions:
        if one.settled is not None:
            hopeless |= one.settled != FITS
    asked_again = tuple(one.plugin for one in questions if one.settled is None and one.plugin is not fit)
    ports_count = any(plugin.name == "NodePorts" for plugin in asked_again)
    return Trial(pod, view, questions, asked_again, slack, freed_of, hopeless, ports_count)


def _questions(profile: Profile, pod: PodClass, view: View) -> tuple[Question, ...]:
    """The filters that have a say on the pod, or may have once pods are gone.

    Evictions change what is bound to rows, and tallies. They also change which terms are carried at all, but a term
    that spoke of the pod has been read as a tally, and no new one comes.
    """
    found = []
    for plugin in profile.filters:
        probe = view.without(())
        verdict = plugin.check(pod, probe)
        if probe.reads & LOAD or probe.tallies_read or isinstance(verdict, (Refusal, Failure)):
            found.append(Question(plugin, None))
        elif verdict is not None:
            found.append(Question(plugin, verdict))
    return tuple(found)


def refusal(trial: Trial, here: View) -> Texts | None:
    """Why the pod does not fit on an overlay of one row that is not hopeless; None if it does."""
    for plugin in trial.asked_again:
        if (texts := _refusal_of(plugin, trial.pod, here)) is not None:
            return texts
    return None


def fits(trial: Trial, here: View) -> bool:
    """Whether every filter but room lets the pod onto an overlay of one row that is not hopeless."""
    return all(_passes(plugin.check(trial.pod, here)) for plugin in trial.asked_again)


def why_hopeless(trial: Trial, rows: list[int]) -> dict[int, Texts]:
    """What the first filter that refuses each hopeless row says, with all pods of lower priority gone from it."""
    emptied = Emptied(trial.view, trial.freed)
    short = _told_of_room(trial, emptied)
    return {row: _first_refusal(trial, row, short) for row in rows}


def _told_of_room(trial: Trial, emptied: Emptied) -> dict[int, list[str]]:
    """Row -> what it is short of, pods of lower priority gone."""
    found: dict[int, list[str]] = {}
    for one in trial.questions:
        if isinstance(one.plugin, NodeResourcesFit):
            for text, mask in one.plugin.details(trial.pod, emptied):
                for row in np.flatnonzero(mask).tolist():
                    found.setdefault(row, []).append(text)
    return found


def _first_refusal(trial: Trial, row: int, short: Mapping[int, list[str]]) -> Texts:
    overlay: View | None = None
    for one in trial.questions:
        if one.settled is not None:
            if one.settled[row] != FITS:
                return _texts(one.plugin, trial.pod, trial.view.at(row), int(one.settled[row]))
        elif isinstance(one.plugin, NodeResourcesFit):
            if row in short:
                return tuple(short[row])
        else:
            overlay = overlay or emptied_at(trial, row)
            if (texts := _refusal_of(one.plugin, trial.pod, overlay)) is not None:
                return texts
    raise LookupError(f"nothing refuses node row {row}")


def emptied_at(trial: Trial, row: int) -> View:
    """One row with all its pods of lower priority gone."""
    lower = [pod for pod in trial.view.pods_on(row) if pod.kind.priority < trial.pod.priority]
    return trial.view.without(lower).at(row)


def _passes(verdict: Verdict) -> bool:
    return verdict is None or (isinstance(verdict, np.ndarray) and verdict[0] == FITS)


def _refusal_of(plugin: Filter, pod: PodClass, here: View) -> Texts | None:
    verdict = plugin.check(pod, here)
    if verdict is None:
        return None
    if isinstance(verdict, (Refusal, Failure)):
        return (verdict.text,)
    code = int(verdict[0])
    return None if code == FITS else _texts(plugin, pod, here, code)


def _texts(plugin: Filter, pod: PodClass, here: View, code: int) -> Texts:
    if code == RULED_OUT:
        return (ruled_out((plugin.name,)),)
    if isinstance(plugin, Detailed):
        return tuple(text for text, mask in plugin.details(pod, here) if mask[0])
    return (plugin.reasons[code - 1].text,)
