"""The control plane as agents in other processes have it: over HTTPS, as a node and nobody else."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import Any, TypeVar, cast

import pytest

from agent.test_journey import Cluster, _as_node
from situate.agent.control_plane import (
    AcquiredLease,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    PodUpdate,
    SnapshotUpdate,
    StaleError,
    StatusOrigin,
)
from situate.agent.control_plane_http import HttpControlPlane, cluster_of, own_authorities
from situate.agent.desired_state import NodeConfiguration, decode_snapshot
from situate.agent.node_objects import NodeShape, hollow_node
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT, AgentReport
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.kubeconfig import find_access
from situate.wire.metadata import Metadata
from situate.wire.snapshot_increments import IncrementReader

NODE = "own"
WITHIN_S = 30.0
GOODBYE_S = 0.2
"""A watch that is left says so to the other side, after everything here is closed; nobody can be asked when it has."""
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
RUNNING: dict[str, Any] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}

T = TypeVar("T")
Story = Callable[[HttpControlPlane], Awaitable[None]]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API with nothing beside it."""
    directory = tmp_path_factory.mktemp("api")
    words = [sys.executable, "-m", "situate", "server", "--port", "0", "--dir", ".situate", "--fast-recovery"]
    with subprocess.Popen(words, cwd=directory, stderr=subprocess.DEVNULL) as server:
        state = directory / ".situate" / "server.json"

        async def started() -> None:
            async with asyncio.timeout(WITHIN_S):
                while not state.exists():
                    await asyncio.sleep(0.05)

        asyncio.run(started())
        yield Cluster(directory)
        server.terminate()


def told(api: Cluster, story: Story) -> None:
    """As the node, which is there; and so is a pod on it."""
    access = find_access(str(_as_node(api, NODE)), None, None)

    async def run() -> None:
        async with Client(access, qps=-1) as client, asyncio.timeout(WITHIN_S):
            plane = HttpControlPlane(client)
            await plane.register_node(hollow_node(NODE, NodeShape(), 0, "10.0.0.1"))
            await story(plane)
        await asyncio.sleep(GOODBYE_S)

    asyncio.run(run())


async def first(reads: AsyncIterator[T]) -> T:
    async with aclosing(cast(AsyncGenerator[T, None], reads)) as closing:
        return await anext(closing)


def made(api: Cluster, name: str) -> dict[str, Any]:
    spec = {"nodeName": NODE, "containers": [{"name": "c", "image": "none"}]}
    found: dict[str, Any] = api.api(
        "POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec}
    )
    return found


def test_a_lease_is_taken_in_terms_and_whoever_had_it_is_told(api: Cluster) -> None:
    async def story(plane: HttpControlPlane) -> None:
        first = await plane.acquire_lease(NODE, 40)
        await plane.renew_lease(NODE, LeaseRenewal(first.term, 40, 17))
        other = HttpControlPlane(plane._client)
        second = await other.acquire_lease(NODE, 15)
        assert second == AcquiredLease(first.term + 1, first.term, 40)
        with pytest.raises(LeaseLostError):
            await plane.renew_lease(NODE, LeaseRenewal(first.term, 40))
        await other.renew_lease(NODE, LeaseRenewal(second.term, 15))
        third = await other.acquire_lease(NODE, 15, second.term + 10)
        assert third.term == second.term + 10

    told(api, story)
    lease = api.api("GET", LEASE)
    assert lease["metadata"]["annotations"][ACKNOWLEDGED] == "17"
    assert lease["spec"]["leaseDurationSeconds"] == 15


