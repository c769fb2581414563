"""The subresource proxy of nodes, pods and services."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from server.http.kubelets import Answer, Asked, Kubelet, echo, kubelet, saying
from server.http.test_pod_logs import bound
from server.http.test_pod_streams import SPDY
from server.http.world import PODS, World, told, world
from situate.server.errors import StatusError
from situate.server.http import proxying
from situate.server.http.proxying import parse_target

NODE = "/api/v1/nodes/n/proxy"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nX-Mine: 1\r\nContent-Length: 4\r\n\r\nfine"


@asynccontextmanager
async def behind(answer: Answer, **how: Any) -> AsyncIterator[tuple[World, Kubelet]]:
    async with kubelet(answer) as node, world(nodes=node, **how) as here:
        yield here, node


@pytest.mark.parametrize(
    "path, target",
    [
        ("/", "/"),
        ("/stats/summary?only=1", "/stats/summary?only=1"),
        ("/logs/", "/logs/"),
        ("/a%20b", "/a%20b"),
    ],
)
def test_a_request_to_a_node_reaches_its_kubelet(path: str, target: str) -> None:
    async def story() -> None:
        async with behind(saying(OK)) as (here, node):
            headers = {"Authorization": "Bearer mine", "X-Own": "2", "Impersonate-User": "", "Accept": "a/b"}
            reply = await here.ask("GET", NODE + path, headers=headers)
            assert (reply.code, reply.body, reply.headers["content-type"]) == (200, b"fine", "text/x")
            assert reply.headers["x-mine"] == "1"
            asked = node.asked[0]
            assert asked.first == f"GET {target} HTTP/1.1"
            assert asked.headers["x-own"] == "2"
            assert asked.headers["x-forwarded-for"] == "127.0.0.1"
            assert "authorization" not in asked.headers

    told(story)


def test_a_page_without_a_path_is_redirected_to_the_path_with_a_slash() -> None:
    async def story() -> None:
        async with behind(saying(OK)) as (here, node):
            for method in ("GET", "HEAD"):
                reply = await here.ask(method, f"{NODE}?x=1")
                assert (reply.code, reply.headers["location"]) == (301, f"{NODE}/?x=1")
            assert not node.asked
            assert (await here.ask("POST", NODE, {})).code == 200

    told(story)


def test_a_body_goes_along_and_an_error_comes_back_as_it_is() -> None:
    async def answer(asked: Asked) -> None:
        body = await asked.reader.readexactly(int(asked.headers["content-length"]))
        asked.writer.write(b"HTTP/1.1 418 Teapot\r\nTransfer-Encoding: chunked\r\n\r\n")
        asked.writer.write(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        await asked.writer.drain()

    async def story() -> None:
        async with behind(answer) as (here, _):
            reply = await here.ask("POST", f"{NODE}/x", b"something")
            assert (reply.code, reply.body) == (418, b"something")

    told(story)


def test_an_answer_that_is_cut_off_is_not_taken_for_a_whole_one() -> None:
    async def story() -> None:
        async with behind(saying(OK[:-2])) as (here, _), here.line() as line:
            line.request("GET", f"{NODE}/")
            with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError, ValueError)):
                await line.reply()

    told(story)


def test_an_upgrade_becomes_a_tunnel_and_needs_the_right_to_create() -> None:
    async def story() -> None:
        async with behind(echo) as (here, node):
            async with here.line() as line:
                line.request("GET", f"{NODE}/exec/a/b/c", headers=SPDY)
                assert (await line.head()).code == 101
                line.send(b"hello")
                assert await line.reader.readexactly(5) == b"hello"
            assert node.asked[0].first == "GET /exec/a/b/c HTTP/1.1"
            here.door.barred = ("create",)
            assert (await here.ask("GET", f"{NODE}/exec/a/b/c", headers=SPDY)).code == 403
            node.answer = saying(OK)
            assert (await here.get(f"{NODE}/")).code == 200

    told(story)


def test_a_node_that_cannot_be_reached() -> None:
    async def story() -> None:
        async with behind(echo) as (here, _):
            reply = await here.get("/api/v1/nodes/gone/proxy")
            assert (reply.code, reply.message) == (503, "it is gone")
            assert (await here.get("/api/v1/nodes/n:1/proxy")).message == "only the kubelet's port of node n is served"

    told(story)


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.1.1", "::1", "224.0.0.1", "0.0.0.0", "", "web"])
def test_addresses_of_the_server_itself_and_of_its_links_are_not_reached(address: str) -> None:
    assert not proxying.is_allowed(address)


def test_a_pod_without_an_address_is_not_reached() -> None:
    async def story() -> None:
        async with behind(echo) as (here, _):
            await _pod(here, "", 80)
            reply = await here.get(f"{PODS}/p:80/proxy/")
            assert (reply.code, reply.message) == (400, "address not allowed")

    told(story)


@pytest.fixture
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the address, it is loopback."""
    connect = asyncio.open_connection
    monkeypatch.setattr(proxying, "open_connection", lambda _, port, **how: connect("127.0.0.1", port, **how))


