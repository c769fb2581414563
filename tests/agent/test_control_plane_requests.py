"""What an agent asks of an API server, request by request, and what it makes of the answers."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from agent.world import pod
from situate.agent.control_plane import (
    AcquiredLease,
    ControlPlaneError,
    LeaseLostError,
    LeaseRenewal,
    StaleError,
    StatusOrigin,
)
from situate.agent.control_plane_http import LEASE_PATH, TRIES, HttpControlPlane
from situate.core.reconcile.nodes.reports import ACKNOWLEDGED, REPORT, AgentReport
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.wire.errors import MODIFIED

LEASE = f"{LEASE_PATH}/n"
NODE: dict[str, Any] = {"metadata": {"name": "n", "labels": {"a": "1"}}, "status": {"phase": "x"}}


class Server:
    """Objects by path, with versions that a PUT has to know; and answers that are lost or refused."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[Any] = []
        self.refused: dict[tuple[str, str], list[Any]] = {}
        """Statuses or errors to answer with, one after another, instead of doing what was asked."""
        self.after: Callable[[str, str], None] = lambda _method, _path: None
        """Called when something was done, before it is answered."""
        self._version = 0

    async def request(self, method: str, path: str, *, body: bytes = b"", **_: Any) -> bytes:
        self.asked.append((method, path))
        said: Any = json.loads(body or b"null")
        self.bodies.append(said)
        if waiting := self.refused.get((method, path)):
            no = waiting.pop(0)
            raise no if isinstance(no, ApiError) else _error(no)
        found = self.objects.get(path)
        match method:
            case "POST":
                path = f"{path}/{said['metadata']['name']}"
                if path in self.objects:
                    raise _error(409)
            case "PUT" if found is None:
                raise _error(404)
            case "PUT" if found is not None and said["metadata"]["resourceVersion"] != _version_of(found):
                raise _error(409)
            case "GET" | "PATCH" | "DELETE" if found is None:
                raise _error(404)
            case "GET":
                return json.dumps(found).encode()
            case "DELETE":
                del self.objects[path]
                return b"{}"
            case "PATCH":
                said = {**(found or {}), **said, "metadata": {**(found or {})["metadata"], **said.get("metadata", {})}}
        self.put(path, said)
        answer = json.dumps(self.objects[path]).encode()
        self.after(method, path)
        return answer

    def put(self, path: str, body: dict[str, Any]) -> None:
        self._version += 1
        meta = {**body["metadata"], "resourceVersion": str(self._version)}
        self.objects[path] = {**body, "metadata": meta}

    def lease(self, **spec: Any) -> None:
        self.put(LEASE, {"metadata": {"name": "n", "managedFields": []}, "spec": spec})


def _version_of(body: dict[str, Any]) -> str:
    return str(body["metadata"]["resourceVersion"])


def _error(status: int) -> ApiError:
    return ApiError(status, "Test", f"status {status}")


@pytest.fixture
def server() -> Server:
    return Server()


def on(server: Server, *stories: Callable[[HttpControlPlane], Awaitable[Any]]) -> list[Any]:
    async def run() -> list[Any]:
        plane = HttpControlPlane(cast(Client, server))
        return [await story(plane) for story in stories]

    return asyncio.run(run())


# -- the lease -------------------------------------------------------------------------------------------------------


def test_a_lease_is_written_on_top_of_what_was_read(server: Server) -> None:
    taken = on(server, lambda plane: plane.acquire_lease("n", 40))
    assert taken == [AcquiredLease(1, 0, 0)]
    assert server.asked == [("GET", LEASE), ("POST", LEASE_PATH)]
    server.asked.clear()
    assert on(server, lambda plane: plane.acquire_lease("n", 15)) == [AcquiredLease(2, 1, 40)]
    assert server.asked == [("GET", LEASE), ("PUT", LEASE)]


def test_a_lease_that_somebody_else_writes_is_read_again_and_not_for_ever(server: Server) -> None:
    server.lease(leaseTransitions=4, leaseDurationSeconds=40)
    server.refused["PUT", LEASE] = [409, 404]
    assert on(server, lambda plane: plane.acquire_lease("n", 40))[0].term == 5
    assert server.asked == [("GET", LEASE), ("PUT", LEASE)] * 3
    server.asked.clear()
    server.refused["PUT", LEASE] = [409] * 100
    with pytest.raises(ControlPlaneError, match="other clients keep writing the lease of node n"):
        on(server, lambda plane: plane.acquire_lease("n", 40))
    assert server.asked == [("GET", LEASE), ("PUT", LEASE)] * TRIES


