"""One person's view of a cluster, kept current by watches: the cluster's columns, and the pods that wait.

It sees what the API server shows this person, and nothing else. Changes are applied as they come and announced in
ticks, seven a second at most; readers ask for what changed since the tick that they know.

A question such as `why` needs the cluster for itself for a moment, in a thread. What happens meanwhile is applied
afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

from situate.core.changes import Change, NodeGone, NodeSeen, ObjectGone, ObjectSeen, PodGone, PodSeen
from situate.core.gang.naming import GangName, gang_of_group
from situate.core.model.claim_templates import ResourceClaimTemplate
from situate.core.model.custom_groups.kind import CustomPodGroup
from situate.core.model.group import PodGroup
from situate.core.model.meta import key_of
from situate.core.model.node import Node
from situate.core.model.pod import Pod
from situate.core.model.policy import PriorityClass
from situate.core.state.cluster import FINISHED_PHASES, Cluster
from situate.core.versions import KubernetesRules
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.kinds import PODS, WatchedKind
from situate.kube.reflector import Reflector
from situate.web.gangs import GangMembers
from situate.web.limits import FIRST_FLUSH_S, FLUSH_S, LISTING_FLUSH_S, NODES_FIRST_S, RECHECK_S
from situate.web.map_columns import MapColumns, used_shares
from situate.web.placements import placement_feed
from situate.web.preemptions import PreemptionNotes, preemption_feed, preemption_rows, waiting_messages
from situate.web.rights import Scope, find_scope
from situate.web.throttled import ThrottledRows
from situate.web.usage import Usage, UsageReader
from situate.web.waiting import waiting_rows

CHANGED_RIGHTS: Final = "what you may read has changed; the page starts again"

T = TypeVar("T")


class ModelEndedError(Exception):
    """The model is no longer kept current, for the reason given."""


class ClusterModel:
    """`run` it until it is cancelled."""

    def __init__(
        self,
        client: Client,
        scope: Scope,
        kinds: Sequence[WatchedKind],
        rules: KubernetesRules,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.client = client
        self.scope = scope
        self.cluster = Cluster(rules)
        self.pending: dict[str, Pod] = {}
        self.templates: dict[tuple[str, str], ResourceClaimTemplate] = {}
        self.groups: dict[GangName, PodGroup | CustomPodGroup] = {}
        self.tick = 1
        self.columns = MapColumns()
        self.ended = ""
        """Why it ended; empty while it runs."""
        self._clock = clock
        self._moved = asyncio.Event()
        self._flushing = False
        self._flushed = float("-inf")
        self._asking = asyncio.Lock()
        self._questions: set[asyncio.Task[Any]] = set()
        self._backlog: list[Change] | None = None
        self.gangs = GangMembers()
        self.waiting = ThrottledRows(lambda: waiting_rows(self.pending.values()), clock)
        self.gang_rows = ThrottledRows(lambda: self.gangs.rows(self.groups, self.pending), clock)
        self.usage: Usage = {}
        """What nodes use; empty if nobody measures it."""
        self._measured = False
        """Whether there are figures that the columns do not have."""
        self._reader = UsageReader(client, self._used)
        self.placements = placement_feed(client, scope.namespace, self._preempted)
        self.preemptions = preemption_feed(client, scope.namespace, self._preempted)
        self._preemption_notes = PreemptionNotes()
        self._preemptors: frozenset[str] = frozenset()
        """The pods of which the rows of preemptions say what became of them."""
        self.preemption_rows = ThrottledRows(self._preemption_rows, clock)
        self._reflectors = [Reflector(client, _within(kind, scope), self._tell) for kind in kinds]
        self._pods = [one for one in self._reflectors if one.kind.model is Pod]
        self._nodes = [one for one in self._reflectors if one.kind.model is Node]

    # -- running -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for one in self._nodes:
                    tasks.create_task(one.run(), name="reflector of nodes")
                for one in self._reflectors:
                    if one not in self._nodes:
                        tasks.create_task(self._after_nodes(one), name=f"reflector of {one.kind.name}")
                tasks.create_task(self._recheck(), name="rights")
                tasks.create_task(self.placements.run(), name="placements")
                tasks.create_task(self.preemptions.run(), name="preemptions")
                if self.scope.whole:
                    tasks.create_task(self._measure(), name="usage")
        except* ModelEndedError as group:
            self._end(str(group.exceptions[0]))
        except* ApiError as group:
            self._end(str(group.exceptions[0]))
        finally:
            if not self.ended:
                self._end("it was stopped")

    async def _after_nodes(self, reflector: Reflector) -> None:
        """The map is shown as soon as there are nodes, so nothing competes with their list."""
        for one in self._nodes:
            with suppress(TimeoutError):
                async with asyncio.timeout(NODES_FIRST_S):
                    await one.synced.wait()
        await reflector.run()

    async def _measure(self) -> None:
        await self.synced()
        await self._reader.run()

    def _used(self, usage: Usage) -> None:
        self.usage, self._measured = usage, True
        self._moved_soon()

    async def _recheck(self) -> None:
        """End when the person may no longer read what is shown: a watch that is open would go on for minutes."""
        while True:
            await asyncio.sleep(RECHECK_S)
            try:
                now = await find_scope(self.client)
            except ApiError as error:
                if error.unauthorized or error.forbidden:
                    raise
                continue  # the server is away; the reflectors say so
            if (now.namespace, now.nodes) != (self.scope.namespace, self.scope.nodes):
                raise ModelEndedError(CHANGED_RIGHTS)

    def _end(self, why: str) -> None:
        self.ended = why
        self._announce()

    @property
    def listing(self) -> bool:
        """Whether pods are still being listed, so that sums are too small."""
        return not all(one.synced.is_set() for one in (*self._nodes, *self._pods))

    async def synced(self, *, whole: bool = True) -> None:
        """Until nodes and pods were listed; not whole: nodes, or the pods of somebody who sees no nodes.

        Raises ModelEndedError.
        """
        for one in (*self._nodes, *self._pods) if whole or not self._nodes else self._nodes:
            waiting = asyncio.ensure_future(one.synced.wait())
            try:
                while not waiting.done() and not self.ended:
                    moved = asyncio.ensure_future(self._moved.wait())
                    await asyncio.wait([waiting, moved], return_when=asyncio.FIRST_COMPLETED)
                    moved.cancel()
            finally:
                waiting.cancel()
        if self.ended:
            raise ModelEndedError(self.ended)
        if self._flushing:  # do not let the reader wait for its first map
            self._flush()

    def problems(self) -> list[str]:
        """What is not shown, and why, in the API server's words."""
        found = [text for text in (self.scope.why_not_all, self.scope.why_no_nodes) if text]
        return [*found, *(one.problem for one in self._reflectors if one.problem)]

    # -- changes -------------------------------------------------------------------------------------------------

    def _tell(self, changes: list[Change]) -> None:
        if self._backlog is not None:
            self._backlog += changes
            return
        for change in changes:
            self._apply(change)
        self._moved_soon()

    def _moved_soon(self) -> None:
        """Announce what changed in a moment, with whatever else changes until then."""
        if not self._flushing:
            self._flushing = True
            between_s = LISTING_FLUSH_S if self.listing else FLUSH_S
            wait_s = max(FIRST_FLUSH_S, self._flushed + between_s - self._clock())
            asyncio.get_running_loop().call_later(wait_s, self._flush)

    def _apply(self, change: Change) -> None:
        match change:
            case PodSeen(pod):
                self._pod_seen(pod)
            case PodGone(ref):
                key = f"{ref.namespace}/{ref.name}"
                self.cluster.remove_pod(key)
                if key in self._preemptors:
                    self.preemption_rows.changed(self.tick + 1)
                if self.gangs.gone(key):
                    self.gang_rows.changed(self.tick + 1)
                if self.pending.pop(key, None) is not None:
                    self._pending_changed()
            case NodeSeen(node):
                if self.cluster.add_node(node):
                    self.columns.node_seen(self.cluster.nodes.rows[node.metadata.name], node, self.tick + 1)
            case NodeGone(name):
                row = self.cluster.nodes.rows.get(name)
                if row is not None:
                    self.cluster.remove_node(name)
                    self.columns.node_seen(row, None, self.tick + 1)
            case ObjectSeen(item):
                self._object_seen(item)
            case ObjectGone(item):
                self._object_gone(item)
            case _:
                pass

    def _pod_seen(self, pod: Pod) -> None:
        key, finished = key_of(pod.metadata), pod.status.phase in FINISHED_PHASES
        waits = not pod.spec.node_name and not finished
        if self.gangs.seen(pod, finished):
            self.gang_rows.changed(self.tick + 1)
        if self._preemption_notes.pod_seen(pod) or key in self._preemptors:
            self.preemption_rows.changed(self.tick + 1)
        if waits:
            self.pending[key] = pod
            self._pending_changed()
        elif self.pending.pop(key, None) is not None:
            self._pending_changed()
        self.cluster.add_pod(pod)

    def _pending_changed(self) -> None:
        for rows in (self.waiting, self.gang_rows, self.preemption_rows):
            rows.changed(self.tick + 1)

    def _preempted(self) -> None:
        """Perhaps: there are new placements, or preemptions."""
        self.preemption_rows.changed(self.tick + 1)
        self._moved_soon()

    def _preemption_rows(self) -> dict[str, Any]:
        feed = self.preemptions
        events, said = feed.after(0), waiting_messages(self.placements.after(0))
        self._preemptors = frozenset(one["by"] for one in events)
        rows = preemption_rows(events, self._preemption_notes, self.pending, self.cluster, said)
        return {**rows, "problem": feed.problem}

    def _object_seen(self, item: Any) -> None:
        if isinstance(item, PodGroup | CustomPodGroup):
            self.groups[gang_of_group(item)] = item
            self.gang_rows.changed(self.tick + 1)
        if isinstance(item, ResourceClaimTemplate):
            self.templates[item.metadata.namespace, item.metadata.name] = item
        elif not isinstance(item, PriorityClass):
            self.cluster.put_object(item)

    def _object_gone(self, item: Any) -> None:
        if isinstance(item, PodGroup | CustomPodGroup):
            self.groups.pop(gang_of_group(item), None)
            self.gang_rows.changed(self.tick + 1)
        if isinstance(item, ResourceClaimTemplate):
            self.templates.pop((item.metadata.namespace, item.metadata.name), None)
        elif not isinstance(item, PriorityClass):
            self.cluster.forget_object(item)

    def _flush(self) -> None:
        self._flushing, self._flushed = False, self._clock()
        if self._backlog is not None:  # a question is being asked; what changed is announced after it
            return
        self.columns.update(self.cluster, self.tick + 1)
        if self._measured:
            self._measured = False
            self.columns.use_seen(used_shares(self.cluster, self.usage), self.tick + 1)
        self._announce()

    def _announce(self) -> None:
        self.tick += 1
        self._moved.set()
        self._moved = asyncio.Event()

    # -- reading -------------------------------------------------------------------------------------------------

    async def after(self, tick: int, timeout_s: float) -> bool:
        """Wait for a tick after this one; whether one came in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self.tick <= tick and not self.ended:
                    await self._moved.wait()
        return self.tick > tick

    async def ask(self, question: Callable[[Cluster], T]) -> T:
        """Run a question in a thread, with the cluster for itself. Raises what it raises.

        A caller who stops waiting does not stop the thread, which keeps the cluster until it is done.
        """
        asked = asyncio.create_task(self._ask(question), name="question")
        self._questions.add(asked)
        asked.add_done_callback(self._questions.discard)
        return await asyncio.shield(asked)

    async def _ask(self, question: Callable[[Cluster], T]) -> T:
        async with self._asking:
            self._backlog = []
            try:
                return await asyncio.to_thread(question, self.cluster)
            finally:
                changes, self._backlog = self._backlog, None
                if changes or self._flushing:
                    self._flushing = False
                    self._tell(changes)


def _within(kind: WatchedKind, scope: Scope) -> WatchedKind:
    return replace(kind, namespace=scope.namespace) if scope.namespace else kind


def kinds_for(scope: Scope, kinds: Sequence[WatchedKind]) -> list[WatchedKind]:
    """What to watch: all that scheduling reads; for a person who does not see all, pods and their groups."""
    if scope.whole:
        return list(kinds)
    return [*(kind for kind in kinds if issubclass(kind.model, PodGroup | CustomPodGroup)), PODS]
