"""APIs of other servers: who asks, what is passed on, what discovery says, and that a bad server harms only itself.

tests/kubernetes/test_aggregation.py does the same with kube-apiserver as the other server.
"""

import asyncio
import errno
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from server.http.kubelets import Answer, Asked, Kubelet, kubelet, saying
from server.http.test_pod_streams import SPDY
from server.http.world import NOW_NS, Door, World, told, world
from situate.server.admission.webhooks.endpoints import UnresolvedError
from situate.server.aggregation import availability
from situate.server.aggregation.apis import AggregatedApi
from situate.server.aggregation.availability import AvailabilityController
from situate.server.aggregation.connector import ApiServerConnector, user_headers
from situate.server.aggregation.discovered import MAX_RESOURCES
from situate.server.http import aggregated
from situate.server.http.forwarding import REDIRECTED, SWITCHED
from situate.server.kubelet.connection import NodeConnection
from situate.server.requests import SYSTEM, Caller, Object, Target
from situate.server.resources import BY_KIND

RESOURCE = BY_KIND["apiregistration.k8s.io/v1", "APIService"]
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
API = "/apis/example.com/v1"
VERBS = ["get", "list"]
LIST = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": "example.com/v1",
    "resources": [
        {
            "name": "things",
            "singularName": "thing",
            "namespaced": True,
            "kind": "Thing",
            "verbs": VERBS,
            "shortNames": ["th"],
            "categories": ["all"],
        },
        {"name": "things/scale", "singularName": "", "namespaced": True, "kind": "Scale", "group": "autoscaling",
         "version": "v1", "verbs": ["get"]},
    ],
}  # fmt: skip


