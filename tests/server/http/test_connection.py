import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import uvloop

from server.http.test_server import NAMES, trusting
from server.http.world import PODS, WITHIN_S, told, world
from situate.server.http import acceptor, responses
from situate.server.http.connection import Connection
from situate.server.http.settings import Limits
from situate.server.identity.pki.authority import open_authority


@pytest.mark.parametrize(
    "data, code",
    [
        pytest.param(b"nonsense\r\n\r\n", 400, id="no HTTP at all"),
        pytest.param(b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 400, id="a version that is none"),
        pytest.param(b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, id="a zero byte in the path"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", 431, id="a huge header"
        ),
        pytest.param(b"GET /" + b"y" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431, id="a huge path"),
        pytest.param(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            400,
            id="two lengths",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
            id="a length and chunks",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400, id="a negative length"),
        pytest.param(b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400, id="a space before the colon"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, id="no host"),
        pytest.param(
            b"POST " + PODS.encode() + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
            400,
            id="a chunk without a size",
        ),
    ],
)
def test_what_is_no_http_is_answered_with_a_status(data: bytes, code: int) -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            line.send(data)
            reply = await line.reply()
            assert reply.code == code
            assert reply.message

    told(story)


def test_headers_that_never_end_are_not_waited_for() -> None:
    async def story() -> None:
        async with world(limits=Limits(head_s=5.0)) as here, here.line() as line:
            line.send(b"GET / HTTP/1.1\r\nHost: loc")
            listener = here.server._listener
            assert listener is not None
            while not any(getattr(one, "head_since", 0.0) for one in listener.connections):
                await asyncio.sleep(0)
            now = asyncio.get_running_loop().time()
            listener.sweep(now + 1.0)
            line.send(b"alh")
            listener.sweep(now + 6.0)
            assert await line.ended()

    told(story)


def test_one_connection_too_many_is_closed_and_the_others_go_on() -> None:
    async def story() -> None:
        async with world(limits=Limits(connections=2)) as here, here.line() as one, here.line() as two:
            for line in (one, two):
                line.request("GET", "/version")
                assert (await line.reply()).code == 200
            async with here.line() as three:
                assert await three.ended()
            one.request("GET", "/version")
            assert (await one.reply()).code == 200

    told(story)


def test_a_refused_request_whose_body_is_here_keeps_the_connection() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            for _ in range(2):
                line.request("POST", "/api/v1/nonsense", {"a": 1})
                assert (await line.reply()).code == 404

    told(story)


def test_requests_on_one_connection_are_answered_in_their_order() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            line.request("GET", "/version")
            line.request("GET", "/api/v1/nonsense")
            line.request("GET", "/healthz")
            assert [(await line.reply()).code for _ in range(3)] == [200, 404, 200]

    told(story)


def test_a_client_that_asks_and_never_reads_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "SLOW_CLIENT_S", 0.05)

    async def story() -> None:
        async with world() as here, here.line(limit=1024) as line:
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(500):
                line.request("GET", "/openapi/v3/api/v1")
            listener = here.server._listener
            assert listener is not None
            while listener.connections:
                await asyncio.sleep(0.01)
            assert here.server.metrics.count() < 500

    told(story)


def test_a_client_that_wants_to_close_is_let_go() -> None:
    async def story() -> None:
        async with world() as here, here.line() as line:
            line.request("GET", "/version", headers={"Connection": "close"})
            reply = await line.reply()
            assert reply.headers["connection"] == "close"
            assert await line.ended()

    told(story)


@pytest.mark.parametrize(
    "loop", [pytest.param(asyncio.new_event_loop, id="asyncio"), pytest.param(uvloop.new_event_loop, id="uvloop")]
)
def test_a_connection_that_closes_and_whose_client_does_not_answer_can_be_aborted(
    loop: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TLS, where a close waits for the client to read the rest, and to close, too."""
    monkeypatch.setattr(acceptor, "SHUTDOWN_S", 60.0)

    async def story() -> None:
        authority = open_authority(tmp_path / "pki", datetime.now(UTC))
        tls, client_tls = authority.tls(NAMES, datetime.now(UTC)), trusting(authority, tmp_path)
        async with world(tls=tls, client_tls=client_tls) as here, here.line(limit=1024) as line:
            line.request("GET", "/version")
            assert (await line.reply()).code == 200
            line.writer.transport.pause_reading()  # type: ignore[attr-defined]
            assert here.server._listener is not None
            (open_,) = here.server._listener.connections
            assert isinstance(open_, Connection)
            transport = cast(asyncio.Transport, open_.transport)
            transport.write(b"x" * (8 << 20))
            transport.close()
            open_.abort()
            while here.server._listener.connections:
                await asyncio.sleep(0.01)
            line.writer.transport.abort()
            await asyncio.sleep(0)

    async def within() -> None:
        async with asyncio.timeout(WITHIN_S):
            await story()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(within())
