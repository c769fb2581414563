"""Calls over HTTP/2, beside a peer that says what we tell it to: frame by frame, or nothing at all."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from situate.store.etcd import channel as channel_module
from situate.store.etcd.channel import Channel
from situate.store.etcd.hpack import encode
from situate.store.etcd.http2 import STREAM_WINDOW
from situate.store.etcd.protocol import RANGE, WATCH, message
from situate.store.etcd.rpc import EOF, RpcError, StatusCode

DATA, HEADERS, RESET, SETTINGS, PING, AWAY, WINDOW, MORE = 0, 1, 3, 4, 6, 7, 8, 9
END, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FIRST = encode([(":status", "200")])
OK = encode([("grpc-status", "0")])
Frame = tuple[int, int, int, bytes]


def frame(kind: int, flags: int, number: int, body: bytes) -> bytes:
    return struct.pack(">IBI", len(body) << 8 | kind, flags, number) + body


def said(answer: Any) -> bytes:
    body: bytes = answer.SerializeToString()
    return b"\0" + struct.pack(">I", len(body)) + body


def counted(count: int) -> bytes:
    return said(message("RangeResponse")(count=count))


class Peer:
    """Every connection that is made, and the frames that came on the last one."""

    def __init__(self) -> None:
        self.connections: list[asyncio.StreamWriter] = []
        self.frames: asyncio.Queue[Frame] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            assert await reader.readexactly(len(PREFACE)) == PREFACE
            while True:
                packed, flags, number = struct.unpack(">IBI", await reader.readexactly(9))
                self.frames.put_nowait((packed & 255, flags, number, await reader.readexactly(packed >> 8)))

    def say(self, *frames: bytes) -> None:
        self.connections[-1].write(b"".join(frames))

    async def next(self, kind: int) -> Frame:
        """The next frame of this kind; others are passed over."""
        while True:
            got = await self.frames.get()
            if got[0] == kind:
                return got

    async def request(self) -> int:
        """The number of the next request that has come whole."""
        while True:
            kind, flags, number, _ = await self.frames.get()
            if kind == DATA and flags & END:
                return number

    def answer(self, number: int, count: int) -> None:
        self.say(
            frame(HEADERS, END_HEADERS, number, FIRST),
            frame(DATA, 0, number, counted(count)),
            frame(HEADERS, END_HEADERS | END, number, OK),
        )


Story = Callable[[Channel, Peer], Awaitable[None]]


def tell(story: Story) -> None:
    async def told() -> None:
        peer = Peer()
        server = await asyncio.start_server(peer, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        channel = Channel(f"{host}:{port}")
        try:
            async with asyncio.timeout(10):
                await story(channel, peer)
        finally:
            await channel.close()
            server.close()
            for writer in peer.connections:
                writer.close()

    asyncio.run(told())


def ask(channel: Channel, size: int = 1, timeout_s: float = 9.0) -> "asyncio.Future[Any]":
    return channel.call(RANGE, RANGE.request(key=b"k" * size), (("hasleader", "true"),), timeout_s)


async def failed(call: Awaitable[Any]) -> StatusCode:
    with pytest.raises(RpcError) as caught:
        await call
    return caught.value.code


def test_calls_share_a_connection_and_are_answered_in_any_order() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        calls = [ask(channel) for _ in range(3)]
        numbers = [await peer.request() for _ in calls]
        assert numbers == [1, 3, 5]
        for number in reversed(numbers):
            peer.answer(number, number)
        assert [(await call).count for call in calls] == numbers
        assert len(peer.connections) == 1

    tell(story)


def test_a_request_has_grpcs_headers() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        ask(channel)
        *_, block = await peer.next(HEADERS)
        assert b"/etcdserverpb.KV/Range" in block
        assert b"\x00\x09hasleader\x04true" in block
        assert b"application/grpc" in block

    tell(story)


def test_frames_and_messages_may_be_cut_anywhere() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        call = ask(channel)
        number, body = await peer.request(), counted(77)
        whole = b"".join(
            [
                frame(HEADERS, 0, number, FIRST[:3]),
                frame(MORE, END_HEADERS, number, FIRST[3:]),
                frame(DATA, 0, number, body[:3]),
                frame(DATA, PADDED, number, b"\x02" + body[3:6] + b"\0\0"),
                frame(DATA, 0, number, body[6:]),
                frame(99, 0, 0, b"of a kind that we do not know"),
                frame(HEADERS, END_HEADERS | END, number, OK),
            ]
        )
        for at in range(len(whole)):
            peer.say(whole[at : at + 1])
            await asyncio.sleep(0)
        assert (await call).count == 77

    tell(story)


@pytest.mark.parametrize(
    "answer, code",
    [
        pytest.param(
            [frame(HEADERS, END_HEADERS | END, 1, encode([("grpc-status", "5"), ("grpc-message", "a%20lease")]))],
            StatusCode.NOT_FOUND,
            id="a status",
        ),
        pytest.param(
            [frame(HEADERS, END_HEADERS | END, 1, encode([("grpc-status", "99")]))], StatusCode.UNKNOWN, id="another"
        ),
        pytest.param(
            [frame(HEADERS, END_HEADERS, 1, encode([(":status", "503")]))], StatusCode.UNAVAILABLE, id="of HTTP"
        ),
        pytest.param([frame(HEADERS, END_HEADERS | END, 1, OK)], StatusCode.INTERNAL, id="no message"),
        pytest.param([frame(DATA, END, 1, counted(1))], StatusCode.INTERNAL, id="no status"),
        pytest.param([frame(RESET, 0, 1, bytes(4))], StatusCode.UNAVAILABLE, id="a reset"),
        pytest.param([frame(RESET, 0, 1, b"")], StatusCode.UNAVAILABLE, id="a frame that is too short"),
        pytest.param([frame(DATA, 0, 1, b"\x01\0\0\0\0")], StatusCode.UNAVAILABLE, id="compressed"),
        pytest.param([b"HTTP/1.1 400 Bad Request\r\n\r\n"], StatusCode.UNAVAILABLE, id="another protocol"),
        pytest.param([frame(HEADERS, END_HEADERS, 1, b"\xff\xff")], StatusCode.UNAVAILABLE, id="no headers"),
    ],
)
def test_what_is_not_an_answer_is_an_error(answer: list[bytes], code: StatusCode) -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        call = ask(channel)
        await peer.request()
        peer.say(*answer)
        assert await failed(call) is code

    tell(story)


def test_a_long_request_waits_for_room_and_others_pass_it() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        long = ask(channel, 200_000)
        got = 0
        while got < 65_535:
            got += len((await peer.next(DATA))[3])
        assert got == 65_535, "that is what HTTP/2 allows at first"
        peer.say(frame(WINDOW, 0, 0, struct.pack(">I", 1 << 20)))
        short = ask(channel)
        assert await peer.request() == 3, "there is room on the connection, and on this stream"
        peer.answer(3, 3)
        assert (await short).count == 3
        peer.say(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 20)))
        assert await peer.request() == 1
        peer.answer(1, 1)
        assert (await long).count == 1

    tell(story)


def test_calls_beyond_what_the_peer_takes_at_once_wait() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        peer_ready = ask(channel)
        peer.answer(await peer.request(), 1)
        await peer_ready
        peer.say(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 1)))
        while (await peer.next(SETTINGS))[1] != ACK:
            pass
        first, second, stream = ask(channel), ask(channel), channel.stream(WATCH, ())
        await stream.write(WATCH.request())
        dropped = ask(channel)
        dropped.cancel()
        assert await peer.request() == 3
        assert peer.frames.empty()
        peer.answer(3, 3)
        assert await peer.request() == 5
        peer.answer(5, 5)
        assert ((await first).count, (await second).count) == (3, 5)
        assert (await peer.next(DATA))[2] == 7, "what was written to the stream before it began"

    tell(story)


def test_a_call_whose_time_is_up_or_that_nobody_awaits_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel_module, "SWEEP_S", 0.001)

    async def story(channel: Channel, peer: Peer) -> None:
        late, cancelled, kept = ask(channel, timeout_s=0.05), ask(channel), ask(channel)
        for _ in range(3):
            await peer.request()
        cancelled.cancel()
        assert (await peer.next(RESET))[2] == 3
        assert await failed(late) is StatusCode.DEADLINE_EXCEEDED
        assert (await peer.next(RESET))[2] == 1
        for number in (1, 3, 5):
            peer.answer(number, number)
        assert (await kept).count == 5

    tell(story)


def test_after_a_goodbye_the_connection_is_used_no_more() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        heard, unheard = ask(channel), ask(channel)
        await peer.request()
        await peer.request()
        old = peer.connections[-1]
        peer.say(frame(AWAY, 0, 0, struct.pack(">II", 1, 0)))
        assert await failed(unheard) is StatusCode.UNAVAILABLE
        other = ask(channel)
        assert await peer.request() == 1
        peer.answer(1, 20)
        assert (await other).count == 20
        assert len(peer.connections) == 2
        peer.connections.append(old)
        peer.answer(1, 10)
        assert (await heard).count == 10

    tell(story)


def test_a_lost_connection_fails_its_calls_and_the_next_call_makes_another() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        call, stream = ask(channel), channel.stream(WATCH, ())
        await peer.request()
        peer.connections[-1].close()
        assert await failed(call) is StatusCode.UNAVAILABLE
        assert await failed(stream.read()) is StatusCode.UNAVAILABLE
        again = ask(channel)
        peer.answer(await peer.request(), 9)
        assert (await again).count == 9

    tell(story)


def test_nobody_there_is_an_error_at_once() -> None:
    async def story(_channel: Channel, _peer: Peer) -> None:
        nowhere = Channel("127.0.0.1:1")
        assert await failed(ask(nowhere)) is StatusCode.UNAVAILABLE
        await nowhere.close()
        assert await failed(ask(nowhere)) is StatusCode.UNAVAILABLE

    tell(story)


def test_a_ping_is_answered_and_a_silent_peer_is_asked_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SWEEP_S", 0.001), ("KEEPALIVE_S", 0.05), ("PING_TIMEOUT_S", 0.3)):
        monkeypatch.setattr(channel_module, name, value)

    async def story(channel: Channel, peer: Peer) -> None:
        stream = channel.stream(WATCH, ())
        await peer.next(HEADERS)
        peer.say(frame(PING, 0, 0, b"12345678"))
        assert await peer.next(PING) == (PING, ACK, 0, b"12345678")
        assert (await peer.next(PING))[1] == 0
        peer.say(frame(PING, ACK, 0, bytes(8)))
        assert (await peer.next(PING))[1] == 0, "it has answered, and is asked again"
        assert await failed(stream.read()) is StatusCode.UNAVAILABLE

    tell(story)


def test_a_stream_passes_messages_both_ways_until_it_ends() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        stream = channel.stream(WATCH, ())
        await stream.write(WATCH.request())
        assert (await peer.next(DATA))[1:3] == (0, 1)
        messages = [said(WATCH.response(compact_revision=number)) for number in range(1, 4)]
        peer.say(frame(HEADERS, END_HEADERS, 1, FIRST), frame(DATA, 0, 1, b"".join(messages)))
        assert [(await stream.read()).compact_revision for _ in messages] == [1, 2, 3]
        peer.say(frame(HEADERS, END_HEADERS | END, 1, OK))
        assert await stream.read() is EOF

    tell(story)


def test_a_stream_that_nobody_reads_gets_no_more_room() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        stream = channel.stream(WATCH, ())
        await peer.next(HEADERS)
        piece = WATCH.response(cancel_reason="x" * 16_000)
        body = said(piece)
        count = STREAM_WINDOW // len(body)
        peer.say(frame(HEADERS, END_HEADERS, 1, FIRST), *([frame(DATA, 0, 1, body)] * count))
        call = ask(channel)
        number = await peer.request()
        peer.answer(number, 1)
        await call
        while not peer.frames.empty():
            assert peer.frames.get_nowait()[0] != WINDOW
        for _ in range(count):
            assert await stream.read() == piece
        call, given, number = ask(channel), 0, 1
        while number == 1:  # until the request has come, which was sent after all of them
            kind, _, number, more = await peer.frames.get()
            given += struct.unpack(">I", more)[0] if (kind, number) == (WINDOW, 1) else 0
        assert STREAM_WINDOW // 2 <= given <= count * len(body), "what was read, and no more"
        peer.answer(number, 1)
        await call

    tell(story)


def test_a_cancelled_stream_is_taken_back_and_its_reader_fails() -> None:
    async def story(channel: Channel, peer: Peer) -> None:
        stream = channel.stream(WATCH, ())
        reading = asyncio.create_task(stream.read())
        await peer.next(HEADERS)
        stream.cancel()
        assert await failed(reading) is StatusCode.CANCELLED
        assert (await peer.next(RESET))[2] == 1
        assert await failed(stream.write(WATCH.request())) is StatusCode.CANCELLED

    tell(story)
