"""What a reader is shown while the lists are coming."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from situate.core.versions import DEFAULT
from situate.kube.client import Client
from situate.kube.kinds import NODES, PODS
from situate.web.model import ClusterModel
from situate.web.rights import Scope
from situate.web.streams import MapReading, summary

WITHIN_S = 20.0


def frame(kind: str, name: str, **fields: Any) -> bytes:
    meta = {"name": name, "uid": name, "resourceVersion": "5", "namespace": "shop" if kind == "Pod" else ""}
    return msgspec.json.encode(
        {"type": "ADDED", "object": {"apiVersion": "v1", "kind": kind, "metadata": meta, **fields}}
    )


def end_of_list(kind: str) -> bytes:
    meta = {"resourceVersion": "5", "annotations": {"k8s.io/initial-events-end": "true"}}
    return msgspec.json.encode({"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": kind, "metadata": meta}})


class SlowServer:
    """It lists its nodes at once, and its pods in two batches, the second when it is told to."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.opened: list[str] = []

    @asynccontextmanager
    async def stream(self, path: str, *, params: Mapping[str, str], idle_s: float) -> AsyncIterator["SlowLines"]:
        del params, idle_s
        kind = path.rpartition("/")[2]
        self.opened.append(kind)
        yield SlowLines(self, kind)


class SlowLines:
    def __init__(self, server: SlowServer, kind: str) -> None:
        self._server, self._kind, self._sent = server, kind, 0

    async def batch(self) -> list[bytes]:
        self._sent += 1
        match self._kind, self._sent:
            case "nodes", 1:
                allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
                return [frame("Node", "node-1", status={"allocatable": allocatable}), end_of_list("Node")]
            case "pods", (1 | 2) as part:
                if part == 2:
                    await self._server.go_on.wait()
                spec = {"nodeName": "node-1", "containers": [{"name": "c"}]}
                last = [end_of_list("Pod")] if part == 2 else []
                return [frame("Pod", f"web-{part}", spec=spec), *last]
            case _:
                await asyncio.Event().wait()
        raise AssertionError


def test_the_map_is_there_before_the_pods_are_and_says_that_they_are_counted() -> None:
    async def test() -> None:
        server = SlowServer()
        model = ClusterModel(cast("Client", server), Scope("", True), [PODS, NODES], DEFAULT)
        task = asyncio.create_task(model.run())
        async with asyncio.timeout(WITHIN_S):
            await model.synced(whole=False)
            assert server.opened[0] == "nodes"
            assert b'"names":["node-1"]' in MapReading(model).next()
            assert (summary(model)["nodes"], summary(model)["listing"]) == (1, True)
            whole = asyncio.create_task(model.synced())
            while summary(model)["bound"] < 1:
                await model.after(model.tick, WITHIN_S)
            assert not whole.done()
            server.go_on.set()
            await whole
            assert (summary(model)["bound"], summary(model)["listing"]) == (2, False)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(test())
