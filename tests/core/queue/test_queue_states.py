"""Whatever happens to the queue, every waiting pod is in exactly one state, and comes out in its turn."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from builders import pod
from situate.core.changes import PodRef
from situate.core.queue.queue import UNSCHEDULABLE_LIMIT_MS, SchedulingQueue
from situate.core.queue.queued_pod import QueuedPod, QueueState
from situate.core.state.cluster import Cluster

OUTSIDE = (QueueState.IN_FLIGHT, QueueState.RESERVED)
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
        self.model: dict[str, QueuedPod] = {}
        self.expected: dict[str, QueueState] = {}

    def put(self, entry: QueuedPod, state: QueueState) -> None:
        self.expected[entry.key] = state

    def in_place(self, *places: QueueState) -> list[QueuedPod]:
        return [entry for key, entry in self.model.items() if self.expected[key] in places]

    def rested(self, entry: QueuedPod) -> QueueState:
        return QueueState.ACTIVE if entry.retry_at_ms <= self.now else QueueState.BACKOFF

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
        state = QueueState.GATED if gated else QueueState.ACTIVE
        ref = PodRef("default", name, f"uid{self.made}")
        entry = QueuedPod(ref, made, self.cluster.class_of(made), self.now, self.made, state)
        self.queue.add(entry)
        self.model[entry.key] = entry
        self.put(entry, state)

    @rule(target=taken)
    def one_is_popped(self) -> str | None:
        for entry in self.in_place(QueueState.BACKOFF):
            if entry.retry_at_ms <= self.now:
                self.put(entry, QueueState.ACTIVE)
        ready = sorted(self.in_place(QueueState.ACTIVE), key=lambda one: (-one.priority, one.since_ms, one.order))
        early = sorted(
            (one for one in self.in_place(QueueState.BACKOFF) if not one.errors),
            key=lambda one: (one.retry_at_ms, -one.priority, one.since_ms, one.order),
        )
        found = self.queue.pop(self.now)
        assert found is next(iter((*ready, *early)), None)
        if found is None:
            return None
        self.put(found, QueueState.IN_FLIGHT)
        return found.key

    def known(self, key: str | None) -> QueuedPod | None:
        """The pod that was popped, unless it has left or been put back since."""
        entry = self.model.get(key or "")
        return entry if entry is not None and self.expected[entry.key] in OUTSIDE else None

    @rule(key=consumes(taken), by=st.sampled_from([(), ("NodePorts",), ("NodeAffinity", "NodePorts")]))
    def it_is_refused(self, key: str | None, by: tuple[str, ...]) -> None:
        if (entry := self.known(key)) is not None:
            entry.refusals, entry.errors, entry.unschedulable_plugins = entry.refusals + 1, 0, by
            self.queue.add_unschedulable(entry, self.now)
            self.put(entry, QueueState.UNSCHEDULABLE)

    @rule(key=consumes(taken))
    def it_fails(self, key: str | None) -> None:
        if (entry := self.known(key)) is not None:
            entry.errors += 1
            self.queue.back_off(entry, self.now)
            self.put(entry, self.rested(entry))

    @rule(key=taken)
    def it_is_reserved(self, key: str | None) -> None:
        if (entry := self.known(key)) is not None:
            self.queue.take(entry, QueueState.RESERVED)
            self.put(entry, QueueState.RESERVED)

    @rule(data=st.data(), at_once=st.booleans())
    def a_parked_pod_is_woken(self, data: st.DataObject, at_once: bool) -> None:
        if parked := self.in_place(QueueState.UNSCHEDULABLE):
            entry = data.draw(st.sampled_from(parked))
            self.queue.wake(entry, self.now, at_once=at_once)
            self.put(entry, self.rested(entry))

    @rule(data=st.data())
    def a_class_is_woken(self, data: st.DataObject) -> None:
        if shelves := self.queue.rejected_pods():
            shelf = data.draw(st.sampled_from(shelves))
            kind = data.draw(st.sampled_from(list(shelf.pods)))
            woken = [
                one
                for one in self.in_place(QueueState.UNSCHEDULABLE)
                if one.kind is kind and one.unschedulable_plugins == shelf.by
            ]
            assert woken
            self.queue.wake_class(shelf, kind, self.now)
            for entry in woken:
                self.put(entry, self.rested(entry))

    @rule(data=st.data(), worth=st.booleans(), priority=st.integers(0, 2))
    def a_pod_changes(self, data: st.DataObject, worth: bool, priority: int) -> None:
        if inside := self.in_place(QueueState.ACTIVE, QueueState.UNSCHEDULABLE):
            entry = data.draw(st.sampled_from(inside))
            entry.kind = self.cluster.class_of(pod(entry.ref.name, priority=priority))
            self.queue.changed(entry, self.now, worth=worth)
            if worth and self.expected[entry.key] is QueueState.UNSCHEDULABLE:
                self.put(entry, self.rested(entry))

    @rule(data=st.data())
    def gates_come_and_go(self, data: st.DataObject) -> None:
        if inside := self.in_place(QueueState.ACTIVE, QueueState.UNSCHEDULABLE, QueueState.GATED):
            entry = data.draw(st.sampled_from(inside))
            if self.expected[entry.key] is QueueState.GATED:
                self.queue.wake(entry, self.now, at_once=True)
                self.put(entry, QueueState.ACTIVE)
            else:
                self.queue.gate(entry)
                self.put(entry, QueueState.GATED)

    @rule(data=st.data())
    def a_pod_leaves(self, data: st.DataObject) -> None:
        if self.model:
            key = data.draw(st.sampled_from(list(self.model)))
            assert self.queue.remove(key) is self.model.pop(key)
            del self.expected[key]

    @rule(late=st.booleans())
    def the_flush_is_due(self, late: bool) -> None:
        self.now += UNSCHEDULABLE_LIMIT_MS + 30_000 if late else 30_000
        old = [
            one
            for one in self.in_place(QueueState.UNSCHEDULABLE)
            if self.now - one.unschedulable_since_ms >= UNSCHEDULABLE_LIMIT_MS
        ]
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
            assert entry.state is self.expected[key], f"{key} is {entry.state}"
        assert sorted(one.key for one in self.queue.unschedulable()) == sorted(
            one.key for one in self.in_place(QueueState.UNSCHEDULABLE)
        )
        shelved = [
            (key, kind, shelf.by)
            for shelf in self.queue.rejected_pods()
            for kind, alike in shelf.pods.items()
            for key in alike
        ]
        parked = [(one.key, one.kind, one.unschedulable_plugins) for one in self.in_place(QueueState.UNSCHEDULABLE)]
        assert sorted(shelved, key=lambda one: one[0]) == sorted(parked, key=lambda one: one[0])
        assert sum(self.queue.counts().values()) == len(self.queue) == len(self.model)

    @invariant()
    def somebody_will_look_again_while_a_pod_can_still_come(self) -> None:
        due = self.queue.next_due_ms(self.now)
        if self.in_place(QueueState.ACTIVE):
            assert due == self.now
        elif self.in_place(QueueState.BACKOFF, QueueState.UNSCHEDULABLE):
            assert due is not None
        else:
            assert due is None


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
