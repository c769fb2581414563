"""Questions that the page asks once: why a pod waits, what is on a node, where there is room, what a loss would do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from situate.core.explain.formatting import roughly, taint_text
from situate.core.model.node import Node
from situate.core.state.cluster import Cluster
from situate.kube.client import Client
from situate.web.desk import Answer, Desk, SimulationQuestion
from situate.web.guard import LOGIN, json_body, refusal
from situate.web.limits import MAX_PODS_OF_NODE, MAX_QUESTIONS, QUESTION_S
from situate.web.map_columns import NONE, PER_MILLE
from situate.web.models import Models
from situate.web.reports import keep_report, report
from situate.wire.errors import InputError

NOT_WHOLE: Final = "you do not see all nodes and pods, so this is what its scheduler recorded"


class Answers:
    def __init__(self, models: Models) -> None:
        self._models = models
        self._turns = asyncio.Semaphore(MAX_QUESTIONS)

    def add_to(self, routes: web.UrlDispatcher) -> None:
        routes.add_get("/api/why/{namespace}/{pod}", self._why)
        routes.add_get("/api/nodes/{node}", self._node)
        routes.add_post("/api/room", self._room)
        routes.add_post("/api/drain", self._drain)
        routes.add_post("/api/survive", self._survive)
        routes.add_post("/api/simulate", self._simulate)
        routes.add_get("/api/reports/{name}", report)

    async def _why(self, request: web.Request) -> web.Response:
        person, desk = request[LOGIN].person, await self._models.desk()
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        node = request.query.get("node", "")
        async with asyncio.timeout(QUESTION_S), self._turns, self._models.of(person) as kept:
            asked = await desk.pod(kept.model.client, namespace, name, node)
            if not kept.model.scope.whole:
                return _json({**desk.recorded(asked), "notes": [NOT_WHOLE, *kept.model.problems()]})
            profiles, templates = await self._models.profiles(kept), dict(kept.model.templates)
            return _json(await kept.model.ask(lambda cluster: desk.why(cluster, profiles, asked, templates)))

    async def _room(self, request: web.Request) -> web.Response:
        manifest = (await json_body(request)).get("manifest")
        if not isinstance(manifest, str) or not manifest.strip():
            raise InputError("there is no manifest")
        return await self._tried(request, lambda desk, client: desk.room(client, manifest))

    async def _drain(self, request: web.Request) -> web.Response:
        nodes = (await json_body(request)).get("nodes")
        if not isinstance(nodes, list) or not nodes or not all(isinstance(one, str) for one in nodes):
            raise InputError("there is no node to drain")
        return await self._tried(request, lambda desk, client: desk.drain(client, nodes))

    async def _survive(self, request: web.Request) -> web.Response:
        return await self._tried(request, lambda desk, client: desk.survive(client))

    async def _simulate(self, request: web.Request) -> web.Response:
        try:
            asked = msgspec.convert(await json_body(request), SimulationQuestion)
        except msgspec.ValidationError as error:
            raise InputError(str(error)) from None
        login, stop = request[LOGIN], threading.Event()
        try:
            async with asyncio.timeout(QUESTION_S), self._turns, self._models.client(login.person) as client:
                found = await (await self._models.desk()).simulate(client, asked, stop.is_set)
        finally:
            stop.set()
        return _json({**found.answer, "report": keep_report(login, found.report)})

    async def _tried(self, request: web.Request, question: Callable[[Desk, Client], Awaitable[Answer]]) -> web.Response:
        """What would be, on a copy of the cluster that this person reads for it."""
        async with asyncio.timeout(QUESTION_S), self._turns, self._models.client(request[LOGIN].person) as client:
            return _json(await question(await self._models.desk(), client))

    async def _node(self, request: web.Request) -> web.Response:
        async with self._models.of(request[LOGIN].person) as kept:
            model = kept.model
            row = model.cluster.nodes.rows.get(request.match_info["node"])
            node = None if row is None else model.cluster.nodes.objects[row]
            if row is None or node is None or not model.scope.whole:
                return refusal(404, f'nodes "{request.match_info["node"]}" not found')
            return _json(describe_node(model.cluster, row, node, model.columns.used(node.metadata.name)))


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def describe_node(cluster: Cluster, row: int, node: Node, used: tuple[int, int] | None) -> dict[str, Any]:
    """A node: what it has, what is requested of each resource, what is used if that is known, and its pods."""
    measured = {} if used is None else dict(zip(("cpu", "memory"), used, strict=True))
    nodes, names = cluster.nodes, cluster.resources.names
    pods = []
    for pod_row in list(nodes.pods[row])[:MAX_PODS_OF_NODE]:
        kind = cluster.pods.kind(pod_row)
        pods.append(
            {
                "pod": cluster.pods.keys[pod_row],
                "priority": kind.priority,
                "requests": {names[at]: roughly(names[at], amount) for at, amount in kind.takes if amount},
            }
        )
    resources = []
    for at, name in enumerate(names):
        room = int(nodes.allocatable[at, row])
        asked = len(nodes.pods[row]) if name == "pods" else int(nodes.requested[at, row])
        if room or asked:
            share = round(PER_MILLE * asked / room) if room else -1
            amounts = {"requested": roughly(name, asked), "allocatable": roughly(name, room)}
            resources.append({"name": name, **amounts, "share": share, "used": measured.get(name, NONE)})
    return {
        "node": node.metadata.name,
        "labels": dict(node.metadata.labels),
        "taints": [taint_text(taint) for taint in node.spec.taints],
        "unschedulable": node.spec.unschedulable,
        "conditions": [{"type": one.type, "status": one.status} for one in node.status.conditions],
        "resources": resources,
        "pods": pods,
        "morePods": max(0, len(nodes.pods[row]) - MAX_PODS_OF_NODE),
    }
