"""Ports of a pod through kubectl's tunnel: SPDY in a WebSocket."""

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from situate.agent.port_forward import MOST_STREAMS, NO_WEBSOCKET, PROTOCOL, forward_ports
from situate.agent.spdy import (
    DICTIONARY,
    FIN,
    MOST_FRAME,
    PING,
    RST_STREAM,
    SYN_STREAM,
    VERSION,
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    Opened,
    Ping,
    Reset,
    SpdyError,
)

PORT = 80


class Kubectl:
    """The client's side."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._reader, self._writer = FrameReader(), FrameWriter()

    def opening(self, stream: int, **headers: str) -> bytes:
        block = struct.pack(">I", len(headers))
        for word in (one for pair in headers.items() for one in pair):
            block += struct.pack(">I", len(word)) + word.encode()
        body = (
            struct.pack(">IIH", stream, 0, 0) + self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        )
        return control(SYN_STREAM, body)

    async def connect(self, number: int, port: int = PORT) -> tuple[int, int]:
        """The streams of a connection: error and data."""
        error, data, request = 4 * number + 1, 4 * number + 3, str(number)
        await self.socket.send_bytes(self.opening(error, streamtype="error", port=str(port), requestid=request))
        await self.socket.send_bytes(self.opening(data, streamtype="data", port=str(port), requestid=request))
        return error, data

    async def send(self, stream: int, data: bytes, *, ended: bool = False) -> None:
        await self.socket.send_bytes(self._writer.data(stream, data, ended=ended))

    async def frames(self) -> AsyncIterator[Frame]:
        async for message in self.socket:
            for frame in self._reader.feed(message.data):
                if frame is not None:
                    yield frame

    async def collect(self, *streams: int) -> dict[int, bytes]:
        """What comes on these until all of them have ended."""
        came, left = dict.fromkeys(streams, b""), set(streams)
        async for frame in self.frames():
            if isinstance(frame, Data):
                came[frame.stream] += frame.data
                left -= {frame.stream} if frame.ended else set()
            if not left:
                break
        return came


def control(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", VERSION, kind, len(body)) + body


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def capitals(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read()).upper())
    writer.close()


@asynccontextmanager
async def tunnel(pod: Serve) -> AsyncIterator[Kubectl]:
    """To a pod with the port 80."""
    listening = await asyncio.start_server(pod, "127.0.0.1", 0)
    real = listening.sockets[0].getsockname()[1]

    async def handle(request: web.Request) -> web.StreamResponse:
        return await forward_ports(request, "p", {PORT: real, 81: 1}.get)

    app = web.Application()
    app.router.add_get("/", handle)
    async with listening, TestClient(TestServer(app)) as client:
        async with client.ws_connect("/", protocols=[PROTOCOL]) as socket:
            yield Kubectl(socket)
        async with client.get("/") as answer:
            assert (answer.status, await answer.text()) == (400, NO_WEBSOCKET)


def told(tale: Callable[[Kubectl], Awaitable[None]], pod: Serve = capitals) -> None:
    """The pod says everything again in capitals, once it has heard the end."""

    async def whole() -> None:
        async with tunnel(pod) as kubectl:
            await tale(kubectl)

    asyncio.run(whole())


def test_connections_go_side_by_side_through_one_tunnel() -> None:
    async def tale(kubectl: Kubectl) -> None:
        (error, data), (other_error, other) = await kubectl.connect(0), await kubectl.connect(1)
        await kubectl.send(other, b"second")
        await kubectl.send(data, b"first" * 50_000)
        for stream in (data, other):
            await kubectl.send(stream, b"", ended=True)
        came = await kubectl.collect(error, data, other_error, other)
        assert came == {error: b"", data: b"FIRST" * 50_000, other_error: b"", other: b"SECOND"}

    told(tale)


@pytest.mark.parametrize(
    "port, why", [(22, "no container of pod p declares the port 22"), (81, "error forwarding port 81 to pod p")]
)
def test_a_port_that_cannot_be_reached_says_why_on_its_error_stream(port: int, why: str) -> None:
    async def tale(kubectl: Kubectl) -> None:
        error, data = await kubectl.connect(0, port)
        came = await kubectl.collect(error, data)
        assert came[data] == b""
        assert why in came[error].decode()

    told(tale)


def test_what_makes_no_sense_is_reset_and_pings_are_answered() -> None:
    async def tale(kubectl: Kubectl) -> None:
        for frame in (
            kubectl.opening(1, streamtype="data", port="80", requestid="none"),
            kubectl.opening(3, streamtype="error", port="many", requestid="0"),
            control(PING, struct.pack(">I", 7)),
        ):
            await kubectl.socket.send_bytes(frame)
        came = []
        async for found in kubectl.frames():
            came.append(found)
            if len(came) == 3:
                break
        assert came == [Reset(1), Reset(3), Ping(7)]

    told(tale)


def test_a_client_has_so_many_streams_and_no_more() -> None:
    async def tale(kubectl: Kubectl) -> None:
        for number in range(MOST_STREAMS + 1):
            opening = kubectl.opening(2 * number + 1, streamtype="error", port="80", requestid=str(number))
            await kubectl.socket.send_bytes(opening)
        async for frame in kubectl.frames():
            if isinstance(frame, Reset):
                assert frame.stream == 2 * MOST_STREAMS + 1
                break

    told(tale)


def test_a_stream_that_is_open_cannot_be_opened_again() -> None:
    """Each would be one more connection to the pod, beside the limit, and outlive the tunnel."""

    async def tale(kubectl: Kubectl) -> None:
        _, data = await kubectl.connect(0)
        await kubectl.socket.send_bytes(kubectl.opening(5, streamtype="error", port="80", requestid="1"))
        await kubectl.socket.send_bytes(kubectl.opening(data, streamtype="data", port="80", requestid="1"))
        async with asyncio.timeout(5):
            assert [frame async for frame in kubectl.frames()] == []
        assert kubectl.socket.closed

    told(tale)


def test_a_pod_that_leaves_what_was_sent_unread_does_not_hold_up_the_tunnel() -> None:
    heard = asyncio.Event()

    async def deaf(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.wait()
        writer.close()

    async def tale(kubectl: Kubectl) -> None:
        _, data = await kubectl.connect(0)

        async def send() -> None:
            for _ in range(500):
                await kubectl.send(data, bytes(32 << 10))
            await kubectl.socket.send_bytes(control(PING, struct.pack(">I", 7)))

        sending = asyncio.create_task(send())
        await asyncio.wait([sending], timeout=0.5)
        assert not sending.done()
        heard.set()
        async with asyncio.timeout(5):
            async for frame in kubectl.frames():
                if frame == Ping(7):
                    break
        await sending

    told(tale, deaf)


def test_frames_come_in_pieces() -> None:
    writer, reader = FrameWriter(), FrameReader()
    whole = writer.data(3, b"abc") + writer.data(3, b"", ended=True) + writer.reset(5)
    found = [frame for at in range(len(whole)) for frame in reader.feed(whole[at : at + 1])]
    assert found == [Data(3, b"abc", False), Data(3, b"", True), Reset(5)]


def test_an_opening_ends_its_stream_with_a_flag() -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    block = deflate.compress(struct.pack(">I", 0)) + deflate.flush(zlib.Z_SYNC_FLUSH)
    body = struct.pack(">IIH", 9, 0, 0) + block
    frame = struct.pack(">HHI", VERSION, SYN_STREAM, FIN << 24 | len(body)) + body
    assert list(FrameReader().feed(frame)) == [Opened(9, {}, True)]


def many_headers() -> bytes:
    """Some hundred bytes that would take a second to read if they came again and again."""
    deflate = zlib.compressobj(zdict=DICTIONARY)
    block = deflate.compress(struct.pack(">I", 8_000) + bytes(64_000)) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return struct.pack(">IIH", 1, 0, 0) + block


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(control(SYN_STREAM, many_headers()), id="headers that are too long"),
        pytest.param(struct.pack(">II", 1, MOST_FRAME + 1), id="a frame that is too long"),
        pytest.param(struct.pack(">HHI", 0x8002, 1, 0), id="another version"),
        pytest.param(control(SYN_STREAM, bytes(12)), id="headers that are not compressed"),
        pytest.param(control(RST_STREAM, b"\0"), id="a frame that ends early"),
    ],
)
def test_what_is_not_spdy_ends_the_tunnel(data: bytes) -> None:
    with pytest.raises(SpdyError):
        list(FrameReader().feed(data))

    async def tale(kubectl: Kubectl) -> None:
        await kubectl.socket.send_bytes(data)
        assert (await kubectl.socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)

    told(tale)
