"""Gangs in the engine: who is held back until the gang is here, and how all of it is placed, preempted for or parked.

The rules:
- While fewer pods than minCount are here, none is tried; each is told what it waits for.
- When the turn of one comes, all that wait are planned together. If as many fit as are needed, they are all reserved in
  one step; if not, nobody is.
- What is bound of a gang that cannot be bound whole is given up after a while: GANG_BIND_LIMIT_MS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from situate.core.engine.framework import Framework
from situate.core.gang.explain import PREEMPTING, Explained, explain, no_domain, no_placement, several_domains
from situate.core.gang.members import Demands, Gang, Gangs, GangStatus, demands_of, gang_status, group_of, why_held
from situate.core.gang.plan import Member, Plan, Planner, plan_enough
from situate.core.gang.preemption import make_room_somewhere
from situate.core.gang.topology import Domain, domains, plan_in_one, taken
from situate.core.model.group import CoschedulingPodGroup, PodGroup, is_scheduled
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.refs import PodRef
from situate.core.place.selecting import NOWHERE
from situate.core.plugins.support.errors import PluginError
from situate.core.plugins.volume_binding import NO_VOLUMES_TO_BIND
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.classes import PodClass
from situate.core.state.pods import BoundPod
from situate.core.state.view import View

if TYPE_CHECKING:
    from situate.core.engine.cycle import Cycle

GANG_BIND_LIMIT_MS: Final = 5 * 60 * 1_000
"""How long less than minCount of a gang may stay bound after a bind failed. Then its pods are evicted."""
TELL_EVERY_MS: Final = 5_000
"""How often at most the pods of a gang that is held back are told that it now waits for something else."""
REPLANS: Final = 32
"""How often a gang is planned anew in one attempt because two of its pods would get the same volume."""
NO_VOLUMES_FOR_ALL: Final = "no nodes were found where each pod of gang {} gets volumes of its own"
WAITING_FOR_GANG: Final = "WaitingForGang"
GANG_INCOMPLETE: Final = "GangIncomplete"
EXTENDERS: Final = "an extender has a say on pods of gang {}, and extenders cannot be asked about gangs"
GIVEN_UP: Final = "gang {} could not be bound whole in time"


class GangScheduling:
    """All gangs of one engine."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self.gangs = Gangs()

    # -- hearing -------------------------------------------------------------------------------------------------

    def pod_seen(self, pod: Pod) -> None:
        self.gangs.note(pod)

    def pod_gone(self, key: str) -> None:
        self.gangs.drop(key)

    def touch(self, key: str) -> None:
        """Something became of a pod's reservation."""
        self.gangs.touch(key)

    def group_changed(self, item: object) -> None:
        if isinstance(item, PodGroup | CoschedulingPodGroup):
            self.gangs.group_changed(item)

    def node_changed(self, before: Node | None, after: Node) -> None:
        """A gang that must keep to a domain waits for labels too, which no filter of its pods may wait for."""
        if before is None or before.metadata.labels == after.metadata.labels:
            return
        for gang in self.gangs.values():
            key = self._demands(gang).topology_key
            if key and before.metadata.labels.get(key) != after.metadata.labels.get(key):
                self._wake_parked(gang)

    def mates(self, key: str) -> list[str]:
        """Whose promises end with this pod's: those of its gang, while that is not placed."""
        gang = self.gangs.of(key)
        if gang is None or len(self._roll(gang).placed) >= self._demands(gang).min_count:
            return [key]
        return list(gang.members)

    def _demands(self, gang: Gang) -> Demands:
        return demands_of(gang, self._cycle.cluster.objects)

    def _roll(self, gang: Gang) -> GangStatus:
        return gang_status(gang, self._cycle.queue, self._cycle.cluster)

    # -- holding back --------------------------------------------------------------------------------------------

    def review(self) -> None:
        """Look again at the gangs to which something happened: hold their pods back, or let them go on."""
        for gang in self.gangs.changed():
            demands, roll = self._demands(gang), self._roll(gang)
            if self._watch(gang, demands, roll):
                roll = self._roll(gang)
            if reason := self._why_held(gang, demands, roll):
                self._hold(gang, roll, reason)
            else:
                self._let_go(gang, demands, roll)

    def timer(self, gang_id: str) -> None:
        gang = self.gangs.by_id(gang_id)
        if gang is not None:
            self.gangs.touch(next(iter(gang.members)))

    def _why_held(self, gang: Gang, demands: Demands, roll: GangStatus) -> str:
        if demands.min_count and any(self._cycle.asks_extenders(entry.kind) for entry in roll.waiting):
            return EXTENDERS.format(gang.name)
        return why_held(gang, demands, roll)

    def _hold(self, gang: Gang, roll: GangStatus, reason: str) -> None:
        """Nobody of the gang is tried, and nothing is held for it."""
        for key in gang.members:
            self._cycle.withdraw_one(key)
        late = []
        for entry in roll.waiting:
            if entry.state is not QueueState.GATED:
                self._cycle.queue.gate(entry)
            said = gang.told.get(entry.key)
            if said is None:
                self._tell_held(gang, entry, reason)
            elif said != reason:
                late.append(entry)
        if not late:
            return
        now = self._cycle.now
        if gang.tell_at_ms is None:
            gang.tell_at_ms = now + TELL_EVERY_MS
            self._cycle.remind(TELL_EVERY_MS, gang.name.id)
        elif now >= gang.tell_at_ms:
            gang.tell_at_ms = None
            for entry in late:
                self._tell_held(gang, entry, reason)

    def _tell_held(self, gang: Gang, entry: QueuedPod, reason: str) -> None:
        self.tell_group(gang, "False", "Unschedulable", reason)
        gang.told[entry.key] = entry.message = reason
        self._cycle.tell(entry, WAITING_FOR_GANG, "Normal", WAITING_FOR_GANG, reason)

    def _let_go(self, gang: Gang, demands: Demands, roll: GangStatus) -> None:
        gang.told.clear()
        for entry in roll.waiting:
            if entry.state is QueueState.GATED:
                self._cycle.queue.wake(entry, self._cycle.now, at_once=True)
        if gang.parked_with not in (None, (demands, len(roll.placed))):
            self._wake_parked(gang)  # it was refused as something else than it is now

    def _wake_parked(self, gang: Gang) -> None:
        gang.parked_with = None
        for entry in self._roll(gang).waiting:
            if entry.state is QueueState.UNSCHEDULABLE:
                self._cycle.queue.wake(entry, self._cycle.now)

    # -- bound by halves -----------------------------------------------------------------------------------------

    def _watch(self, gang: Gang, demands: Demands, roll: GangStatus) -> bool:
        """Keep less than minCount from holding room for long; whether anybody was released."""
        if not roll.placed:
            gang.ours = gang.whole = gang.dissolving = False
            gang.deadline_ms = None
            return False
        self._learn_from_group(gang, roll)
        reservations = self._cycle.reservations
        done = sum(1 for key in roll.placed if key not in reservations or reservations[key].done)
        if done >= demands.min_count and not gang.dissolving:
            gang.whole, gang.deadline_ms = True, None
            if demands.min_count:
                self.tell_group(gang, "True", "Scheduled", "")
        if gang.ours and not gang.whole and gang.deadline_ms is None and len(roll.placed) < demands.min_count:
            gang.deadline_ms = self._cycle.now + GANG_BIND_LIMIT_MS
            self._cycle.remind(GANG_BIND_LIMIT_MS, gang.name.id)
        if gang.deadline_ms is not None and self._cycle.now >= gang.deadline_ms:
            gang.dissolving = True
        if gang.dissolving:
            self._dissolve(gang, roll)
        return gang.dissolving

    def _learn_from_group(self, gang: Gang, roll: GangStatus) -> None:
        """A scheduler that was started anew does not remember; the PodGroup says whether the gang was ever whole.

        If it was not, what is bound of it is the work of whoever schedules the pods that still wait: of ourselves.
        """
        group = group_of(gang, self._cycle.cluster.objects)
        if is_scheduled(group):
            gang.whole = True
        elif isinstance(group, PodGroup) and roll.waiting:
            scheduler = roll.waiting[0].pod.spec.scheduler_name
            gang.ours = gang.ours or all(gang.members[key].spec.scheduler_name == scheduler for key in roll.placed)

    def tell_group(self, gang: Gang, status: Literal["True", "False"], reason: str, message: str) -> None:
        """Set the condition of a gang's PodGroup, once; a gang that was whole is never called unscheduled again."""
        group = group_of(gang, self._cycle.cluster.objects)
        if not isinstance(group, PodGroup) or gang.said == (status, reason, message) or is_scheduled(group):
            return
        gang.said = status, reason, message
        self._cycle.tell_group(gang.name.namespace, gang.name.name, status, reason, message)

    def _dissolve(self, gang: Gang, roll: GangStatus) -> None:
        """Give up what is reserved, and evict who is bound."""
        problem = GIVEN_UP.format(gang.name)
        for key in roll.placed:
            reservation = self._cycle.reservations.get(key)
            if reservation is not None and reservation.asked:
                continue  # its bind may still be carried out: its answer, or the want of one, brings us back here
            if reservation is not None and not reservation.done:
                self._cycle.release(reservation)
                self._cycle.failed(reservation.entry, problem)
                continue
            uid = self._cycle.cluster.uid_of(key)
            if uid is not None:
                namespace, _, name = key.partition("/")
                ref = PodRef(namespace, name, uid)
                node = self._cycle.cluster.node_of(key)
                self._cycle.evict(ref, node, ref, problem, ("Warning", GANG_INCOMPLETE, "Evicting", problem))

    # -- deciding ------------------------------------------------------------------------------------------------

    def decides(self, entry: QueuedPod) -> bool:
        """Decide about the whole gang of a pod whose turn has come; False if the pod can be decided by itself."""
        gang = self.gangs.of(entry.key)
        if gang is None:
            return False
        demands, roll = self._demands(gang), self._roll(gang)
        if not demands.min_count:
            return False
        if reason := self._why_held(gang, demands, roll):
            self._hold(gang, roll, reason)
            return True
        needed = max(0, demands.min_count - len(roll.placed))
        if not needed and not demands.topology_key:
            return False
        for one in roll.waiting:
            one.attempts += 1
            self._cycle.queue.take(one, QueueState.IN_FLIGHT)
        self._cycle.count_attempts(entry.pod.spec.scheduler_name, len(roll.waiting))
        try:
            _Attempt(self._cycle, self, gang, demands, roll, needed).run()
        except PluginError as error:
            for one in roll.waiting:
                self._cycle.failed(one, str(error))
        return True

    # -- as victims ----------------------------------------------------------------------------------------------

    def with_it(self, victim: BoundPod, priority: int) -> Sequence[BoundPod] | None:
        """All who must leave if a victim does. A gang that goes as a whole is worth as much as its best pod."""
        gang = self.gangs.of(victim.key)
        if gang is None or not self._demands(gang).disrupted_whole:
            return (victim,)
        pods = self._cycle.cluster.pods
        going = [pods.bound(pods.rows[key]) for key in gang.members if key in pods.rows]
        return None if any(pod.kind.priority >= priority for pod in going) else going

    def all_going(self, victims: Sequence[BoundPod], priority: int) -> list[BoundPod] | None:
        """The victims and all who go with them and are not leaving yet; None if one of those must not go."""
        found: dict[int, BoundPod] = {}
        for victim in victims:
            going = self.with_it(victim, priority)
            if going is None:
                return None
            found.update((pod.row, pod) for pod in going if not pod.leaving)
        return list(found.values())


