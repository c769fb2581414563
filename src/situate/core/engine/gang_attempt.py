"""One attempt at placing a gang: a plan for all that is needed, with or without victims; or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from situate.core.effects import SetGroupCondition
from situate.core.engine.actions import (
    Activate,
    EndNomination,
    EvictPod,
    Fail,
    GangAction,
    HoldNode,
    MarkGangUnschedulable,
    Reserve,
)
from situate.core.engine.node_selection import NodeSelection
from situate.core.engine.state import EngineState
from situate.core.gang.explain import PREEMPTING, Explained, explain, no_domain, no_placement, several_domains
from situate.core.gang.members import Demands, Gang, GangStatus, evicted_together, group_of
from situate.core.gang.plan import Member, Plan, Planner, plan_enough
from situate.core.gang.preemption import make_room_somewhere
from situate.core.gang.topology import Domain, domains, plan_in_one, taken
from situate.core.model.group import PodGroup, is_scheduled
from situate.core.model.refs import PodRef
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.volume_binding import NO_VOLUMES_TO_BIND
from situate.core.queue.queued_pod import QueuedPod
from situate.core.state.classes import PodClass
from situate.core.state.objects import ObjectTable
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

REPLANS: Final = 32
"""How often a gang is planned again in one attempt because two of its pods would get the same volume."""
NO_VOLUMES_FOR_ALL: Final = "no nodes were found where each pod of gang {} gets volumes of its own"


class GangAttempt:
    def __init__(
        self,
        state: EngineState,
        selection: NodeSelection,
        gang: Gang,
        demands: Demands,
        status: GangStatus,
        needed: int,
    ) -> None:
        self._state = state
        self._cluster = state.cluster
        self._selection = selection
        self._gang = gang
        self._demands = demands
        self._status = status
        self._needed = needed
        self._least = max(1, needed)
        """A plan for no pod is none, even if none is needed."""
        self._entries = status.waiting
        self._framework = selection.framework_of(self._entries[0])
        self._members = tuple(Member(entry.key, entry.kind, selection.nominated_row(entry)) for entry in self._entries)
        self._planner = Planner(self._framework.profile, self._cluster, self._nominated())
        self._replans = 0

    def _nominated(self) -> list[tuple[PodClass, int]]:
        """The nominated pods of others that the lowest priority of the gang does not outrank."""
        least = min(entry.priority for entry in self._entries)
        rows = self._cluster.nodes.rows
        return [
            (one.kind, rows[one.node])
            for one in self._state.nominations.values()
            if one.kind.priority >= least and one.ref.key not in self._gang.members and one.node in rows
        ]

    def run(self) -> list[GangAction]:
        if not self._demands.topology_key:
            return self._run_anywhere()
        view = View(self._cluster)
        found = domains(view, self._demands.topology_key)
        nodes = [self._cluster.node_of(key) for key in self._status.placed]
        where = taken(view, self._demands.topology_key, nodes)
        if len(where) > 1:
            return self._refuse(Explained(several_domains(where), ()))
        if where:
            found = [domain for domain in found if domain.value == where[0]]
        return self._run_within(found)

    def _run_anywhere(self) -> list[GangAction]:
        found, trial = plan_enough(self._planner, self._members, self._least)
        if found.count >= self._least:
            return self._reserve(found)
        return self._no_plan([None], explain(trial, self._members, found, self._needed))

    def _run_within(self, within: Sequence[Domain]) -> list[GangAction]:
        if not within:
            return self._refuse(Explained(no_domain(self._demands.topology_key), ()))
        best = plan_in_one(self._planner, self._members, self._least, within)
        if best is not None:
            return self._reserve(best)
        found, trial = plan_enough(self._planner, self._members, self._least, within[0].rows)
        first = explain(trial, self._members, found, self._needed, within[0])
        text = no_placement(len(within), first.text)
        # The other domains were not explained: if there are any, every change may help.
        plugins = first.unschedulable_plugins if len(within) == 1 else ()
        return self._no_plan(within, replace(first, text=text, unschedulable_plugins=plugins))

    def _reserve(self, found: Plan) -> list[GangAction]:
        """Reserve all planned pods. Those without a node are decided by themselves."""
        if (lacking := self._lacks_volumes(found)) is not None:
            return self._plan_without(*lacking)
        self._gang.ours = True
        self._gang.refused_as = None
        planned = list(zip(self._entries, found.rows, found.annotations, strict=True))
        return [
            *(Reserve(entry, row, annotations) for entry, row, annotations in planned if row != NOWHERE),
            *(Activate(entry) for entry, row, _ in planned if row == NOWHERE),
        ]

    def _lacks_volumes(self, found: Plan) -> tuple[int, int] | None:
        """The first member that would get no volumes at its planned row once those before it have theirs."""
        assumed, short = self._state.assumed, None
        taking = [(at, row) for at, row in enumerate(found.rows) if self._entries[at].kind.holds_volumes]
        for at, row in taking:
            volumes = self._selection.volumes_at(self._entries[at], row) if row != NOWHERE else NO_VOLUMES_TO_BIND
            if volumes is None:
                short = at, row
                break
            assumed.take(self._entries[at].key, volumes.bindings)
        for at, _ in taking:
            for _, _ in assumed.give_back(self._entries[at].key):
                pass
        return short

    def _plan_without(self, at: int, row: int) -> list[GangAction]:
        """Plan again without the node where a member's volumes would go to another; a limited number of times."""
        self._replans += 1
        if self._replans > REPLANS:
            return self._refuse(self._no_volumes_for_all())
        member = self._members[at]
        barred = replace(member, nominated=NOWHERE, barred=(*member.barred, row))
        self._members = (*self._members[:at], barred, *self._members[at + 1 :])
        return self.run()

    def _no_volumes_for_all(self) -> Explained:
        """It is not known which change would help: any may."""
        return Explained(NO_VOLUMES_FOR_ALL.format(self._gang.name), ())

    # -- no plan -------------------------------------------------------------------------------------------------

    def _no_plan(self, within: Sequence[Domain | None], why: Explained) -> list[GangAction]:
        if why.failure:
            condition = self._group_condition("SchedulerError", why.failure)
            return [*condition, *(Fail(entry, why.failure) for entry in self._entries)]
        if any(member.barred for member in self._members):
            return self._refuse(self._no_volumes_for_all())
        if len(self._planner.draft.moves):
            why = replace(why, unschedulable_plugins=())  # nodes are nominated for others: any change may end that
        preempting = replace(why, text=f"{why.text} {PREEMPTING}")
        if self._victims_are_leaving():
            return self._refuse(preempting, keep_nominations=True)
        if not self._needed:
            return self._refuse(why)
        self._state.metrics.preemptions += 1
        options = self._framework.preemption
        made = make_room_somewhere(self._planner, self._members, self._needed, options, self._with_it, within)
        if isinstance(made, Plan):
            return [*self._preempt(made), *self._refuse(preempting, keep_nominations=True)]
        return self._refuse(replace(why, text=f"{why.text} {made}" if made else why.text))

    def _with_it(self, victim: BoundPod, priority: int) -> Sequence[BoundPod] | None:
        if victim.key in self._gang.members:
            return None
        return evicted_together(victim, priority, self._state.gangs, self._cluster)

    def _victims_are_leaving(self) -> bool:
        members = self._gang.members
        if any(eviction.preemptor.key in members for eviction in self._state.evictions.values()):
            return True
        view = View(self._cluster)
        return any(
            pod.preempted and pod.kind.priority < member.kind.priority
            for member in self._members
            if member.nominated != NOWHERE
            for pod in view.pods_on(member.nominated)
        )

    def _preempt(self, found: Plan) -> list[GangAction]:
        """Nominate every planned pod's node, and evict the victims."""
        names = self._cluster.nodes.names
        actions: list[GangAction] = []
        by: dict[int, QueuedPod] = {}
        for entry, row in zip(self._entries, found.rows, strict=True):
            if row == NOWHERE:
                actions.append(EndNomination(entry.key))
            else:
                actions.append(HoldNode(entry, names[row]))
                by.setdefault(row, entry)
        scheduler = self._entries[0].pod.spec.scheduler_name
        message = f"{scheduler}: preempting to accommodate a higher priority podgroup"
        self._state.metrics.victims.append(len(found.victims))
        for victim in found.victims:
            node = names[victim.node_row]
            entry = by.get(victim.node_row, self._entries[0])
            ref = PodRef(victim.namespace, victim.name, victim.uid)
            note = f"Preempted by podgroup {self._gang.name} on node {node}"
            actions.append(EvictPod(ref, node, entry.ref, message, ("Normal", "Preempted", "Preempting", note)))
        return actions

    def _refuse(self, why: Explained, *, keep_nominations: bool = False) -> list[GangAction]:
        """Every pod of the gang is told the same reason, and waits for a change that may help any of them."""
        self._gang.refused_as = (self._demands, len(self._status.placed))
        actions: list[GangAction] = [*self._group_condition("Unschedulable", why.text)]
        for entry in self._entries:
            if not keep_nominations:
                actions.append(EndNomination(entry.key))
            actions.append(MarkGangUnschedulable(entry, why.text, why.unschedulable_plugins))
        return actions

    def _group_condition(self, reason: str, message: str) -> Sequence[SetGroupCondition]:
        return group_condition(self._gang, self._cluster.objects, "False", reason, message)


def group_condition(
    gang: Gang, objects: ObjectTable, status: Literal["True", "False"], reason: str, message: str
) -> Sequence[SetGroupCondition]:
    """The condition of a gang's PodGroup, if it is new. A gang that was whole is never called unscheduled again."""
    group = group_of(gang, objects)
    if not isinstance(group, PodGroup) or gang.condition == (status, reason, message) or is_scheduled(group):
        return ()
    gang.condition = status, reason, message
    return (SetGroupCondition(gang.name.namespace, gang.name.name, status, reason, message),)
