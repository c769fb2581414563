"""Whatever happens to the queue, every waiting pod is in exactly one place, and comes out in its turn."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from builders import pod
from situate.core.changes import PodRef
from situate.core.queue.queue import PARKED_LIMIT_MS, SchedulingQueue
from situate.core.queue.waiting import Place, Waiting
from situate.core.state.cluster import Cluster

OUTSIDE = (Place.DECIDING, Place.RESERVED)
"""Taken out of the queue: only whoever took a pod out puts it back."""


class QueueMachine(RuleBasedStateMachine):
    """The queue beside a plain list of entries, each of which knows where it should be."""

    taken = Bundle("taken")

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster()
        self.queue = SchedulingQueue()
        self.now = 0
        self.made = 0
        self.model: dict[str, Waiting] = {}
        self.expected: dict[str, Place] = {}

    def put(self, entry: Waiting, place: Place) -> None:
        self.expected[entry.key] = place

    def in_place(self, *places: Place) -> list[Waiting]:
        return [entry for key, entry in self.model.items() if self.expected[key] in places]

    def rested(self, entry: Waiting) -> Place:
        return Place.READY if entry.retry_at_ms <= self.now else Place.RESTING

    @rule(ms=st.sampled_from([0, 1, 499, 1_000, 5_000, 10_000]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(priority=st.integers(0, 2), gated=st.booleans(), again=st.booleans())
    def a_pod_comes(self, priority: int, gated: bool, again: bool) -> None:
        name = f"p{self.made - 1 if again and self.made else self.made}"
        if f"default/{name}" in self.model:
            return
        self.made += 1
        made = pod(name, priority=priority)
        place = Place.GATED if gated else Place.READY
        ref = PodRef("default", name, f"uid{self.made}")
        entry = Waiting(ref, made, self.cluster.class_of(made), self.now, self.made, place)
        self.queue.add(entry)
        self.model[entry.key] = entry
        self.put(entry, place)

    @rule(target=taken)
    def one_is_popped(self) -> str | None:
        for entry in self.in_place(Place.RESTING):
            if entry.retry_at_ms <= self.now:
                self.put(entry, Place.READY)
        ready = sorted(self.in_place(Place.READY), key=lambda one: (-one.priority, one.since_ms, one.order))
        early = sorted(
            (one for one in self.in_place(Place.RESTING) if not one.errors),
            key=lambda one: (one.retry_at_ms, -one.priority, one.since_ms, one.order),
        )
        found = self.queue.pop(self.now)
        assert found is next(iter((*ready, *early)), None)
        if found is None:
            return None
        self.put(found, Place.DECIDING)
        return found.key

    def known(self, key: str | None) -> Waiting | None:
        """The pod that was popped, unless it has left or been put back since."""
        entry = self.model.get(key or "")
        return entry if entry is not None and self.expected[entry.key] in OUTSIDE else None

    @rule(key=consumes(taken), by=st.sampled_from([(), ("NodePorts",), ("NodeAffinity", "NodePorts")]))
    def it_is_refused(self, key: str | None, by: tuple[str, ...]) -> None:
        if (entry := self.known(key)) is not None:
            entry.refusals, entry.errors, entry.refused_by = entry.refusals + 1, 0, by
            self.queue.park(entry, self.now)
            self.put(entry, Place.PARKED)

    @rule(key=consumes(taken))
    def it_fails(self, key: str | None) -> None:
        if (entry := self.known(key)) is not None:
            entry.errors += 1
            self.queue.rest(entry, self.now)
            self.put(entry, self.rested(entry))

    @rule(key=taken)
    def it_is_reserved(self, key: str | None) -> None:
        if (entry := self.known(key)) is not None:
            self.queue.take(entry, Place.RESERVED)
            self.put(entry, Place.RESERVED)

    @rule(data=st.data(), at_once=st.booleans())
    def a_parked_pod_is_woken(self, data: st.DataObject, at_once: bool) -> None:
        if parked := self.in_place(Place.PARKED):
            entry = data.draw(st.sampled_from(parked))
            self.queue.wake(entry, self.now, at_once=at_once)
            self.put(entry, self.rested(entry))

    @rule(data=st.data())
    def a_class_is_woken(self, data: st.DataObject) -> None:
        if shelves := self.queue.parked_by_refusal():
            shelf = data.draw(st.sampled_from(shelves))
            kind = data.draw(st.sampled_from(list(shelf.pods)))
            woken = [one for one in self.in_place(Place.PARKED) if one.kind is kind and one.refused_by == shelf.by]
            assert woken
            self.queue.wake_class(shelf, kind, self.now)
            for entry in woken:
                self.put(entry, self.rested(entry))

    @rule(data=st.data(), worth=st.booleans(), priority=st.integers(0, 2))
    def a_pod_changes(self, data: st.DataObject, worth: bool, priority: int) -> None:
        if inside := self.in_place(Place.READY, Place.PARKED):
            entry = data.draw(st.sampled_from(inside))
            entry.kind = self.cluster.class_of(pod(entry.ref.name, priority=priority))
            self.queue.changed(entry, self.now, worth=worth)
            if worth and self.expected[entry.key] is Place.PARKED:
                self.put(entry, self.rested(entry))

    @rule(data=st.data())
    def gates_come_and_go(self, data: st.DataObject) -> None:
        if inside := self.in_place(Place.READY, Place.PARKED, Place.GATED):
            entry = data.draw(st.sampled_from(inside))
            if self.expected[entry.key] is Place.GATED:
                self.queue.wake(entry, self.now, at_once=True)
                self.put(entry, Place.READY)
            else:
                self.queue.gate(entry)
                self.put(entry, Place.GATED)

    @rule(data=st.data())
    def a_pod_leaves(self, data: st.DataObject) -> None:
        if self.model:
            key = data.draw(st.sampled_from(list(self.model)))
            assert self.queue.remove(key) is self.model.pop(key)
            del self.expected[key]

    @rule(late=st.booleans())
    def the_flush_is_due(self, late: bool) -> None:
        self.now += PARKED_LIMIT_MS + 30_000 if late else 30_000
        old = [one for one in self.in_place(Place.PARKED) if self.now - one.parked_at_ms >= PARKED_LIMIT_MS]
        before = self.queue.flushed
        assert self.queue.flush(self.now) == len(old)
        assert self.queue.flushed == before + len(old)
        for entry in old:
            self.put(entry, self.rested(entry))

    @invariant()
    def every_pod_is_where_it_should_be_and_nowhere_else(self) -> None:
        assert {entry.key: entry for entry in self.queue.values()} == self.model
        for key, entry in self.model.items():
            # A rest that is over ends when somebody next looks.
            assert entry.place is self.expected[key], f"{key} is {entry.place}"
        assert sorted(one.key for one in self.queue.parked()) == sorted(one.key for one in self.in_place(Place.PARKED))
        shelved = [
            (key, kind, shelf.by)
            for shelf in self.queue.parked_by_refusal()
            for kind, alike in shelf.pods.items()
            for key in alike
        ]
        parked = [(one.key, one.kind, one.refused_by) for one in self.in_place(Place.PARKED)]
        assert sorted(shelved, key=lambda one: one[0]) == sorted(parked, key=lambda one: one[0])
        assert sum(self.queue.counts().values()) == len(self.queue) == len(self.model)

    @invariant()
    def somebody_will_look_again_while_a_pod_can_still_come(self) -> None:
        due = self.queue.next_due_ms(self.now)
        if self.in_place(Place.READY):
            assert due == self.now
        elif self.in_place(Place.RESTING, Place.PARKED):
            assert due is not None
        else:
            assert due is None


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