class _Attempt:
    """One attempt at placing a gang."""

    def __init__(
        self, cycle: Cycle, ganging: GangScheduling, gang: Gang, demands: Demands, roll: GangStatus, needed: int
    ) -> None:
        self._cycle = cycle
        self._ganging = ganging
        self._gang = gang
        self._demands = demands
        self._roll = roll
        self._needed = needed
        self._least = max(1, needed)
        """A plan for nobody is none, even if nobody is needed."""
        self._entries = roll.waiting
        self._deciding: Framework = cycle.framework_of(self._entries[0])
        self._members = tuple(Member(entry.key, entry.kind, self._nominated(entry)) for entry in self._entries)
        self._planner = Planner(self._deciding.profile, cycle.cluster, self._beside())
        self._replans = 0

    def _nominated(self, entry: QueuedPod) -> int:
        nominated = self._cycle.nominations.get(entry.key)
        return NOWHERE if nominated is None else self._cycle.cluster.nodes.rows.get(nominated.node, NOWHERE)

    def _beside(self) -> list[tuple[PodClass, int]]:
        """The pods of others that were promised a node and that the least of the gang does not outrank."""
        least = min(entry.priority for entry in self._entries)
        rows = self._cycle.cluster.nodes.rows
        return [
            (one.kind, rows[one.node])
            for one in self._cycle.nominations.values()
            if one.kind.priority >= least and one.ref.key not in self._gang.members and one.node in rows
        ]

    def run(self) -> None:
        if not self._demands.topology_key:
            self._run_anywhere()
            return
        view = View(self._cycle.cluster)
        found = domains(view, self._demands.topology_key)
        nodes = [self._cycle.cluster.node_of(key) for key in self._roll.placed]
        where = taken(view, self._demands.topology_key, nodes)
        if len(where) > 1:
            self._park(Explained(several_domains(where), ()))
            return
        if where:
            found = [domain for domain in found if domain.value == where[0]]
        self._run_within(found)

    def _run_anywhere(self) -> None:
        found, trial = plan_enough(self._planner, self._members, self._least)
        if found.count >= self._least:
            self._reserve(found)
            return
        self._no_plan([None], explain(trial, self._members, found, self._needed))

    def _run_within(self, within: Sequence[Domain]) -> None:
        if not within:
            self._park(Explained(no_domain(self._demands.topology_key), ()))
            return
        best = plan_in_one(self._planner, self._members, self._least, within)
        if best is not None:
            self._reserve(best)
            return
        found, trial = plan_enough(self._planner, self._members, self._least, within[0].rows)
        first = explain(trial, self._members, found, self._needed, within[0])
        text = no_placement(len(within), first.text)
        # What the other domains lack was not asked: if there are any, whatever changes may help.
        unschedulable_plugins = first.unschedulable_plugins if len(within) == 1 else ()
        self._no_plan(within, replace(first, text=text, unschedulable_plugins=unschedulable_plugins))

    def _reserve(self, found: Plan) -> None:
        """Count all planned pods on their nodes, and ask for their binds. Who has no node has its turn by itself."""
        if (lacking := self._lacks_volumes(found)) is not None:
            self._plan_otherwise(*lacking)
            return
        self._gang.ours = True
        self._gang.parked_with = None
        for at, (entry, row) in enumerate(zip(self._entries, found.rows, strict=True)):
            if row != NOWHERE:
                self._cycle.reserve(entry, row, found.said[at] if found.said else None)
        for entry, row in zip(self._entries, found.rows, strict=True):
            if row == NOWHERE:
                self._cycle.queue.wake(entry, self._cycle.now, at_once=True)

    def _lacks_volumes(self, found: Plan) -> tuple[int, int] | None:
        """The first member that would get no volumes at its planned row once those before it have theirs."""
        assumed, short = self._cycle.assumed, None
        taking = [(at, row) for at, row in enumerate(found.rows) if self._entries[at].kind.holds_volumes]
        for at, row in taking:
            volumes = self._cycle.volumes_at(self._entries[at], row) if row != NOWHERE else NO_VOLUMES_TO_BIND
            if volumes is None:
                short = at, row
                break
            assumed.take(self._entries[at].key, volumes.bindings)
        for at, _ in taking:
            for _, _ in assumed.give_back(self._entries[at].key):
                pass
        return short

    def _plan_otherwise(self, at: int, row: int) -> None:
        """Plan again without the node where a member's volumes would go to another; a limited number of times."""
        self._replans += 1
        if self._replans > REPLANS:
            self._park(self._no_volumes_for_all())
            return
        member = self._members[at]
        barred = replace(member, nominated=NOWHERE, barred=(*member.barred, row))
        self._members = (*self._members[:at], barred, *self._members[at + 1 :])
        self.run()

    def _no_volumes_for_all(self) -> Explained:
        """Which change would help is not known: any may."""
        return Explained(NO_VOLUMES_FOR_ALL.format(self._gang.name), ())

    # -- no plan -------------------------------------------------------------------------------------------------

    def _no_plan(self, within: Sequence[Domain | None], why: Explained) -> None:
        if why.failure:
            self._ganging.tell_group(self._gang, "False", "SchedulerError", why.failure)
            for entry in self._entries:
                self._cycle.failed(entry, why.failure)
            return
        if any(member.barred for member in self._members):
            self._park(self._no_volumes_for_all())
            return
        if len(self._planner.draft.moves):
            why = replace(why, unschedulable_plugins=())  # nodes are held for others: who knows what ends that
        if self._victims_are_leaving():
            self._park(replace(why, text=f"{why.text} {PREEMPTING}"), keep_promises=True)
            return
        if not self._needed:
            self._park(why)
            return
        options = self._deciding.preemption
        self._cycle.metrics.preemptions += 1
        made = make_room_somewhere(self._planner, self._members, self._needed, options, self._with_it, within)
        if isinstance(made, Plan):
            self._preempt(made)
            self._park(replace(why, text=f"{why.text} {PREEMPTING}"), keep_promises=True)
            return
        self._park(replace(why, text=f"{why.text} {made}" if made else why.text))

    def _with_it(self, victim: BoundPod, priority: int) -> Sequence[BoundPod] | None:
        return None if victim.key in self._gang.members else self._ganging.with_it(victim, priority)

    def _victims_are_leaving(self) -> bool:
        """Whether room is being made for this gang already."""
        members = self._gang.members
        if any(eviction.preemptor.key in members for eviction in self._cycle.evictions.values()):
            return True
        view = View(self._cycle.cluster)
        return any(
            pod.preempted and pod.kind.priority < member.kind.priority
            for member in self._members
            if member.nominated != NOWHERE
            for pod in view.pods_on(member.nominated)
        )

    def _preempt(self, found: Plan) -> None:
        """Promise every planned pod its node, and ask the victims to leave, each once."""
        names = self._cycle.cluster.nodes.names
        by: dict[int, QueuedPod] = {}
        for entry, row in zip(self._entries, found.rows, strict=True):
            if row == NOWHERE:
                self._cycle.withdraw_one(entry.key)
            else:
                self._cycle.promise(entry, names[row])
                by.setdefault(row, entry)
        scheduler = self._entries[0].pod.spec.scheduler_name
        message = f"{scheduler}: preempting to accommodate a higher priority podgroup"
        self._cycle.metrics.victims.append(len(found.victims))
        for victim in found.victims:
            node = names[victim.node_row]
            entry = by.get(victim.node_row, self._entries[0])
            ref = PodRef(victim.namespace, victim.name, victim.uid)
            note = f"Preempted by podgroup {self._gang.name} on node {node}"
            self._cycle.evict(ref, node, entry.ref, message, ("Normal", "Preempted", "Preempting", note))

    def _park(self, why: Explained, *, keep_promises: bool = False) -> None:
        """Tell every pod of the gang the same reason, and wait for something that may help any of them."""
        self._gang.parked_with = (self._demands, len(self._roll.placed))
        self._ganging.tell_group(self._gang, "False", "Unschedulable", why.text)
        for entry in self._entries:
            if not keep_promises:
                self._cycle.withdraw_one(entry.key)
            entry.refusals += 1
            entry.errors = 0
            entry.unschedulable_plugins = why.unschedulable_plugins
            entry.message = why.text
            self._cycle.tell(entry, "Unschedulable", "Warning", "FailedScheduling", why.text)
            self._cycle.queue.add_unschedulable(entry, self._cycle.now)