def answered(body: bytes, code: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (code, len(body), body)


def listing(**more: Any) -> bytes:
    return answered(json.dumps(LIST | more).encode())


class Beside(ApiServerConnector):
    """The other server is on loopback, without TLS."""

    server: Kubelet
    resolved = True

    def __init__(self) -> None:
        """Nothing is resolved."""

    async def connect(self, api: AggregatedApi) -> NodeConnection:
        if not self.resolved:
            raise UnresolvedError('service "other" not found')
        return await self.server.connect(api.name, "serve")


def service(group: str = "example.com", **spec: Any) -> Object:
    known = {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{group}"},
        "spec": {**known, "service": {"namespace": "default", "name": "other", "port": 443}, **spec},
    }


class Story:
    def __init__(self, here: World, server: Kubelet, beside: Beside) -> None:
        self.here, self.server, self.beside = here, server, beside
        assert here.aggregation is not None
        self._controller = AvailabilityController(here.registry, *here.aggregation, lambda: NOW_NS)

    async def add(self, **spec: Any) -> None:
        one = service(**spec)
        await self.here.registry.create(Target(RESOURCE), one, SYSTEM)

    async def look(self) -> None:
        """Ask the other server what it serves."""
        await self._controller.look()

    async def run(self) -> None:
        await self._controller.run()

    async def condition(self, name: str = "v1.example.com") -> tuple[str, str, str]:
        status = (await self.here.get(f"{SERVICES}/{name}")).json["status"]
        (one,) = status["conditions"]
        return one["status"], one["reason"], one["message"]


@asynccontextmanager
async def beside(answer: Answer, **how: Any) -> AsyncIterator[Story]:
    connector = Beside()
    async with kubelet(answer) as server, world(servers=lambda _: connector, **how) as here:
        connector.server = server
        yield Story(here, server, connector)


def path_of(asked: Asked) -> str:
    return asked.first.split(" ")[1]


async def serving(asked: Asked) -> None:
    """Discovery, and an object that is the request's body."""
    if path_of(asked) == API:
        asked.writer.write(listing())
    else:
        size = int(asked.headers.get("content-length", "0"))
        asked.writer.write(answered(await asked.reader.readexactly(size) or b'{"kind":"Thing"}', b"201 Created"))
    await asked.writer.drain()


def test_a_request_reaches_the_other_server_with_its_user() -> None:
    async def story() -> None:
        async with beside(serving, door=Door(groups=("a", "b"))) as one:
            await one.add()
            await one.look()
            assert await one.condition() == ("True", "Passed", "all checks passed")
            headers = {"Authorization": "Bearer mine", "X-Remote-User": "root", "x-remote-group": "system:masters"}
            reply = await one.here.ask("POST", f"{API}/namespaces/n%20/things?dryRun=All", {"x": 1}, headers)
            assert (reply.code, reply.json) == (201, {"x": 1})
            asked = one.server.asked[-1]
            assert asked.first == f"POST {API}/namespaces/n%20/things?dryRun=All HTTP/1.1"
            assert asked.headers["x-remote-user"] == "alice"
            assert asked.headers["x-remote-group"] == "b"  # the last of them
            assert "authorization" not in asked.headers
            one.here.door.barred = ("get",)
            assert (await one.here.get(f"{API}/things/a")).code == 403
            assert one.server.asked[-1] is asked

    told(story)


def test_a_new_api_service_is_looked_at_when_it_comes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(availability, "PAUSE_S", 0.01)
    monkeypatch.setattr(availability, "CHECK_S", 1000.0)

    async def story() -> None:
        async with beside(serving) as one:
            running = asyncio.create_task(one.run())
            await asyncio.sleep(0.1)
            await one.add()
            async with asyncio.timeout(20.0):
                while "status" not in (await one.here.get(f"{SERVICES}/v1.example.com")).json:
                    await asyncio.sleep(0.01)
            assert (await one.condition())[0] == "True"
            await asyncio.sleep(0.1)
            running.cancel()

    told(story)
    assert [one.message for one in caplog.records if one.levelname in ("WARNING", "ERROR")] == []


def test_headers_name_every_user_and_no_user_adds_a_header() -> None:
    caller = Caller("zoë", ("g", "h"), "7", {"example.com/key": ("1", "2")})
    assert user_headers(caller) == [
        ("X-Remote-User", "zoë".encode().decode("latin-1")),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Group", "g"),
        ("X-Remote-Group", "h"),
        ("X-Remote-Extra-example.com%2Fkey", "1"),
        ("X-Remote-Extra-example.com%2Fkey", "2"),
    ]
    with pytest.raises(ValueError, match="control characters"):
        user_headers(Caller("eve\r\nX-Remote-Group: system:masters"))
    for spaced in (" system:masters", "system:masters ", "\u00a0system:masters"):
        with pytest.raises(ValueError, match="begins or ends with a space"):
            user_headers(Caller("eve", (spaced,)))


def test_discovery_has_what_the_other_server_serves() -> None:
    async def story() -> None:
        async with beside(serving) as one:
            await one.add()
            await one.look()
            group = next(each for each in (await one.here.get("/apis")).json["groups"] if each["name"] == "example.com")
            assert group["preferredVersion"]["groupVersion"] == "example.com/v1"
            plain = (await one.here.get(API)).json["resources"]
            assert [(row["name"], row["kind"]) for row in plain] == [("things", "Thing"), ("things/scale", "Scale")]
            (version,) = await _aggregated(one)
            assert version["freshness"] == "Current"
            (thing,) = version["resources"]
            assert (thing["resource"], thing["scope"], thing["shortNames"]) == ("things", "Namespaced", ["th"])
            assert thing["subresources"][0]["responseKind"]["group"] == "autoscaling"
            index = (await one.here.get("/openapi/v3")).json["paths"]
            assert index["apis/example.com/v1"]["serverRelativeURL"].startswith(f"/openapi/v3{API}?hash=")
            await one.here.get(index["apis/example.com/v1"]["serverRelativeURL"])
            assert path_of(one.server.asked[-1]) == f"/openapi/v3{API}"
            await one.here.ask("DELETE", f"{SERVICES}/v1.example.com")
            assert (await one.here.get(API)).code == 404
            assert (await one.here.get(f"{API}/things")).code == 404

    told(story)


async def _aggregated(one: Story) -> list[dict[str, Any]]:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    items = (await one.here.get("/apis", accept)).json["items"]
    found: list[dict[str, Any]] = next(each["versions"] for each in items if each["metadata"]["name"] == "example.com")
    return found


@pytest.mark.parametrize(
    "answer, why",
    [
        (answered(b"{}", b"503 Service Unavailable"), "bad status: 503"),
        (answered(b"hello"), "not an APIResourceList: JSON is malformed"),
        (answered(b"[" * 100_000), "not an APIResourceList"),
        (listing(kind="PodList"), "not the APIResourceList of example.com/v1"),
        (listing(groupVersion="apps/v1"), "not the APIResourceList of example.com/v1"),
        (listing(resources=[{"name": 1}]), "not an APIResourceList: Expected `str`, got `int`"),
        (listing(resources=[{"name": "x"}] * (MAX_RESOURCES + 1)), "1001 resources, where 1000 are allowed"),
        (answered(b" " * (availability.ANSWER_BYTES + 1)), "the answer is longer than 1048576 bytes"),
        (b"SSH-2.0\r\n\r\n", "the answer is not HTTP/1.1"),
        (b"", "ended early"),
    ],
)
def test_a_server_that_does_not_answer_well_is_not_available(answer: bytes, why: str) -> None:
    async def story() -> None:
        async with beside(saying(answer)) as one:
            await one.add()
            await one.look()
            status, reason, message = await one.condition()
            assert (status, reason) == ("False", "FailedDiscoveryCheck")
            assert message.startswith(f"failing or missing response from https://other.default.svc:443{API}: ")
            assert why in message
            count = len(one.server.asked)
            reply = await one.here.get(f"{API}/things")
            assert reply.code == 503
            assert why in reply.message
            assert len(one.server.asked) == count
            (version,) = await _aggregated(one)
            assert version == {"version": "v1", "freshness": "Stale"}
            assert (await one.here.get("/api/v1/namespaces")).code == 200

    told(story)


def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "ANSWER_S", 0.2)

    async def silent(_: Asked) -> None:
        await asyncio.sleep(60)

    async def story() -> None:
        async with beside(silent) as one:
            await one.add()
            await one.look()
            assert (await one.condition())[2].endswith(": no answer in time")

    told(story)