def test_a_take_whose_answer_is_lost_is_the_same_term_again(api: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(plane: HttpControlPlane) -> None:
        before = await plane.acquire_lease(NODE, 40)
        request, lost = plane._client.request, list[str]()

        async def forgetful(method: str, path: str, **more: Any) -> bytes:
            answer = await request(method, path, **more)
            if method == "PUT" and not lost:
                lost.append(path)
                raise ApiError(0, "Lost", "the connection broke")
            return answer

        monkeypatch.setattr(plane._client, "request", forgetful)
        with pytest.raises(ControlPlaneError):
            await plane.acquire_lease(NODE, 40)
        assert await plane.acquire_lease(NODE, 40) == AcquiredLease(before.term + 1, before.term, 40)
        assert (await plane.acquire_lease(NODE, 40)).term == before.term + 2

    told(api, story)


def test_somebody_else_who_writes_to_the_lease_does_not_take_it(api: Cluster) -> None:
    async def story(plane: HttpControlPlane) -> None:
        taken = await plane.acquire_lease(NODE, 40)
        patch = {"metadata": {"labels": {"seen": "yes"}}}
        await asyncio.to_thread(api.api, "PATCH", LEASE, patch, "application/merge-patch+json")
        await plane.renew_lease(NODE, LeaseRenewal(taken.term, 40))

    told(api, story)
    assert api.api("GET", LEASE)["metadata"]["labels"] == {"seen": "yes"}


def test_an_older_report_loses_and_so_does_one_of_an_agent_that_was_replaced(api: Cluster) -> None:
    pod = made(api, "reported")

    async def story(plane: HttpControlPlane) -> None:
        term = (await plane.acquire_lease(NODE, 40)).term
        body = hollow_node(NODE, NodeShape(), 0, "10.0.0.1")
        await plane.register_node(body, AgentReport(term, 2))
        await plane.report_status(pod, RUNNING, StatusOrigin(1, AgentReport(term, 3)))
        with pytest.raises(StaleError, match=f"report {term}.1 is stale: {term}.2 was taken already"):
            await plane.register_node(body, AgentReport(term, 1))
        with pytest.raises(StaleError, match=f"report {term}.2 is stale: {term}.3 was taken already"):
            await plane.report_status(pod, RUNNING, StatusOrigin(1, AgentReport(term, 2)))
        with pytest.raises(StaleError, match="the report is about binding version 2"):
            await plane.report_status(pod, RUNNING, StatusOrigin(2, AgentReport(term, 4)))
        await plane.report_status(pod, RUNNING, StatusOrigin(1, AgentReport(term, 3)))  # the same again
        await plane.register_node(body, AgentReport(term, 2))
        with pytest.raises(StaleError, match=f"report {term}.3 was taken already, and this one differs"):
            await plane.report_status(pod, {**RUNNING, "message": "other"}, StatusOrigin(1, AgentReport(term, 3)))
        new = (await plane.acquire_lease(NODE, 40)).term
        with pytest.raises(StaleError, match=f"the node's lease is in term {new}"):
            await plane.report_status(pod, RUNNING, StatusOrigin(1, AgentReport(term, 5)))

    told(api, story)
    found = api.api("GET", "/api/v1/namespaces/default/pods/reported")
    assert found["metadata"]["annotations"][REPORT].endswith(".3")


def test_snapshots_are_told_from_a_version_on(api: Cluster) -> None:
    async def story(plane: HttpControlPlane) -> None:
        whole = await first(plane.watch_snapshots(NODE))
        assert decode_snapshot(whole.body or b"").configuration == NodeConfiguration(15, 5)
        uid = (await asyncio.to_thread(made, api, "followed"))["metadata"]["uid"]
        later = await first(plane.watch_snapshots(NODE, whole.version))
        assert later.version > whole.version
        assert decode_snapshot(later.body or b"").bindings[uid] == 1

    told(api, story)


def test_a_watch_reads_whole_snapshots_from_the_increments_that_are_sent(
    api: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[bytes] = []
    read = IncrementReader.line

    def spied(reader: IncrementReader, line: bytes) -> bytes:
        lines.append(line)
        return read(reader, line)

    monkeypatch.setattr(IncrementReader, "line", spied)
    path = f"/apis/situate.dev/v1alpha1/nodesnapshots/{NODE}"

    async def story(plane: HttpControlPlane) -> None:
        for number in range(6):
            await asyncio.to_thread(made, api, f"before-{number}")
        async with aclosing(cast(AsyncGenerator[SnapshotUpdate, None], plane.watch_snapshots(NODE))) as reads:
            assert (await anext(reads)).body is not None
            for name in ("one-more", "and-one"):
                await asyncio.to_thread(made, api, name)
                update = await anext(reads)
                assert json.loads(update.body or b"") == await asyncio.to_thread(api.api, "GET", path)

    told(api, story)
    kinds = [json.loads(line)["object"]["kind"] for line in lines if b'"BOOKMARK"' not in line]
    assert kinds == ["NodeSnapshot", "NodeSnapshotIncrement", "NodeSnapshotIncrement"]


def test_an_increment_that_does_not_apply_brings_the_whole_list(api: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    missed: list[bytes] = []
    read = IncrementReader.line

    def lossy(reader: IncrementReader, line: bytes) -> bytes:
        if b"NodeSnapshotIncrement" in line and not missed:  # as if one before it had been lost
            missed.append(line)
            line = line.replace(b'"fromVersion":"', b'"fromVersion":"9')
        return read(reader, line)

    monkeypatch.setattr(IncrementReader, "line", lossy)

    async def story(plane: HttpControlPlane) -> None:
        for number in range(6):
            await asyncio.to_thread(made, api, f"early-{number}")
        async with aclosing(cast(AsyncGenerator[SnapshotUpdate, None], plane.watch_snapshots(NODE))) as reads:
            version = (await anext(reads)).version
            uid = (await asyncio.to_thread(made, api, "missed"))["metadata"]["uid"]
            update = await anext(reads)
            assert update.version > version
            assert decode_snapshot(update.body or b"").bindings[uid] == 1

    told(api, story)
    assert missed


def test_a_node_sees_itself_and_its_pods(api: Cluster) -> None:
    made(api, "seen")

    async def story(plane: HttpControlPlane) -> None:
        assert (await first(plane.watch_nodes(NODE))).name == NODE
        async with aclosing(cast(AsyncGenerator[PodUpdate, None], plane.watch_pods(NODE))) as reads:
            names = []
            while not (read := await anext(reads)).listed:
                names.append(read.name)
        assert "seen" in names

    told(api, story)


@pytest.mark.parametrize(
    "node, listed, told_of",
    [
        pytest.param("own", False, [("own", None)], id="a node that is missing is reported when the list is complete"),
        pytest.param("own", True, [("own", b"{}")], id="a node that is there is reported once"),
        pytest.param("", False, [], id="who watches all nodes is told of none that is missing"),
    ],
)
def test_a_watch_of_nodes_begins_with(
    node: str, listed: bool, told_of: list[tuple[str, bytes | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def follow(self: HttpControlPlane, kind: object) -> AsyncIterator[tuple[Metadata, bytes | None] | None]:
        if listed:
            yield Metadata(name="own"), b"{}"
        yield None

    monkeypatch.setattr(HttpControlPlane, "_follow", follow)

    async def watched() -> list[tuple[str, bytes | None]]:
        plane = HttpControlPlane(cast(Client, None))
        return [(update.name, update.body) async for update in plane.watch_nodes(node)]

    assert asyncio.run(watched()) == told_of


def test_a_pod_that_has_ended_is_gone_at_once(api: Cluster) -> None:
    pod = made(api, "over")

    async def story(plane: HttpControlPlane) -> None:
        await plane.delete_pod(pod)

    told(api, story)
    left = api.api("GET", "/api/v1/namespaces/default/pods")["items"]
    assert "over" not in [one["metadata"]["name"] for one in left]


def test_pods_are_given_the_tolerations_of_the_profile(api: Cluster) -> None:
    pod = made(api, "tolerant")
    assert {one["tolerationSeconds"] for one in pod["spec"]["tolerations"]} == {5}


def test_a_cluster_is_known_by_its_authority(api: Cluster) -> None:
    own = find_access(str(api.directory / ".situate" / "kubeconfig"), None, None)
    assert len(own_authorities(own)) == 1
    assert cluster_of(own) != own.server
    assert cluster_of(Access("http://127.0.0.1:1")) == "http://127.0.0.1:1"
