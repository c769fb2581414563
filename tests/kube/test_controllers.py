"""Effects on an API server. Whether an owner is gone: only 404 and another uid mean that it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from situate.core.reconcile.effects import (
    DeleteObject,
    EvictManagedPod,
    LeaseVersion,
    ObjectRef,
    PatchStatus,
    RebindPod,
)
from situate.kube import controllers
from situate.kube.controllers import ApiPort
from situate.kube.errors import ApiError
from situate.loop.controllers.cache import ServedKind
from situate.loop.controllers.port import RefusedError, WriteResult

KINDS = [
    (ServedKind("apps/v1", "Deployment", "deployments"), True),
    (ServedKind("v1", "Node", "nodes"), False),
    (ServedKind("v1", "Pod", "pods"), True),
]
POD = ObjectRef("v1", "Pod", "default", "p", "u")
OWNER = ObjectRef("apps/v1", "Deployment", "default", "web", "u")


class Answers:
    """A client of a server that always gives the same answer."""

    def __init__(self, answer: bytes | ApiError) -> None:
        self.paths: list[str] = []
        self.bodies: list[Any] = []
        self._answer = answer

    async def request(self, method: str, path: str, *, body: bytes = b"null", **_: Any) -> bytes:
        self.paths.append(f"{method} {path}")
        self.bodies.append(msgspec.json.decode(body))
        if isinstance(self._answer, ApiError):
            raise self._answer
        return self._answer


def body(uid: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": "web", "uid": uid}})


@pytest.mark.parametrize(
    "answer, gone",
    [
        pytest.param(body("u"), False, id="it is there"),
        pytest.param(body("other"), True, id="another of its name is there"),
        pytest.param(ApiError(404, "NotFound", "not found"), True, id="it is not there"),
    ],
)
def test_an_owner_is_gone_if_the_server_says_so(answer: bytes | ApiError, gone: bool) -> None:
    client: Any = Answers(answer)
    port = ApiPort(client, KINDS)
    assert [asyncio.run(port.is_gone(OWNER)) for _ in range(2)] == [gone, gone]
    asked = ["GET /apis/apps/v1/namespaces/default/deployments/web"]
    assert client.paths == (asked if gone else asked * 2), "what is gone stays gone"


def test_an_owner_that_the_server_cannot_read_is_not_gone() -> None:
    client: Any = Answers(ApiError(500, "StorageReadError", "it cannot be read"))
    with pytest.raises(RefusedError, match="it cannot be read"):
        asyncio.run(ApiPort(client, KINDS).is_gone(OWNER))


def test_an_owner_without_a_namespace_is_asked_for_without_one() -> None:
    client: Any = Answers(body("u"))
    asyncio.run(ApiPort(client, KINDS).is_gone(ObjectRef("v1", "Node", "default", "n", "u")))
    assert client.paths == ["GET /api/v1/nodes/n"]


# Nodes' leases

LEASE = "GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n"


@pytest.mark.parametrize(
    "effect, then",
    [
        (DeleteObject(POD, grace_s=0, lease=LeaseVersion("n", "17")), "DELETE /api/v1/namespaces/default/pods/p"),
        (PatchStatus(POD, "3", {}, LeaseVersion("n", "17")), "PATCH /api/v1/namespaces/default/pods/p/status"),
        (RebindPod(POD, "3", LeaseVersion("n", "17")), "DELETE /api/v1/namespaces/default/pods/p"),
    ],
)
def test_an_effect_that_depends_on_a_lease_reads_it_first(effect: Any, then: str) -> None:
    same: Any = Answers(msgspec.json.encode({"metadata": {"name": "n", "resourceVersion": "17"}}))
    asyncio.run(ApiPort(same, KINDS).perform(effect))
    assert same.paths == [LEASE, then]
    for answer in (
        msgspec.json.encode({"metadata": {"name": "n", "resourceVersion": "18"}}),
        ApiError(404, "NotFound", "not found"),
    ):
        other: Any = Answers(answer)
        with pytest.raises(RefusedError, match="its lease has been written since"):
            asyncio.run(ApiPort(other, KINDS).perform(effect))
        assert other.paths == [LEASE]


# Evictions


def test_a_pod_is_evicted_by_its_subresource_for_its_uid_only() -> None:
    client: Any = Answers(b"{}")
    assert asyncio.run(ApiPort(client, KINDS).perform(EvictManagedPod(POD))) == WriteResult(POD, None)
    assert client.paths == ["POST /api/v1/namespaces/default/pods/p/eviction"]
    (sent,) = client.bodies
    assert (sent["apiVersion"], sent["kind"], sent["metadata"]["name"]) == ("policy/v1", "Eviction", "p")
    assert sent["deleteOptions"] == {"preconditions": {"uid": "u"}}


def test_an_eviction_that_a_budget_refuses_is_refused_and_one_of_a_pod_that_is_gone_is_done() -> None:
    client: Any = Answers(ApiError(429, "TooManyRequests", "the budget does not allow it"))
    with pytest.raises(RefusedError, match="the budget does not allow it"):
        asyncio.run(ApiPort(client, KINDS).perform(EvictManagedPod(POD)))
    gone: Any = Answers(ApiError(404, "NotFound", "not found"))
    assert asyncio.run(ApiPort(gone, KINDS).perform(EvictManagedPod(POD))) == WriteResult(POD, None)


class GrowingServer:
    """A server that serves one kind more once `defined`, with an object that waits to be let go."""

    def __init__(self) -> None:
        self.defined = False
        self.patched = asyncio.Event()

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        if method == "PATCH":
            assert path.endswith("/namespaces/default/bars/test")
            self.patched.set()
            return body("u")
        return msgspec.json.encode(self._answer(path))

    def _answer(self, path: str) -> Any:
        verbs = ["list", "watch"]
        match path:
            case "/apis":
                groups = [{"preferredVersion": {"groupVersion": "company.com/v1"}}]
                return {"groups": groups if self.defined else []}
            case "/api/v1":
                return {"groupVersion": "v1", "resources": []}
            case "/apis/company.com/v1":
                bars = {"name": "bars", "kind": "Bar", "namespaced": True, "verbs": verbs}
                return {"groupVersion": "company.com/v1", "resources": [bars]}
            case _:
                raise ApiError(404, "NotFound", path)

    @asynccontextmanager
    async def stream(self, path: str, **_: Any) -> AsyncIterator[Any]:
        waiting = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["orphan"], "resourceVersion": "7"}
        meta = {"name": "test", "namespace": "default", "uid": "u", **waiting}
        object_ = {"apiVersion": "company.com/v1", "kind": "Bar", "metadata": meta}
        mark = {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}
        frames = [{"type": "ADDED", "object": object_}] if path.endswith("/bars") else []
        frames.append({"type": "BOOKMARK", "object": {"metadata": mark}})
        yield Lines([msgspec.json.encode(one) for one in frames])


class Lines:
    def __init__(self, lines: list[bytes]) -> None:
        self._lines = lines

    async def batch(self) -> list[bytes]:
        if not self._lines:
            await asyncio.Event().wait()
        lines, self._lines = self._lines, []
        return lines


def test_an_object_of_a_kind_that_was_defined_later_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "LOOK_AGAIN_S", 0.05)

    async def story() -> None:
        server: Any = GrowingServer()
        running = asyncio.create_task(controllers.ApiControllers(server, []).run())
        await asyncio.sleep(0.2)
        server.defined = True
        async with asyncio.timeout(10):
            await server.patched.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())