@pytest.mark.usefixtures("_here")
def test_a_request_to_a_pod_reaches_its_port() -> None:
    async def story() -> None:
        async with behind(saying(OK)) as (here, app):
            await _pod(here, "10.0.0.2", app.port)
            for name in ("p", f"p:{app.port}", f"http:p:{app.port}"):
                assert (await here.get(f"{PODS}/{name}/proxy/page?x=1")).body == b"fine"
            assert {asked.first for asked in app.asked} == {"GET /page?x=1 HTTP/1.1"}
            assert (await here.get(f"{PODS}/p:x/proxy/")).message == '"x" is not a port'

    told(story)


def test_a_pod_that_names_no_port_is_reached_at_that_of_the_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def refused(_: str, port: int, **how: object) -> None:
        asked.append(port)
        raise ConnectionRefusedError("refused")

    monkeypatch.setattr(proxying, "open_connection", refused)

    async def story() -> None:
        async with behind(echo) as (here, _):
            await _pod(here, "10.0.0.2", None)
            for name in ("p", "http:p:", "https:p:"):
                assert (await here.get(f"{PODS}/{name}/proxy/")).code == 503
            assert asked == [80, 80, 443]

    told(story)


@pytest.mark.usefixtures("_here")
def test_a_request_to_a_service_reaches_one_of_its_endpoints() -> None:
    services, slices = (
        "/api/v1/namespaces/default/services",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    )
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}}

    async def story() -> None:
        async with behind(saying(OK)) as (here, app):
            assert (await here.ask("POST", services, service)).code == 201
            reply = await here.get(f"{services}/web/proxy/")
            assert (reply.code, reply.message) == (503, 'no endpoints available for service "web"')
            slice_ = {
                "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4",
                "ports": [{"name": "http", "port": app.port}],
                "endpoints": [
                    {"addresses": ["10.0.0.1"], "conditions": {"ready": False}},
                    {"addresses": ["10.0.0.2"], "conditions": {"ready": True}},
                ],
            }
            assert (await here.ask("POST", slices, slice_)).code == 201
            for name in ("web", "web:80", "web:http"):
                assert (await here.get(f"{services}/{name}/proxy/")).body == b"fine"
            assert "no service port" in (await here.get(f"{services}/web:81/proxy/")).message

    told(story)


async def _pod(here: World, address: str, port: int | None) -> None:
    obj = bound("p", "c")
    if port is not None:
        obj["spec"]["containers"][0]["ports"] = [{"containerPort": port}]
    assert (await here.ask("POST", PODS, obj)).code == 201
    if address:
        status = {**obj, "status": {"podIP": address, "podIPs": [{"ip": address}]}}
        assert (await here.ask("PUT", f"{PODS}/p/status", status)).code == 200


@pytest.mark.parametrize("text", ["ftp:p:1", "a:b:c:d", "http::1", ":1"])
def test_a_target_that_is_none(text: str) -> None:
    with pytest.raises(StatusError, match="invalid proxy request"):
        parse_target(text)
