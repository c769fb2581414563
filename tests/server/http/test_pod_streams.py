"""exec, attach and port-forward: a tunnel between the client and the node's kubelet."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from server.http.kubelets import Answer, Asked, Kubelet, echo, kubelet, saying
from server.http.test_pod_logs import bound
from server.http.world import PODS, Door, World, pod, told, world
from situate.server.http.settings import Limits

SPDY = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
WEBSOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
}
EXEC = f"{PODS}/p/exec?command=ls&command=-l&stdin=true&stdout=true&container=c"


@asynccontextmanager
async def running(answer: Answer, **how: Any) -> AsyncIterator[tuple[World, Kubelet]]:
    async with kubelet(answer) as node, world(nodes=node, **how) as here:
        assert (await here.ask("POST", PODS, bound("p", "c"))).code == 201
        yield here, node


@pytest.mark.parametrize("method, headers", [("POST", SPDY), ("GET", WEBSOCKET)], ids=["SPDY", "WebSocket"])
def test_bytes_pass_in_both_directions_once_the_kubelet_has_switched(method: str, headers: dict[str, str]) -> None:
    async def story() -> None:
        async with running(echo) as (here, node), here.line() as line:
            line.request(method, EXEC, headers={**headers, "Authorization": "Bearer secret", "Content-Type": ""})
            reply = await line.head()
            assert (reply.code, reply.headers["x-mine"]) == (101, "1")
            assert "audit-id" in reply.headers
            for data in (b"one", b"two" * 100_000):
                line.send(data)
                assert await line.reader.readexactly(len(data)) == data
            asked = node.asked[0]
            assert asked.first == f"{method} /exec/default/p/c?input=1&output=1&command=ls&command=-l HTTP/1.1"
            assert asked.headers["upgrade"] == headers["Upgrade"]
            assert "authorization" not in asked.headers
            assert node.purposes == [("n", "run a command in")]

    told(story)


@pytest.mark.parametrize(
    "path, target",
    [
        ("exec?command=id&stdout=1&stderr=1&tty=1", "/exec/default/p/c?output=1&tty=1&command=id"),
        ("exec?command=id&stdout=true&stderr=false", "/exec/default/p/c?output=1&command=id"),
        ("attach", "/attach/default/p/c?output=1&error=1"),
        ("attach?stdin=1&container=c", "/attach/default/p/c?input=1"),
        ("portforward?ports=80&ports=81", "/portForward/default/p?port=80&port=81"),
        ("portforward", "/portForward/default/p"),
    ],
)
def test_what_the_kubelet_is_asked(path: str, target: str) -> None:
    async def story() -> None:
        async with running(echo) as (here, node), here.line() as line:
            line.request("POST", f"{PODS}/p/{path}", headers=SPDY)
            assert (await line.head()).code == 101
            assert node.asked[0].first.split()[1] == target

    told(story)


@pytest.mark.parametrize(
    "path, headers, code, message",
    [
        ("p/exec?stdout=1", SPDY, 400, "you must specify at least 1 command for the container"),
        ("p/exec?command=x", SPDY, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("p/exec?command=x&stdout=1&container=d", SPDY, 400, "container d is not valid for pod p"),
        ("p/exec?command=x&stdout=1", {}, 400, "Upgrade request required"),
        ("q/exec?command=x&stdout=1", SPDY, 404, 'pods "q" not found'),
        ("waiting/attach", SPDY, 400, "pod waiting does not have a host assigned"),
    ],
)
def test_a_request_that_makes_no_sense(path: str, headers: dict[str, str], code: int, message: str) -> None:
    async def story() -> None:
        async with running(echo) as (here, node):
            await here.ask("POST", PODS, pod("waiting"))
            reply = await here.ask("POST", f"{PODS}/{path}", headers=headers)
            assert (reply.code, reply.message) == (code, message)
            assert not node.asked

    told(story)


@pytest.mark.parametrize(
    "said, code, message",
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno such c", 404, "no such c"),
        (b'HTTP/1.1 403 Forbidden\r\nContent-Length: 17\r\n\r\n{"message": "no"}', 403, "no"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 502, "the kubelet answered 200"),
        (b"nonsense\r\n\r\n", 503, "did not answer: the answer is not HTTP/1.1"),
        (b"", 503, "did not answer: the head of the answer ended early"),
    ],
    ids=["404", "a Status", "no switch", "no HTTP", "nothing"],
)
def test_a_kubelet_that_does_not_switch(said: bytes, code: int, message: str) -> None:
    async def story() -> None:
        async with running(saying(said)) as (here, _):
            reply = await here.ask("POST", EXEC, headers=SPDY)
            assert reply.code == code
            assert reply.message.endswith(message)

    told(story)


def test_a_get_needs_the_right_to_create_as_well() -> None:
    async def story() -> None:
        async with running(echo) as (here, node):
            here.door.barred = ("create",)
            reply = await here.ask("GET", EXEC, headers=WEBSOCKET)
            assert reply.code == 403
            assert 'cannot create resource "pods/exec"' in reply.message
            assert not node.asked

    told(story)


def test_the_tunnel_ends_with_either_side() -> None:
    over = asyncio.Event()

    async def answer(asked: Asked) -> None:
        await echo(asked)
        over.set()

    async def story() -> None:
        async with running(answer) as (here, _), here.line() as line:
            line.request("POST", EXEC, headers=SPDY)
            await line.head()
            line.close()
            await over.wait()
        async with running(saying(b"HTTP/1.1 101 x\r\n\r\nbye")) as (here, _), here.line() as line:
            line.request("POST", EXEC, headers=SPDY)
            await line.head()
            assert await line.reader.read() == b"bye"

    told(story)


def test_a_server_that_stops_ends_its_tunnels() -> None:
    async def story() -> None:
        async with running(echo) as (here, _), here.line() as line:
            line.request("POST", EXEC, headers=SPDY)
            await line.head()
            await here.server.stop()
            assert await line.ended()

    told(story)


def test_an_idle_tunnel_is_closed() -> None:
    async def story() -> None:
        async with running(echo, limits=Limits(tunnel_idle_s=0.05)) as (here, _), here.line() as line:
            line.request("POST", EXEC, headers=SPDY)
            await line.head()
            assert await line.ended()

    told(story)


def test_a_user_has_so_many_tunnels_and_no_more() -> None:
    async def story() -> None:
        async with running(echo, limits=Limits(tunnels_per_user=1, refused_pause_s=0.0)) as (here, _):
            async with here.line() as line:
                line.request("POST", EXEC, headers=SPDY)
                assert (await line.head()).code == 101
                assert (await here.ask("POST", EXEC, headers=SPDY)).code == 429
                assert (await here.get(f"{PODS}/p")).code == 200
            async with here.line() as line:  # the first one is over, soon
                code = 429
                while code == 429:
                    line.request("POST", EXEC, headers=SPDY)
                    reply = await line.head()
                    code = reply.code
                    await line.reader.readexactly(int(reply.headers.get("content-length", "0")))
                assert code == 101

    told(story)


def test_who_enters_a_container_is_in_the_audit_log() -> None:
    async def story() -> None:
        door = Door()
        async with running(saying(b"HTTP/1.1 101 x\r\n\r\n"), door=door) as (here, _), here.line() as line:
            line.request("GET", EXEC, headers=WEBSOCKET)
            await line.head()
            assert await line.ended()
        last = door.audit.records[-1]
        assert (last.code, last.attributes.verb, last.attributes.subresource) == (101, "get", "exec")

    told(story)