def test_a_term_whose_answer_was_lost_is_kept_unless_another_agent_had_it_since(server: Server) -> None:
    server.lease(leaseTransitions=4)
    plane = HttpControlPlane(cast(Client, server))

    def lose(_method: str, _path: str) -> None:
        raise _error(0)

    server.after = lose
    with pytest.raises(ControlPlaneError):
        asyncio.run(plane.acquire_lease("n", 40))
    server.after = lambda _method, _path: None
    assert asyncio.run(plane.acquire_lease("n", 40)).term == 5
    assert asyncio.run(plane.acquire_lease("n", 40)).term == 6, "the next time it is another"
    server.after = lose
    with pytest.raises(ControlPlaneError):
        asyncio.run(plane.acquire_lease("n", 40))
    server.after = lambda _method, _path: None
    server.lease(leaseTransitions=8, renewTime="another")
    assert asyncio.run(plane.acquire_lease("n", 40)).term == 9


def test_a_renewal_is_one_request_if_nobody_else_wrote(server: Server) -> None:
    on(
        server,
        lambda plane: plane.acquire_lease("n", 40),
        lambda plane: plane.renew_lease("n", LeaseRenewal(1, 40, 7)),
        lambda plane: plane.renew_lease("n", LeaseRenewal(1, 40)),
    )
    assert server.asked[2:] == [("PUT", LEASE)] * 2
    assert server.objects[LEASE]["metadata"]["annotations"] == {ACKNOWLEDGED: "7"}, "which stays"
    assert server.objects[LEASE]["spec"]["leaseTransitions"] == 1


def test_a_renewal_after_somebody_wrote_reads_the_lease_and_checks_the_term(server: Server) -> None:
    def touch(term: int) -> Callable[[HttpControlPlane], Awaitable[None]]:
        async def story(plane: HttpControlPlane) -> None:
            await plane.acquire_lease("n", 40)
            server.asked.clear()
            server.lease(leaseTransitions=term)
            await plane.renew_lease("n", LeaseRenewal(1, 40))

        return story

    on(server, touch(1))
    assert server.asked == [("PUT", LEASE), ("GET", LEASE), ("PUT", LEASE)]
    server.objects.clear()
    with pytest.raises(LeaseLostError):
        on(server, touch(2))
    assert server.asked == [("PUT", LEASE), ("GET", LEASE)]


def test_a_renewal_gives_up_when_others_keep_writing(server: Server) -> None:
    server.lease(leaseTransitions=1)
    server.refused["PUT", LEASE] = [409] * 100
    with pytest.raises(ControlPlaneError, match="keep writing"):
        on(server, lambda plane: plane.renew_lease("n", LeaseRenewal(1, 40)))
    assert server.asked == [("GET", LEASE), ("PUT", LEASE)] * TRIES


def test_a_lease_that_was_deleted_is_made_again(server: Server) -> None:
    on(server, lambda plane: plane.renew_lease("n", LeaseRenewal(3, 40)))
    assert server.asked == [("GET", LEASE), ("POST", LEASE_PATH)]
    assert server.objects[LEASE]["spec"]["leaseTransitions"] == 3


def test_after_an_error_the_lease_is_read_again(server: Server) -> None:
    async def story(plane: HttpControlPlane) -> None:
        await plane.acquire_lease("n", 40)
        server.refused["PUT", LEASE] = [500]
        with pytest.raises(ControlPlaneError, match="status 500"):
            await plane.renew_lease("n", LeaseRenewal(1, 40))
        server.asked.clear()
        await plane.renew_lease("n", LeaseRenewal(1, 40))

    on(server, story)
    assert server.asked == [("GET", LEASE), ("PUT", LEASE)]


# -- nodes, pods and events ------------------------------------------------------------------------------------------


def test_a_node_is_created_or_else_its_status_is_patched(server: Server) -> None:
    on(server, lambda plane: plane.register_node(NODE))
    assert server.asked == [("POST", "/api/v1/nodes")]
    server.asked.clear()
    where = "/api/v1/nodes/n"
    server.put(f"{where}/status", {"metadata": {}})
    on(server, lambda plane: plane.register_node(NODE, AgentReport(1, 2)))
    assert server.asked == [("POST", "/api/v1/nodes"), ("PATCH", f"{where}/status"), ("GET", where)]
    assert server.objects[f"{where}/status"]["metadata"]["annotations"] == {REPORT: str(AgentReport(1, 2))}


