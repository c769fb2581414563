"""Trials: would the pod fit on a node if some pods were gone from it?

Room is arithmetic on columns, and what no eviction can change is known for all nodes. Only the other filters are asked
about overlays, one node at a time, and only on nodes that neither rules out. Nominated pods count: the pod must fit
with them, and without them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from situate.core.contract import FITS, RULED_OUT, Failure, NodeFailures, Refusal, Unjudged
from situate.core.place.filtering import ruled_out
from situate.core.plugins.node_ports import NodePorts
from situate.core.plugins.node_resources_fit import NodeResourcesFit
from situate.core.plugins.support.extended_devices import EMPTY_COLUMNS, served_columns
from situate.core.preempt.evictable import Evictable
from situate.core.preempt.eviction_effects import FilterEffect
from situate.core.preempt.lower_priority import LowerPods
from situate.core.preempt.nominated import NO_NOMINATED_PODS, NominatedPods
from situate.core.state.classes import PodClass
from situate.core.state.columns import IdColumn, IntColumn, Mask
from situate.core.state.ports import conflicts
from situate.core.state.view import View

Texts: TypeAlias = tuple[str, ...]
"""Why a node was refused; at least one."""
ENDLESS: Final = 1 << 62
"""The slack of a resource that is not asked for."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What is the same for every node while room is sought for one pod."""

    pod: PodClass
    view: View
    lower: LowerPods
    nominated: NominatedPods
    effects: tuple[FilterEffect, ...]
    unsettled: tuple[FilterEffect, ...]
    """Those that must be asked on overlays: all that evictions or nominations may change, apart from room."""
    slack: Mapping[int, IntColumn]
    """Resource column -> what is left at each row if all pods of lower priority go and the pod and the nominated ones
    come."""
    unresolvable: Mask
    """Rows where the pod does not fit even if all pods of lower priority go, as far as columns tell."""

    def room_at(self, row: int) -> dict[int, int]:
        """Resource column -> how much of it may come back once all pods of lower priority are gone."""
        return {column: int(slack[row]) for column, slack in self.slack.items()}

    def room_on(self, rows: IdColumn) -> dict[int, IntColumn]:
        return {column: slack[rows] for column, slack in self.slack.items()}

    def unknown(self) -> Mask | None:
        """Rows where more than room decides which pods may stay, because a filter must be asked. None: nowhere."""
        if not self.unsettled:
            return None
        found = np.zeros(self.view.size, np.bool_)
        for effect in self.unsettled:
            if effect.by_anyone:
                found[:] = True
                return found
            for kind in effect.by_kinds:
                found[list(kind.placed)] = True
            found[list(effect.by_nominated)] = True
        return found


def prepare(
    asked: Sequence[FilterEffect],
    pod: PodClass,
    view: View,
    lower: LowerPods,
    nominated: NominatedPods = NO_NOMINATED_PODS,
) -> Trial:
    fit = next((one.plugin for one in asked if isinstance(one.plugin, NodeResourcesFit)), None)
    wanted = dict(fit.asked(pod, view)) if fit is not None else {}
    taken = lower.taken(wanted)
    served = served_columns(pod, view.cluster.objects) if pod.requested_names else EMPTY_COLUMNS
    slack: dict[int, IntColumn] = {}
    unresolvable = np.zeros(view.size, np.bool_)
    for column, amount in wanted.items():
        left = view.allocatable(column) - amount
        stays = view.requested(column) - taken[column]
        if (load := nominated.load(column)) is not None:
            stays += load
        # Compared as the filter does: where amounts exceed 64 bits, the sign of the difference may be wrong.
        lacking = stays > left
        left -= stays
        if column in served:
            by_devices = view.allocatable(column) <= 0  # DynamicResources decides there, and no eviction helps it
            lacking &= ~by_devices
            left[by_devices] = ENDLESS
        unresolvable |= lacking
        slack[column] = left
    for one in asked:
        if (refused := one.refused_for_good()) is not None:
            unresolvable |= refused
    unsettled = tuple(one for one in asked if (not one.settled or one.by_nominated) and one.plugin is not fit)
    return Trial(pod, view, lower, nominated, tuple(asked), unsettled, slack, unresolvable)


def refusal(trial: Trial, row: int, gone: Sequence[Evictable]) -> Texts | None:
    """Why the pod does not fit on a node that is not unresolvable, with all of lower priority gone; None if it does."""
    concerned = [
        effect
        for effect in trial.unsettled
        if effect.by_anyone or row in effect.by_nominated or any(pod.kind in effect.by_kinds for pod in gone)
    ]
    if concerned:
        for overlay in overlays(trial, row, gone):
            for effect in concerned:
                if (texts := refusal_of(effect, trial.pod, overlay)) is not None:
                    return texts
    return None


def may_stay(trial: Trial, row: int, pod: Evictable, gone: Sequence[Evictable]) -> bool:
    """Whether everything but room lets a pod come back to a node where the preemptor fits without it and `gone`."""
    concerned = []
    for effect in trial.unsettled:
        if isinstance(effect.plugin, NodePorts):
            # An overlay frees a host port when one of its holders goes, so it cannot tell that another came back.
            if holds_wanted_port(pod.kind, trial.pod):
                return False
        elif effect.by_anyone or pod.kind in effect.by_kinds:
            concerned.append(effect)
    if concerned:
        for overlay in overlays(trial, row, gone):
            if any(refusal_of(effect, trial.pod, overlay) is not None for effect in concerned):
                return False
    return True


def overlays(trial: Trial, row: int, gone: Sequence[Evictable]) -> list[View]:
    """The node as the pod must fit it: with its nominated pods, if there are any, and without them."""
    without = trial.view.without(gone)
    nominated = trial.nominated.at(row)
    return [without.plus(nominated).at(row), without.at(row)] if nominated else [without.at(row)]


def holds_wanted_port(holder: PodClass, pod: PodClass) -> bool:
    return any(
        (taken.protocol, taken.port) == (port.protocol, port.port) and conflicts(port.ip, (taken.ip,))
        for port in pod.host_ports
        for taken in holder.host_ports
    )


def refusal_of(effect: FilterEffect, pod: PodClass, here: View) -> Texts | None:
    verdict = effect.plugin.check(pod, here)
    if verdict is None:
        return None
    if isinstance(verdict, (Refusal, Failure)):
        return (verdict.text,)
    if isinstance(verdict, NodeFailures):
        return tuple(Unjudged(text, effect.plugin.name) for text in verdict.texts.values())
    code = int(verdict[0])
    return None if code == FITS else _texts(effect, pod, here, code)


def _texts(effect: FilterEffect, pod: PodClass, here: View, code: int) -> Texts:
    if code == RULED_OUT:
        return (ruled_out((effect.plugin.name,)),)
    if (detailed := effect.detailed) is not None:
        return tuple(text for text, mask in detailed.details(pod, here) if mask[0])
    return (effect.plugin.reasons[code - 1].text,)
