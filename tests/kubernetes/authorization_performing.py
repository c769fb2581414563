"""Performs the cells of the authorization matrix on one server, many at a time."""

import asyncio
import json
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple, TypeAlias, TypeVar

import aiohttp

from kubernetes.api import RefusedError, path_of
from kubernetes.authorization_cells import JSON, Cell
from kubernetes.authorization_kinds import GRANTED, NAMESPACE, NODE, NODE_LEASES, RBAC, Json
from kubernetes.authorization_users import IMPERSONATORS, NAMED, USERS, MatrixUser
from kubernetes.cluster import Cluster
from kubernetes.objects import node

AT_ONCE = 24
"""Requests in flight."""
TRIES = 20
"""Of a request that is answered with 429: how fast a server works is not what is compared."""
PAUSE_S = 0.1
SETTLED_S = 30.0
"""How long kube-apiserver may take to notice the last binding."""
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
Headers: TypeAlias = list[tuple[str, str]]
T = TypeVar("T")
R = TypeVar("R")


class Outcome(NamedTuple):
    """What is compared: the code, and the reason and message of a refusal."""

    code: int
    reason: str = ""
    message: str = ""


class Performer:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tls = ssl.create_default_context(cafile=str(cluster.certificate))
        self._tokens: dict[str, str] = {}

    def perform(self, cells: Sequence[Cell]) -> list[Outcome]:
        """What came of each cell, in their order."""
        return asyncio.run(self._perform(cells))

    async def _perform(self, cells: Sequence[Cell]) -> list[Outcome]:
        connector = aiohttp.TCPConnector(limit=AT_ONCE, ssl=self._tls)
        async with aiohttp.ClientSession(connector=connector) as session:
            versions = await self._prepare(session, cells)

            async def one(cell: Cell) -> Outcome:
                data = cell.data(versions.get(cell.name, ""))
                headers = [("Content-Type", cell.content_type)] if data is not None else []
                headers += [*self._identity(cell.user, cell.name), *cell.headers]
                return await self._send(session, cell.method, cell.path, data, headers)

            return await many(one, cells)

    async def _prepare(self, session: aiohttp.ClientSession, cells: Sequence[Cell]) -> Mapping[str, str]:
        """Create users and objects. Returns the resourceVersions of the objects, by name."""
        role: Json = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole"}
        first: list[Json] = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {**role, "metadata": {"name": "grants-nothing"}, "rules": []},
            {**role, "metadata": {"name": "grants-something"}, "rules": [GRANTED]},
            node(NODE, pods=10_000, cpu="10000"),
            node("beta"),
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NODE_LEASES}},
        ]
        for each in first:
            try:
                self._cluster.api.post(path_of(each, NAMESPACE), each)
            except RefusedError as refused:
                if refused.reason != "AlreadyExists":
                    raise
        for user in (*USERS, *IMPERSONATORS):
            if user.account:
                self._tokens[user.id] = self._cluster.token_for(f"{NAMESPACE}/{user.id}")
            names = [cell.name for cell in cells if cell.user is user and cell.name.startswith(NAMED)]
            for each in user.objects(names):
                self._cluster.api.post(path_of(each, NAMESPACE), each)

        async def create(cell: Cell) -> tuple[str, str]:
            data, headers = json.dumps(cell.existing).encode(), [("Content-Type", JSON), *self._admin()]
            async with session.post(self._cluster.url + cell.kind.path(), data=data, headers=headers) as response:
                made = await response.json()
                if response.status != 201:
                    raise AssertionError(f"{cell.id}: {made}")
                return cell.name, made["metadata"]["resourceVersion"]

        versions = dict(await many(create, [cell for cell in cells if cell.exists]))
        async with asyncio.timeout(SETTLED_S):
            last = self._identity(next(user for user in USERS if user.role == "system:aggregate-to-view"))
            path = f"/api/v1/namespaces/{NAMESPACE}/configmaps?limit=1"
            while (await self._send(session, "GET", path, None, last)).code != 200:
                await asyncio.sleep(PAUSE_S)
        return versions

    def _admin(self) -> Headers:
        return [("Authorization", f"Bearer {self._cluster.tokens['admin']}")]

    def _identity(self, user: MatrixUser, name: str = "") -> Headers:
        if user.account:
            return [("Authorization", f"Bearer {self._tokens[user.id]}")]
        groups = [("Impersonate-Group", group) for group in user.groups]
        return [*self._admin(), ("Impersonate-User", user.user.replace("{name}", name)), *groups]

    async def _send(
        self, session: aiohttp.ClientSession, method: str, path: str, data: bytes | None, headers: Headers
    ) -> Outcome:
        for _ in range(TRIES):
            async with session.request(method, self._cluster.url + path, data=data, headers=headers) as response:
                if response.status == 200 and "watch=true" in path:
                    response.close()
                    return Outcome(200)
                body = await response.read()
            if response.status < 400:
                return Outcome(response.status)
            if response.status != 429:
                return _refused(response.status, body)
            await asyncio.sleep(PAUSE_S)
        return Outcome(HTTPStatus.TOO_MANY_REQUESTS)


def _refused(code: int, body: bytes) -> Outcome:
    try:
        status = json.loads(body)
    except ValueError:
        return Outcome(code, "", body.decode(errors="replace"))
    message = _UID.sub("UID", status.get("message", ""))
    return Outcome(code, status.get("reason", ""), message)


async def many(do: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """The results in the order of the items; AT_ONCE at a time."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(item: T) -> R:
        async with gate:
            return await do(item)

    return list(await asyncio.gather(*(one(item) for item in items)))