def test_the_labels_of_a_node_are_patched_if_they_differ(server: Server) -> None:
    where = "/api/v1/nodes/n"
    for labels, patched in (({"a": "1", "b": "2"}, False), ({"a": "2"}, True), ({}, True)):
        server.put(where, {"metadata": {"name": "n", "labels": labels}})
        server.put(f"{where}/status", {"metadata": {}})
        server.asked.clear()
        on(server, lambda plane: plane.register_node(NODE))
        assert (("PATCH", where) in server.asked) == patched


def test_a_node_that_is_refused_is_said_to(server: Server) -> None:
    server.refused["POST", "/api/v1/nodes"] = [403]
    with pytest.raises(ControlPlaneError, match="status 403"):
        on(server, lambda plane: plane.register_node(NODE))
    assert server.asked == [("POST", "/api/v1/nodes")]


@pytest.mark.parametrize("status, error", [(404, StaleError), (409, StaleError), (500, ControlPlaneError)])
def test_a_report_or_a_deletion_of_a_pod_that_has_changed_is_stale(
    status: int, error: type[Exception], server: Server
) -> None:
    where = "/api/v1/namespaces/default/pods/p"
    server.refused = {("PATCH", f"{where}/status"): [status], ("DELETE", where): [status]}
    for story in (
        lambda plane: plane.report_status(pod(), {}, StatusOrigin(4)),
        lambda plane: plane.delete_pod(pod()),
    ):
        with pytest.raises(ControlPlaneError) as raised:
            on(server, story)
        assert type(raised.value) is error
    assert server.bodies[0]["metadata"]["annotations"] == {"situate.dev/binding-version": "4"}
    assert server.bodies[1] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "uid-p"}}


def test_a_report_or_a_deletion_that_other_writers_outran_may_be_tried_again(server: Server) -> None:
    where = "/api/v1/namespaces/default/pods/p"
    outrun = ApiError(409, "Conflict", f'Operation cannot be fulfilled on pods "p": {MODIFIED}')
    for method, path, story in (
        ("PATCH", f"{where}/status", lambda plane: plane.report_status(pod(), {}, StatusOrigin(4))),
        ("DELETE", where, lambda plane: plane.delete_pod(pod())),
    ):
        server.refused[method, path] = [outrun]
        with pytest.raises(ControlPlaneError) as raised:
            on(server, story)
        assert type(raised.value) is ControlPlaneError


def test_a_report_without_a_binding_names_none(server: Server) -> None:
    server.put("/api/v1/namespaces/default/pods/p/status", {"metadata": {}})
    on(server, lambda plane: plane.report_status(pod(), {"phase": "Running"}))
    assert server.bodies == [{"metadata": {"uid": "uid-p"}, "status": {"phase": "Running"}}]


def test_what_is_not_there_is_none_and_what_may_not_be_read_is_an_error(server: Server) -> None:
    where = "/api/v1/namespaces/default/configmaps/conf"
    assert on(server, lambda plane: plane.get("ConfigMap", "default", "conf")) == [None]
    server.put(where, {"metadata": {"name": "conf"}})
    assert on(server, lambda plane: plane.get("ConfigMap", "default", "conf"))[0]["metadata"]["name"] == "conf"
    server.refused["GET", where] = [403]
    with pytest.raises(ControlPlaneError, match="status 403"):
        on(server, lambda plane: plane.get("ConfigMap", "default", "conf"))
    with pytest.raises(ValueError, match="an agent does not read a Pod"):
        on(server, lambda plane: plane.get("Pod", "default", "p"))


def test_the_same_event_again_is_counted_and_another_error_is_not_hidden(server: Server) -> None:
    event = {"metadata": {"name": "e", "namespace": "default"}, "lastTimestamp": "now", "count": 1}
    for count in (1, 2, 3):
        on(server, lambda plane: plane.record_event(event))
        assert server.objects["/api/v1/namespaces/default/events/e"]["count"] == count
    server.refused["POST", "/api/v1/namespaces/default/events"] = [403]
    with pytest.raises(ControlPlaneError, match="status 403"):
        on(server, lambda plane: plane.record_event(event))
