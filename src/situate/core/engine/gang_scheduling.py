"""Gangs in the engine: which are held until enough pods are here, which are placed, and which are given up.

The rules:
- While fewer pods than minCount exist, none is tried; the condition of each says what it waits for.
- When the turn of one pod comes, all that wait are planned together. If as many fit as are needed, all of them are
  reserved in one step; otherwise none is.
- If fewer than minCount are bound for longer than GANG_BIND_LIMIT_MS, the bound ones are evicted.

Nothing is carried out here: every method returns actions, and the cycle carries each out before it takes the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from situate.core.effects import SetGroupCondition
from situate.core.engine.actions import (
    Activate,
    EndNomination,
    EvictPod,
    GangAction,
    Hold,
    Release,
    ReviewGang,
    StartAttempt,
)
from situate.core.engine.extender_interest import ExtenderInterest
from situate.core.engine.gang_attempt import GangAttempt, group_condition
from situate.core.engine.node_selection import NodeSelection
from situate.core.engine.state import EngineState
from situate.core.gang.members import Demands, Gang, GangStatus, demands_of, gang_status, group_of, why_held
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.group import PodGroup, is_scheduled
from situate.core.model.node import Node
from situate.core.model.refs import PodRef
from situate.core.queue.queued_pod import QueuedPod, QueueState

GANG_BIND_LIMIT_MS: Final = 5 * 60 * 1_000
"""How long fewer than minCount pods of a gang may stay bound after a bind failed. Then they are evicted."""
HOLD_REPORT_MS: Final = 5_000
"""The shortest time between two updates of the reason for which a gang is held."""
GANG_INCOMPLETE: Final = "GangIncomplete"
EXTENDERS: Final = "an extender filters or scores pods of gang {}, and extenders cannot be called for gangs"
GIVEN_UP: Final = "gang {} could not be bound whole in time"


class GangScheduling:
    def __init__(self, state: EngineState, selection: NodeSelection, interest: ExtenderInterest) -> None:
        self._state = state
        self._selection = selection
        self._interest = interest

    def _demands(self, gang: Gang) -> Demands:
        return demands_of(gang, self._state.cluster.objects)

    def _status(self, gang: Gang) -> GangStatus:
        return gang_status(gang, self._state.queue, self._state.cluster)

    # -- changes -------------------------------------------------------------------------------------------------

    def group_changed(self, item: object) -> None:
        if isinstance(item, PodGroup | CustomPodGroup):
            self._state.gangs.group_changed(item)

    def node_changed(self, before: Node | None, after: Node) -> Iterator[Activate]:
        """A gang that must keep to a domain waits for labels too, which no filter of its pods may wait for."""
        if before is None or before.metadata.labels == after.metadata.labels:
            return
        for gang in self._state.gangs.values():
            key = self._demands(gang).topology_key
            if key and before.metadata.labels.get(key) != after.metadata.labels.get(key):
                yield from self._activate_unschedulable(gang)

    # -- deciding ------------------------------------------------------------------------------------------------

    def decide(self, entry: QueuedPod) -> Iterable[GangAction] | None:
        """Decide on the whole gang of a pod; None if the pod can be decided by itself."""
        gang = self._state.gangs.of(entry.key)
        if gang is None:
            return None
        demands, status = self._demands(gang), self._status(gang)
        if not demands.min_count:
            return None
        if reason := self._why_held(gang, demands, status):
            return self._hold(gang, status, reason)
        needed = max(0, demands.min_count - len(status.placed))
        if not needed and not demands.topology_key:
            return None
        return self._attempt(gang, demands, status, needed)

    def _attempt(self, gang: Gang, demands: Demands, status: GangStatus, needed: int) -> Iterator[GangAction]:
        yield StartAttempt(status.waiting)
        yield from GangAttempt(self._state, self._selection, gang, demands, status, needed).run()

    # -- holding -------------------------------------------------------------------------------------------------

    def review(self) -> Iterator[GangAction]:
        """Look again at the gangs that something happened to: hold their pods, or let them go on."""
        for gang in self._state.gangs.changed():
            demands, status = self._demands(gang), self._status(gang)
            yield from self._watch(gang, demands, status)
            if gang.dissolving:
                status = self._status(gang)
            if reason := self._why_held(gang, demands, status):
                yield from self._hold(gang, status, reason)
            else:
                yield from self._let_go(gang, demands, status)

    def timer(self, gang_id: str) -> None:
        gang = self._state.gangs.by_id(gang_id)
        if gang is not None:
            self._state.gangs.touch(next(iter(gang.members)))

    def _why_held(self, gang: Gang, demands: Demands, status: GangStatus) -> str:
        if demands.min_count and any(self._interest.has_say(entry.kind) for entry in status.waiting):
            return EXTENDERS.format(gang.name)
        return why_held(gang, demands, status)

    def _hold(self, gang: Gang, status: GangStatus, reason: str) -> Iterator[GangAction]:
        """No pod of the gang is tried, and no node is held for it."""
        yield from [EndNomination(key) for key in gang.members]
        late = []
        for entry in status.waiting:
            if entry.state is not QueueState.GATED:
                yield Hold(entry)
            reported = gang.held_because.get(entry.key)
            if reported is None:
                yield from self._report_hold(gang, entry, reason)
            elif reported != reason:
                late.append(entry)
        if not late:
            return
        if gang.report_at_ms is None:
            gang.report_at_ms = self._state.now + HOLD_REPORT_MS
            yield ReviewGang(gang.name.id, HOLD_REPORT_MS)
        elif self._state.now >= gang.report_at_ms:
            gang.report_at_ms = None
            for entry in late:
                yield from self._report_hold(gang, entry, reason)

    def _report_hold(self, gang: Gang, entry: QueuedPod, reason: str) -> Iterator[GangAction]:
        yield from self._group_condition(gang, "False", "Unschedulable", reason)
        gang.held_because[entry.key] = reason
        yield Hold(entry, reason)

    def _let_go(self, gang: Gang, demands: Demands, status: GangStatus) -> Iterator[GangAction]:
        gang.held_because.clear()
        for entry in status.waiting:
            if entry.state is QueueState.GATED:
                yield Activate(entry)
        if gang.refused_as not in (None, (demands, len(status.placed))):
            yield from self._activate_unschedulable(gang)  # it was refused as something else than it is now

    def _activate_unschedulable(self, gang: Gang) -> Iterator[Activate]:
        gang.refused_as = None
        for entry in self._status(gang).waiting:
            if entry.state is QueueState.UNSCHEDULABLE:
                yield Activate(entry, at_once=False)

    # -- gangs that are bound in part ----------------------------------------------------------------------------

    def _watch(self, gang: Gang, demands: Demands, status: GangStatus) -> Iterator[GangAction]:
        """Keep fewer than minCount pods from holding room for long."""
        if not status.placed:
            gang.ours = gang.whole = gang.dissolving = False
            gang.deadline_ms = None
            return
        self._learn_from_group(gang, status)
        reservations, now = self._state.reservations, self._state.now
        done = sum(1 for key in status.placed if key not in reservations or reservations[key].done)
        if done >= demands.min_count and not gang.dissolving:
            gang.whole, gang.deadline_ms = True, None
            if demands.min_count:
                yield from self._group_condition(gang, "True", "Scheduled", "")
        if gang.ours and not gang.whole and gang.deadline_ms is None and len(status.placed) < demands.min_count:
            gang.deadline_ms = now + GANG_BIND_LIMIT_MS
            yield ReviewGang(gang.name.id, GANG_BIND_LIMIT_MS)
        if gang.deadline_ms is not None and now >= gang.deadline_ms:
            gang.dissolving = True
        if gang.dissolving:
            yield from self._dissolve(gang, status)

    def _learn_from_group(self, gang: Gang, status: GangStatus) -> None:
        """A restarted scheduler does not remember, but the PodGroup says whether the gang was ever whole.

        If it was not, its bound pods were bound by the scheduler of the pods that still wait: by us.
        """
        group = group_of(gang, self._state.cluster.objects)
        if is_scheduled(group):
            gang.whole = True
        elif isinstance(group, PodGroup) and status.waiting:
            scheduler = status.waiting[0].pod.spec.scheduler_name
            gang.ours = gang.ours or all(gang.members[key].spec.scheduler_name == scheduler for key in status.placed)

    def _group_condition(
        self, gang: Gang, status: Literal["True", "False"], reason: str, message: str
    ) -> Sequence[SetGroupCondition]:
        return group_condition(gang, self._state.cluster.objects, status, reason, message)

    def _dissolve(self, gang: Gang, status: GangStatus) -> Iterator[GangAction]:
        problem = GIVEN_UP.format(gang.name)
        for key in status.placed:
            reservation = self._state.reservations.get(key)
            if reservation is not None and reservation.asked:
                continue  # its bind may still succeed: the answer or the timeout brings us back here
            if reservation is not None and not reservation.done:
                yield Release(reservation, problem)
                continue
            uid = self._state.cluster.uid_of(key)
            if uid is not None:
                namespace, _, name = key.partition("/")
                ref = PodRef(namespace, name, uid)
                node = self._state.cluster.node_of(key)
                yield EvictPod(ref, node, ref, problem, ("Warning", GANG_INCOMPLETE, "Evicting", problem))
