"""Carries a defragmentation plan out on a cluster: one eviction at a time, each checked before the next.

The freed node is cordoned all the time, so that no pod returns to it; during a step, so are the nodes that the
scheduler would otherwise prefer. The eviction API respects budgets; the pod's controller creates it again, and the
cluster's own scheduler places it. So after each step the plan reads the cluster again, and tries the rest of its
steps on a copy. If they are no longer possible, it searches for others, and stops if there are none. At the end, come
what may, it uncordons what it cordoned; only a node that was to be freed as a whole stays cordoned.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

import click
import msgspec

from situate.cli.cluster.connection import Client
from situate.cli.commands.plan.input import PlanInput, PlanOptions, read_live_input
from situate.cli.output.formats import for_people
from situate.cli.output.text import plural
from situate.core.model.meta import controller_of, key_of
from situate.core.model.pod import Pod
from situate.core.plan.defrag import DefragPlan, defrag, rehearsed
from situate.core.plan.eviction_rules import DrainRules, node_pod_verdict
from situate.core.plan.goals import DefragTarget, Goal, ShapeGoal
from situate.core.plan.repack import Move
from situate.core.plan.sandbox import Sandbox
from situate.kube.errors import ApiError
from situate.wire.objects import decode_pod
from situate.wire.patches import MERGE

POLL_S: Final = 0.25
"""How often to look at a pod that is being replaced."""
REFUSED_S: Final = 2.0
"""How long to wait before trying an eviction again that a budget refused."""
TOO_MANY: Final = 429
SLACK: Final = 2
"""If the cluster changes, the execution may take this many times the planned steps."""


class StoppedError(Exception):
    """The plan cannot continue. The message says why, and how far it got, in one line."""


class PlanExecution:
    """One plan, on one cluster."""

    def __init__(
        self,
        client: Client,
        asked: PlanOptions,
        read: PlanInput,
        plan: DefragPlan,
        goal: Goal,
        rules: DrainRules,
        timeout_s: int,
    ) -> None:
        self._client = client
        self._asked = asked
        self._read = read
        self._plan = plan
        self._goal = goal
        self._rules = rules
        self._timeout_s = timeout_s
        self._cordoned: list[str] = []
        self._done = 0
        self._left = len(plan.moves)

    async def run(self) -> None:
        """Raises StoppedError, and ApiError."""
        freed = self._plan.node
        try:
            await self._cordon(freed)
            moves: Sequence[Move] = self._plan.moves
            while moves:
                await self._step(moves[0])
                self._done, self._left = self._done + 1, self._left - 1
                self._read = await read_live_input(self._client, self._asked, local=True)
                moves = self._rest(moves[1:])
                self._left = len(moves)
            self._check_reached()
            if not isinstance(self._goal, ShapeGoal) and freed in self._cordoned:
                self._cordoned.remove(freed)
                self._say(f"{freed} is free, and stays cordoned; to use it again: kubectl uncordon {freed}")
            else:
                self._say(f"{freed} has room now")
        finally:
            await self._uncordon_all()

    # -- one step ------------------------------------------------------------------------------------------------

    async def _step(self, move: Move) -> None:
        pod = self._pod(move)
        before = {one.metadata.uid: None for one in self._siblings(self._read.objects.pods, pod)}
        held = [name for name in move.holds if name not in self._cordoned]
        for name in held:
            await self._cordon(name)
        click.echo(f"step {self._done + 1} of {self._done + self._left}: {move.key} leaves {move.source}", err=True)
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        await self._evict(pod, deadline)
        landed = await self._wait(pod, before, deadline)
        for name in held:
            await self._uncordon(name)
        key, node = key_of(landed.metadata), landed.spec.node_name
        renamed = "" if key == move.key else f" as {key}"
        instead = "" if node == move.to else f" instead of {move.to}"
        self._say(f"{move.key} moved from {move.source} to {node}{instead}{renamed}")

    def _pod(self, move: Move) -> Pod:
        """The pod as it was last read. Raises StoppedError if it is not where the plan expects it."""
        found = next((pod for pod in self._read.objects.pods if key_of(pod.metadata) == move.key), None)
        if found is None or found.spec.node_name != move.source:
            raise self._stopped(f"{move.key} is no longer on {move.source}")
        return found

    def _siblings(self, pods: Sequence[Pod], pod: Pod) -> Iterator[Pod]:
        """The pods of the same controller."""
        owner = controller_of(pod.metadata)
        for one in pods:
            if one.metadata.namespace == pod.metadata.namespace:
                other = controller_of(one.metadata)
                if owner is not None and other is not None and other.uid == owner.uid:
                    yield one

    async def _evict(self, pod: Pod, deadline: float) -> None:
        """Retry until the budget allows it."""
        space, name = quote(pod.metadata.namespace, safe=""), quote(pod.metadata.name, safe="")
        body = msgspec.json.encode(
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
                "deleteOptions": {"preconditions": {"uid": pod.metadata.uid}},
            }
        )
        while True:
            try:
                await self._client.request("POST", f"/api/v1/namespaces/{space}/pods/{name}/eviction", body=body)
                return
            except ApiError as error:
                if error.status != TOO_MANY:
                    raise self._stopped(f"{key_of(pod.metadata)} cannot be evicted: {error.message}") from None
                if asyncio.get_running_loop().time() + REFUSED_S > deadline:
                    raise self._stopped(f"{key_of(pod.metadata)} cannot be evicted: {error.message}") from None
            await asyncio.sleep(REFUSED_S)

    async def _wait(self, pod: Pod, before: Mapping[str, None], deadline: float) -> Pod:
        """Wait until the pod is gone and its replacement is ready."""
        path = f"/api/v1/namespaces/{quote(pod.metadata.namespace, safe='')}/pods"
        new: list[Pod] = []
        while asyncio.get_running_loop().time() < deadline:
            answer = msgspec.json.decode(await self._client.request("GET", path), type=_Items)
            pods = [decode_pod(item) for item in answer.items or ()]
            gone = not any(one.metadata.uid == pod.metadata.uid for one in pods)
            new = [one for one in self._siblings(pods, pod) if one.metadata.uid not in before]
            running = next((one for one in new if one.spec.node_name and _is_ready(one)), None)
            if gone and running is not None:
                return running
            await asyncio.sleep(POLL_S)
        where = f"{key_of(new[0].metadata)} is not ready" if new else "there is no replacement"
        raise self._stopped(f"{key_of(pod.metadata)} was evicted, but after {self._timeout_s} s {where}")

    def _say(self, line: str) -> None:
        """To standard error, if standard output is for programs."""
        click.echo(line, err=not for_people(self._asked.output))

    # -- is the plan still right? -----------------------------------------------------------------------------------

    def _rest(self, moves: Sequence[Move]) -> Sequence[Move]:
        """The rest of the plan on the cluster as it is now, or other steps. Raises StoppedError."""
        if not moves:
            return ()
        sandbox = self._read.sandbox()
        where = {key: pod.spec.node_name for key, pod in sandbox.pods.items()}
        if all(where.get(move.key) == move.source for move in moves):
            found = rehearsed(sandbox, self._plan.node, moves)
            if found is not None:
                return found
        self._uncordon_freed(sandbox)
        plan = defrag(sandbox, self._goal, replace(self._rules, local=self._read.local), self._plan.node)
        if not plan.found or self._done + len(plan.moves) > SLACK * len(self._plan.moves):
            raise self._stopped("the cluster has changed, and the remaining steps are no longer possible")
        self._say(f"the cluster has changed; {plural(len(plan.moves), 'other step')} will free it")
        return plan.moves

    def _uncordon_freed(self, sandbox: Sandbox) -> None:
        """On the copy, uncordon the freed node: no plan can be found for a cordoned one."""
        if self._plan.node in self._cordoned:
            sandbox.uncordon(self._plan.node)

    def _check_reached(self) -> None:
        sandbox = self._read.sandbox()
        self._uncordon_freed(sandbox)
        name = self._plan.node
        if isinstance(self._goal, ShapeGoal):
            reached = self._goal.reached(sandbox, DefragTarget(sandbox.row(name), name, 0, (), {}, all_go=False))
        else:
            reached = all(node_pod_verdict(sandbox.pods[key]) is not None for key in sandbox.pods_on(name))
        if not reached:
            raise self._stopped(f"every pod has moved, but {name} is not free: other pods arrived")

    def _stopped(self, why: str) -> StoppedError:
        return StoppedError(f"stopped after {self._done} of {self._done + self._left} steps: {why}")

    # -- cordons -------------------------------------------------------------------------------------------------

    async def _cordon(self, name: str) -> None:
        """Unless somebody else has cordoned it: then it stays cordoned at the end."""
        node = next(node for node in self._read.objects.nodes if node.metadata.name == name)
        if node.spec.unschedulable or name in self._cordoned:
            return
        self._cordoned.append(name)
        await self._patch(name, unschedulable=True)

    async def _uncordon(self, name: str) -> None:
        if name in self._cordoned:
            await self._patch(name, unschedulable=None)
            self._cordoned.remove(name)

    async def _uncordon_all(self) -> None:
        for name in list(self._cordoned):
            try:
                await self._uncordon(name)
            except ApiError as error:
                click.echo(f"{name} is still cordoned: {error.message}", err=True)

    async def _patch(self, name: str, *, unschedulable: bool | None) -> None:
        body = msgspec.json.encode({"spec": {"unschedulable": unschedulable}})
        await self._client.request("PATCH", f"/api/v1/nodes/{quote(name, safe='')}", body=body, content_type=MERGE)


class _Items(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


def _is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
