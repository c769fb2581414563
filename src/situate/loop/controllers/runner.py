"""Calls controllers and performs their effects.

- It never calls the controller of one object twice at once, nor before it has seen what that controller wrote last: the
  controller would ask for the same again.
- It retries a controller whose effects were refused, with exponential backoff (RETRY_FIRST_MS to RETRY_LAST_MS).
- An exception about one object, whatever it is, stays with that object: it is logged, counted, shown as an event on the
  object, and retried in the same way. Everything else goes on.
- Namespaces take turns, with calls and with effects: one that wants two billion pods delays the others by a few writes.
- Calls that take long are followed by a rest (rests.py), and few events are recorded about one object (event_limit.py).
- It has no state to lose: a new runner calls every controller once.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, assert_never

from situate.core.model.managed import ManagedNamespace
from situate.core.model.managed_node import ManagedNode
from situate.core.model.refs import Millis
from situate.core.reconcile.drift import PERIOD_MS as DRIFT_MS
from situate.core.reconcile.drift import move_drifted
from situate.core.reconcile.effects import (
    Effect,
    ObjectRef,
    ReconcileError,
    ReconcileResult,
    RecordEvent,
    batches,
    refusal,
)
from situate.core.reconcile.garbage import collect
from situate.core.reconcile.namespace import namespace
from situate.core.reconcile.nodes.cleanup import clean_up
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.objects import KINDS, ref_of
from situate.core.reconcile.table import CONTROLLERS, reconcile
from situate.loop.controllers.absence import confirm_absence
from situate.loop.controllers.cache import (
    Collect,
    ControllerCache,
    Empty,
    Reconcile,
    ServedKind,
    Survey,
    Task,
    UnreadableError,
    namespace_of,
)
from situate.loop.controllers.event_limit import EventLimit
from situate.loop.controllers.metrics import ControllerMetrics
from situate.loop.controllers.performing import EffectPerformer
from situate.loop.controllers.port import BatchingPort, ControllerPort, RefusedError, WriteResult
from situate.loop.controllers.rests import Rests
from situate.loop.controllers.surveys import survey_zones
from situate.loop.controllers.time_zones import utc_offset
from situate.loop.drive import describe_error
from situate.loop.fair_queue import FairQueue
from situate.loop.logs import Log

WORKERS: Final = 64
"""How many controllers run at once. One of a namespace in which none runs may always start."""
PER_NAMESPACE: Final = 16
"""How many of them may be about objects of one namespace."""
RETRY_FIRST_MS: Final = 20
RETRY_LAST_MS: Final = 60_000
SEEN_S: Final = 30.0
"""How long to wait until we see what was written. After that the informer must be behind, and the controller is called:
names and versions make the API refuse what it asks for twice."""
AT_ONCE: Final = 128
"""How many effects of one call may be in flight at once."""
TOGETHER_MS: Final = 100
"""Changes of nodes within this time cause one survey of all nodes."""
AWAKE_S: Final = 1.0
ASLEEP_MS: Final = 5_000
"""A runner that did not run for so long was asleep: suspended, swapped out, or busy. Meanwhile it saw no renewals, and
agents perhaps could not renew."""
HINDERED_MS: Final = 2_000
"""The longest wait of a controller for an unreadable object, which may be deleted or repaired at any time."""
SLOW_S: Final = 1.0
"""A call that takes longer is logged, because it blocks the process."""
LONGEST_WAIT_S: Final = 3_600.0
"""The longest wait before the runner checks again what is due."""
DRIFT: Final = Survey("drift")
FAILED: Final = "FailedReconcile"
"""The reason of the event about an object whose controller failed."""
EVENT_TEXT: Final = 1_024
"""The longest message of such an event."""

_log = Log(__name__)


class Runner:
    """Pass it what is seen; `run` it once everything was listed."""

    def __init__(
        self,
        served: Sequence[ServedKind],
        port: ControllerPort,
        clock: Callable[[], Millis],
        profile: NodeProfile | None = None,
        metrics: ControllerMetrics | None = None,
        hindrance: Callable[[ControllerCache, Task], str] = lambda _view, _task: "",
        *,
        moves_drifted: bool = False,
        batching: BatchingPort | None = None,
    ) -> None:
        """Without a profile, nodes are not monitored; with one, pass their leases, too. `hindrance` returns why
        a controller must not be called now; the runner asks again later. `moves_drifted`: evict pods that no longer fit
        or match their node. `batching`: the port, if it creates several objects at once."""
        self.view = ControllerCache(served, profile, reads_demands=moves_drifted)
        self._moves_drifted = moves_drifted
        self.metrics = metrics or ControllerMetrics()
        self.calls = 0
        self.refused = 0
        self._port = port
        self._hindrance = hindrance
        self._clock = clock
        self._due: list[tuple[Millis, int, Task]] = []
        self._waiting: dict[Task, Millis] = {}
        self._ready: FairQueue[tuple[Millis, Task]] = FairQueue()
        """What is due, by namespace."""
        self._busy: dict[Task, bool] = {}
        """Running; True: to be called again."""
        self._running_in: dict[str, int] = {}
        """How many run, by namespace."""
        self._performer = EffectPerformer(port, batching)
        self._events = EventLimit()
        self._rests = Rests()
        self._failures: dict[Task, int] = {}
        self._refusals: dict[Task, str] = {}
        self._count = 0
        self._told = asyncio.Event()
        self._moved: asyncio.Event | None = None  # set by the next change; None while nobody waits for one
        self._running = False
        self._awake_at: Millis = 0

    def seen(self, served: ServedKind, body: bytes, space: str = "", name: str = "") -> None:
        """An object was added or changed. Its namespace and name are for the log, if the body does not have them."""
        try:
            tasks = self.view.put(served, body, self._clock())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is about this object
            self._report(ObjectRef(served.api_version, served.kind, space, name), error)
            tasks = []
        self._call(tasks)

    def gone(self, served: ServedKind, space: str, name: str, revision: int) -> None:
        """An object was deleted, at this revision."""
        try:
            tasks = self.view.drop(served, space, name, revision, self._clock())
        except Exception as error:  # noqa: BLE001 - as above
            self._report(ObjectRef(served.api_version, served.kind, space, name), error)
            tasks = []
        self._call(tasks)

    def renewed(self, body: bytes, space: str = "", name: str = "") -> None:
        """A lease of a node was written."""
        try:
            tasks = self.view.renewed(body, self._clock())
        except Exception as error:  # noqa: BLE001 - as above
            self._report(ObjectRef("coordination.k8s.io/v1", "Lease", space, name), error)
            return
        if tasks:
            self._call(tasks)

    def lease_gone(self, node: str) -> None:
        if self.view.heartbeats is not None:
            self.view.heartbeats.lease_gone(node)

    def leases_seen(self, seen: bool) -> None:
        """Whether we see all renewals from now on. While we do not, no node is judged by them."""
        heartbeats = self.view.heartbeats
        if heartbeats is not None and self._running:
            if seen:
                heartbeats.begin(self._clock())
                self._call(list(self.view.all_nodes()))
            else:
                heartbeats.end()

    async def run(self) -> None:
        """Until cancelled. Start it when everything was listed."""
        self._running = True
        self._awake_at = self._clock()
        self.leases_seen(True)
        self._call(list(self.view.everything()))
        if self._moves_drifted:
            self._put(DRIFT, self._clock() + DRIFT_MS)
        async with asyncio.TaskGroup() as group:
            if self.view.heartbeats is not None:
                group.create_task(self._stay_awake())
            # One task waits for what is next: if all did, each change would wake all of them, and all but one in vain.
            while True:
                flow, task = await self._next()
                self._running_in[flow] = self._running_in.get(flow, 0) + 1
                group.create_task(self._work(flow, task))

    @property
    def idle(self) -> bool:
        """No controller runs, and none is due, or would be but for its rest."""
        now = self._clock()
        return not self._busy and all(
            due > now and self._rests.after(task, now) == now for task, due in self._waiting.items()
        )

    def _call(self, tasks: Sequence[Task]) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None
        if not self._running:
            return
        now = self._clock()
        for task in tasks:
            self._put(task, now + TOGETHER_MS if isinstance(task, Survey) else now)

    def _put(self, task: Task, due: Millis) -> None:
        if task in self._busy:
            self._busy[task] = True
            return
        due = self._rests.after(task, due)
        known = self._waiting.get(task)
        if known is not None and known <= due:
            return
        self._waiting[task] = due
        self._count += 1
        heapq.heappush(self._due, (due, self._count, task))
        self._told.set()

    async def _next(self) -> tuple[str, Task]:
        """The next task, and its namespace."""
        while True:
            now = self._clock()
            while self._due and self._due[0][0] <= now:
                due, _, task = heapq.heappop(self._due)
                if self._waiting.get(task) == due:
                    self._ready.push(self._flow(task), (due, task))
            while (found := self._ready.pop(self._may_run)) is not None:
                flow, (due, task) = found
                if self._waiting.get(task) == due:
                    del self._waiting[task]
                    self._busy[task] = False
                    return flow, task
            self._told.clear()
            wait_s = min((self._due[0][0] - now) / 1_000, LONGEST_WAIT_S) if self._due else None
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):  # wait_for may lose a cancellation
                    await self._told.wait()

    def _flow(self, task: Task) -> str:
        """The namespace of a task, "" if it is about the cluster."""
        match task:
            case Reconcile(namespace=space) | Empty(namespace=space):
                return space
            case Collect(uid=uid):
                item = self.view.graph.by_uid(uid)
                return "" if item is None else item.ref.namespace
            case Survey():
                return ""
            case _:
                assert_never(task)

    def _may_run(self, flow: str) -> bool:
        running = self._running_in.get(flow, 0)
        return not running or (running < PER_NAMESPACE and len(self._busy) < WORKERS)

    async def _work(self, flow: str, task: Task) -> None:
        requeue_at: Millis | None = None
        try:
            requeue_at = await self._one(flow, task)
            self._failures.pop(task, None)
        except RefusedError as error:
            self.refused += 1
            requeue_at = self._clock() + self._backoff(task, settled=error.settled)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is about this object
            wait_ms = self._backoff(task, settled=False)
            if isinstance(error, UnreadableError):
                wait_ms = min(wait_ms, HINDERED_MS)
            requeue_at = self._clock() + wait_ms
            await self._failed(task, error, wait_ms)
        finally:
            told_again = self._busy.pop(task)
            self._left(flow)
        if task == DRIFT:  # what was refused waits for the next period, too: that is what limits the rate
            requeue_at = self._clock() + DRIFT_MS
        if told_again:
            self._put(task, self._clock())
        if requeue_at is not None:
            self._put(task, requeue_at)

    @property
    def _judged_since(self) -> Millis | None:
        """Since when nodes are judged by their heartbeats; None: they are not."""
        return None if self.view.heartbeats is None else self.view.heartbeats.since

    def _left(self, flow: str) -> None:
        self._running_in[flow] -= 1
        if not self._running_in[flow]:
            del self._running_in[flow]
        if self._ready:
            self._told.set()

    def _backoff(self, task: Task, *, settled: bool) -> Millis:
        failures = self._failures[task] = self._failures.get(task, 0) + 1
        if settled and failures == 1:
            return 0
        return min(RETRY_FIRST_MS << min(failures - 1, 20), RETRY_LAST_MS)

    async def _failed(self, task: Task, error: Exception, wait_ms: Millis) -> None:
        ref = self._ref(task)
        if self._failures[task].bit_count() > 1:  # an event after 1, 2, 4, 8 and so on
            self.metrics.errors.add((ref.kind,), 1)
            return
        self._report(ref, error, wait_ms)
        if ref.name:
            reason = error.reason if isinstance(error, ReconcileError) else FAILED
            text = f"Error reconciling: {type(error).__name__}: {error}" if reason == FAILED else str(error)
            await self._record(RecordEvent(ref, "Warning", reason, text[:EVENT_TEXT]))

    def _report(self, ref: ObjectRef, error: BaseException, wait_ms: Millis = 0) -> None:
        """Log and count a failure about one object."""
        self.metrics.errors.add((ref.kind,), 1)
        where = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
        if wait_ms:
            log = _log.warning if isinstance(error, ReconcileError) else _log.error  # somebody corrects the object
            log("A controller failed; retrying", **where, err=describe_error(error), wait_ms=wait_ms)
        else:
            _log.error("Controllers cannot read an object; continuing without it", **where, err=describe_error(error))

    def _ref(self, task: Task) -> ObjectRef:
        """The object of a task. Without a name, the task is about several objects."""
        match task:
            case Reconcile(kind=kind, namespace=space, name=name):
                ref = ObjectRef(*KINDS[kind], space, name)
            case Empty(namespace=name):
                ref = ObjectRef(*KINDS[ManagedNamespace], "", name)
            case Collect(uid=uid):
                collected = self.view.graph.by_uid(uid)
                return ObjectRef("", "", "", "") if collected is None else collected.ref
            case Survey():
                return ObjectRef(*KINDS[ManagedNode], "", "")
            case _:
                assert_never(task)
        item = self.view.has(ref)
        return ref if item is None else item.ref

    async def _one(self, flow: str, task: Task) -> Millis | None:
        """Call the controller, perform its effects, and wait until we see them."""
        begun = time.perf_counter()
        owner, outcome = self._outcome(task)
        judged = self._judged_since
        took_s = time.perf_counter() - begun
        self._rests.called(task, took_s, self._clock())
        if took_s > SLOW_S:
            self._report_slow(task, took_s)
        self.calls += 1
        if outcome.effects:
            await confirm_absence(task, self.view, self._port)
        written: list[WriteResult] = []
        problem: Exception | None = None
        try:
            for part in batches(outcome.effects):
                for start in range(0, len(part), AT_ONCE):
                    if self._judged_since != judged:
                        return self._clock()  # an outage overtook it: what it knew of nodes may be wrong
                    try:
                        written += await self._perform(flow, task, owner, part[start : start + AT_ONCE])
                    except Exception as error:
                        if not isinstance(task, Survey | Empty):
                            raise
                        problem = problem or error  # the other effects are about other objects
            if problem is not None:
                raise problem
            if outcome.effects:
                self._refusals.pop(task, None)
        finally:
            await self._until_seen(written)
        return outcome.requeue_at

    def _report_slow(self, task: Task, took_s: float) -> None:
        ref = self._ref(task)
        self.metrics.slow_calls.add((ref.kind,), 1)
        where = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
        _log.warning("A controller call blocked the process", **where, seconds=round(took_s, 3))

    def _outcome(self, task: Task) -> tuple[ObjectRef | None, ReconcileResult]:
        view, now = self.view, self._clock()
        if why := self._hindrance(view, task):
            raise UnreadableError(why)
        match task:
            case Reconcile(kind=kind, namespace=space, name=name):
                view.check_readable(kind, space, name)
                one: Any = view.objects.get(kind, space, name)
                if one is None or (kind not in CONTROLLERS and kind is not ManagedNode):
                    self._refusals.pop(task, None)
                    return None, ReconcileResult()
                refused = self._refusals.get(task, "")
                return ref_of(one), reconcile(
                    one, view.objects, now, refused=refused, zones=utc_offset, heartbeats=self._heartbeats(now)
                )
            case Collect(uid=uid):
                item = view.graph.by_uid(uid)
                return (None, ReconcileResult()) if item is None else (item.ref, collect(item, view.graph))
            case Empty(namespace=name):
                ending = namespace_of(view, name)
                return (
                    (None, ReconcileResult())
                    if ending is None
                    else (ref_of(ending), namespace(ending, view.graph, now))
                )
            case Survey(of="drift"):
                return None, move_drifted(view.objects, now)
            case Survey(of=what):
                heartbeats = self._heartbeats(now)
                if heartbeats is None:
                    return None, ReconcileResult()
                if what == "leftovers":
                    return None, clean_up(view.objects, heartbeats, now)
                return None, survey_zones(view.objects, heartbeats, now, self._report)
            case _:
                assert_never(task)

    def _heartbeats(self, now: Millis) -> Heartbeats | None:
        """When nodes renewed last. After a pause of ours we may have missed renewals: every node gets more time."""
        heartbeats = self.view.heartbeats
        if heartbeats is not None and now - self._awake_at > ASLEEP_MS:
            _log.warning("Controllers did not run for a while; giving nodes more time", ms=now - self._awake_at)
            if heartbeats.since is not None:
                heartbeats.begin(now)
        self._awake_at = now
        return heartbeats

    async def _stay_awake(self) -> None:
        while True:
            await asyncio.sleep(AWAKE_S)
            self._heartbeats(self._clock())

    async def _perform(
        self, flow: str, task: Task, owner: ObjectRef | None, part: Sequence[Effect]
    ) -> list[WriteResult]:
        """Perform these concurrently. Raises the first refusal or error, when all are done."""
        now = self._clock()
        part = [one for one in part if not isinstance(one, RecordEvent) or self._events.admits(one.ref, now)]
        answers = await self._performer.perform(flow, part)
        problem: Exception | None = None
        written: list[WriteResult] = []
        for effect, answer in zip(part, answers, strict=True):
            if isinstance(answer, BaseException):
                # If we were cancelled, `gather` would have raised: something that the effect awaited was cancelled.
                failure = answer if isinstance(answer, Exception) else RefusedError(describe_error(answer))
                problem = problem or failure
                event = None if owner is None else refusal(owner, effect, str(failure))
                if event is not None:
                    self._refusals[task] = str(failure)
                    await self._record(event)
            elif answer is not None:
                written.append(answer)
        if problem is not None:
            _log.v(2).info("A controller's effect was refused", task=str(task), err=str(problem))
            await self._until_seen(written)
            raise problem
        return written

    async def _record(self, event: RecordEvent) -> None:
        try:
            if self._events.admits(event.ref, self._clock()):
                await self._port.perform(event)
        except Exception as error:  # noqa: BLE001 - a failure to report a failure must not cause another
            _log.v(2).info("An event was refused", err=str(error))

    async def _until_seen(self, written: Sequence[WriteResult]) -> None:
        if not written:
            return
        deadline = asyncio.get_running_loop().time() + SEEN_S
        for one in written:
            while not self._is_seen(one):
                left = deadline - asyncio.get_running_loop().time()
                moved = self._moved = self._moved or asyncio.Event()
                try:
                    async with asyncio.timeout(max(left, 0)):
                        await moved.wait()
                except TimeoutError:
                    _log.warning("The informers are behind; going on", name=one.ref.name)
                    return

    def _is_seen(self, one: WriteResult) -> bool:
        if one.revision is not None:
            return self.view.progress(one.ref) >= one.revision
        item = self.view.has(one.ref)
        return item is None or item.ref.uid != one.ref.uid or item.meta.deletion_timestamp is not None