def test_a_service_without_endpoints_and_a_group_of_this_server() -> None:
    async def story() -> None:
        async with beside(serving) as one:
            one.beside.resolved = False
            await one.add()
            await one.add(group="apps")
            await one.look()
            assert await one.condition() == ("False", "EndpointsNotFound", 'service "other" not found')
            assert await one.condition("v1.apps") == ("True", "Local", availability.SERVED_HERE)
            assert (await one.here.get("/apis/apps/v1/deployments")).code == 200

    told(story)


def test_a_condition_is_written_only_when_it_changes() -> None:
    async def story() -> None:
        async with beside(serving) as one:
            await one.add()
            await one.look()
            revision = one.here.registry.cache.revision
            await one.look()
            assert one.here.registry.cache.revision == revision
            one.beside.resolved = False
            await one.look()
            assert (await one.condition())[0] == "False"

    told(story)


def test_a_condition_is_not_written_for_another_endpoint_with_the_same_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with beside(serving) as one:
            addresses = iter(("10.0.0.1", "10.0.0.2"))

            async def connect(_: AggregatedApi) -> NodeConnection:
                raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed ('{next(addresses)}', 443)")

            monkeypatch.setattr(one.beside, "connect", connect)
            await one.add()
            await one.look()
            revision = one.here.registry.cache.revision
            assert (await one.condition())[2].endswith(": connection refused")
            await one.look()
            assert one.here.registry.cache.revision == revision
            assert next(addresses, None) is None

    told(story)


def test_a_server_keeps_only_so_many_requests_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregated, "REQUESTS_PER_API", 1)

    async def story() -> None:
        go, begun = asyncio.Event(), asyncio.Event()

        async def slow(asked: Asked) -> None:
            if path_of(asked) != API:
                begun.set()
                await go.wait()
            await serving(asked)

        async with beside(slow) as one:
            await one.add()
            await one.look()
            first = asyncio.create_task(one.here.get(f"{API}/things"))
            await begun.wait()
            assert (await one.here.get(f"{API}/things")).code == 429
            go.set()
            assert (await first).code == 201
            assert (await one.here.get(f"{API}/things")).code == 201

    told(story)


@pytest.mark.parametrize(
    "head, why",
    [
        (b"302 Found\r\nLocation: https://elsewhere/", REDIRECTED),
        (b"101 Switching Protocols\r\nUpgrade: websocket", SWITCHED),
    ],
)
def test_the_other_server_sends_no_client_elsewhere(head: bytes, why: str) -> None:
    async def sending(asked: Asked) -> None:
        asked.writer.write(listing() if path_of(asked) == API else b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % head)
        await asked.writer.drain()

    async def story() -> None:
        async with beside(sending) as one:
            await one.add()
            await one.look()
            reply = await one.here.get(f"{API}/things")
            assert (reply.code, reply.message) == (502, why)
            assert "location" not in reply.headers

    told(story)


def test_an_upgrade_is_refused() -> None:
    async def story() -> None:
        async with beside(serving) as one:
            await one.add()
            await one.look()
            assert (await one.here.ask("GET", f"{API}/things/a/exec", headers=SPDY)).code == 400

    told(story)


@pytest.mark.parametrize(
    "path", ["/namespaces/../things", "/namespaces/%2e%2E/things", "/things/a/b/../../c", "/./things"]
)
def test_a_path_that_the_other_server_may_read_as_another_is_refused(path: str) -> None:
    async def story() -> None:
        async with beside(serving) as one:
            await one.add()
            await one.look()
            count = len(one.server.asked)
            assert (await one.here.get(API + path)).code == 400
            assert len(one.server.asked) == count

    told(story)


def test_an_aggregated_api_goes_before_custom_kinds_of_its_group() -> None:
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition: Object = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
        "status": {
            "acceptedNames": names,
            "storedVersions": ["v1"],
            "conditions": [{"type": one, "status": "True"} for one in ("NamesAccepted", "Established")],
        },
    }

    async def story() -> None:
        async with beside(serving) as one:
            resource = BY_KIND["apiextensions.k8s.io/v1", "CustomResourceDefinition"]
            await one.here.registry.create(Target(resource), definition, SYSTEM)
            target = Target(resource, "", "things.example.com")
            await one.here.registry.modify(target, lambda obj, _: {**obj, "status": definition["status"]}, SYSTEM)
            assert (await one.here.get(f"{API}/things")).json["kind"] == "ThingList"
            await one.add()
            await one.look()
            assert (await one.here.get(f"{API}/things")).json["kind"] == "Thing"

    told(story)
