"""A watch on etcd, beside a stream that answers as we say: what it does when the stream breaks, ends or is silent."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from situate.store.entries import Batch, Revision
from situate.store.errors import ClosedError, CompactedError, StoreError, UnavailableError
from situate.store.etcd import watch as watch_module
from situate.store.etcd.protocol import DELETED, message
from situate.store.etcd.rpc import EOF, RpcError, StatusCode
from situate.store.etcd.translation import Keys
from situate.store.etcd.watch import MOST_SILENT_TICKS, QUIET_TICKS, SILENT_TICKS, EtcdWatch

_Response = message("WatchResponse")
_Header = message("ResponseHeader")
_Event = message("Event")
_KeyValue = message("KeyValue")


def failure(code: StatusCode, text: str = "") -> RpcError:
    return RpcError(code, text)


AWAY = failure(StatusCode.UNAVAILABLE, "away")


class Stream:
    """One stream. `say` answers the reader; `asked` are the revisions and requests that were written."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.cancelled = False
        self._said: asyncio.Queue[Any] = asyncio.Queue()

    def say(self, answer: Any) -> None:
        self._said.put_nowait(answer)

    async def write(self, request: Any) -> None:
        self.asked.append(request.create_request if request.HasField("create_request") else "progress")

    async def read(self) -> Any:
        said = await self._said.get()
        if isinstance(said, BaseException):
            raise said
        return said

    def cancel(self) -> None:
        self.cancelled = True


class Client:
    """Two endpoints. Each stream that is opened is in `streams`."""

    def __init__(self) -> None:
        self.streams: list[Stream] = []
        self.used = 0
        self.forgotten = 0
        self.revision = 7

    def channel(self) -> Any:
        return self.used

    def next_endpoint(self, failed: Any) -> None:
        if failed == self.used:
            self.used += 1

    def forget_token(self) -> None:
        self.forgotten += 1

    async def open_stream(self, _method: Any) -> tuple[Any, Any]:
        self.streams.append(Stream())
        return self.used, self.streams[-1]

    async def ask(self, _method: Any, _request: Any) -> Any:
        return message("RangeResponse")(header=_Header(revision=self.revision))


def put(revision: int, key: str = "/a", created: int | None = None) -> Any:
    made = _KeyValue(key=f"/p/{key}".encode(), value=b"v", mod_revision=revision, create_revision=created or revision)
    return _Event(kv=made)


def events(*them: Any) -> Any:
    return _Response(header=_Header(revision=99), events=them)


def bookmark(revision: int) -> Any:
    return _Response(header=_Header(revision=revision))


Story = Callable[[Client, EtcdWatch], Awaitable[None]]


def tell(story: Story) -> None:
    async def told() -> None:
        client: Any = Client()
        async with asyncio.timeout(10):
            await story(client, EtcdWatch(client, Keys("/p"), "/", Revision(3)))

    asyncio.run(told())


async def turn() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


async def opened(client: Client, watch: EtcdWatch) -> tuple[Stream, "asyncio.Task[Batch]"]:
    """A reader that waits, and its stream."""
    waiting = asyncio.create_task(anext(watch))
    await turn()
    return client.streams[-1], waiting


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "PAUSE_S", 0)
    monkeypatch.setattr(watch_module, "ASK_AGAIN_S", 0)


def test_it_asks_for_all_after_its_revision_and_tells_each_revision_whole() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        (create,) = stream.asked
        assert (create.key, create.range_end, create.start_revision) == (b"/p//", b"/p/0", 4)
        assert create.progress_notify
        assert create.prev_kv
        stream.say(_Response(created=True, header=_Header(revision=50)))
        stream.say(events(put(5, "/a"), put(5, "/b"), put(6, "/a")))
        first, second = await waiting, await anext(watch)
        assert [(one.revision, [event.key for event in one.events]) for one in (first, second)] == [
            (5, ["/a", "/b"]),
            (6, ["/a"]),
        ]
        assert len(client.streams) == 1
        await watch.aclose()
        assert stream.cancelled

    tell(story)


@pytest.mark.parametrize(
    "end, moves",
    [
        pytest.param(AWAY, True, id="the connection broke"),
        pytest.param(EOF, False, id="the stream ended"),
        pytest.param(_Response(canceled=True, cancel_reason="no leader"), False, id="etcd ended it for a while"),
        pytest.param(failure(StatusCode.UNAUTHENTICATED, "invalid auth token"), False, id="an old token"),
    ],
)
def test_it_goes_on_after_the_last_event_on_another_stream(end: Any, moves: bool) -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        stream.say(events(put(5)))
        await waiting
        waiting = asyncio.create_task(anext(watch))
        stream.say(end)
        await turn()
        assert stream.cancelled
        assert len(client.streams) == 2
        assert client.streams[1].asked[0].start_revision == 6
        assert (client.used == 1) == moves
        assert client.forgotten == ("auth token" in str(end))
        client.streams[1].say(events(put(8)))
        assert (await waiting).revision == 8

    tell(story)


@pytest.mark.parametrize(
    "end, error, why",
    [
        (failure(StatusCode.PERMISSION_DENIED, "permission denied"), StoreError, "permission denied"),
        (_Response(canceled=True, cancel_reason="rpc: permission denied"), StoreError, "etcd ended a watch: rpc"),
        (_Response(canceled=True, compact_revision=9), CompactedError, "revision 3 has been compacted"),
    ],
)
def test_what_will_not_pass_is_raised(end: Any, error: type[StoreError], why: str) -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        stream.say(end)
        with pytest.raises(error, match=why) as raised:
            await waiting
        assert not isinstance(raised.value, UnavailableError)
        if isinstance(raised.value, CompactedError):
            assert (raised.value.asked, raised.value.compacted) == (3, 9)
        assert len(client.streams) == 1

    tell(story)


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(put(9, created=5), id="an overwrite"),
        pytest.param(_Event(type=DELETED, kv=_KeyValue(key=b"/p//a", mod_revision=9)), id="a deletion"),
    ],
)
def test_an_event_whose_earlier_value_is_compacted_is_not_told(event: Any) -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        stream.say(events(event))
        with pytest.raises(CompactedError) as raised:
            await waiting
        assert (raised.value.asked, raised.value.compacted) == (8, 9)

    tell(story)


# ── silence ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_silent_stream_is_asked_for_its_progress_and_then_left() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        for number in range(1, SILENT_TICKS):
            watch.tick()
            await turn()
            assert stream.asked.count("progress") == max(0, number - QUIET_TICKS + 1)
        assert len(client.streams) == 1
        watch.tick()
        await turn()
        assert (len(client.streams), client.used, stream.cancelled) == (2, 1, True)
        assert not waiting.done()
        client.streams[1].say(events(put(5)))
        assert (await waiting).revision == 5
        assert waiting.cancelling() == 0

    tell(story)


def test_it_waits_longer_each_time_up_to_a_limit_and_as_before_after_a_message() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        async def ticks() -> int:
            """How many it takes until the stream is left."""
            streams = len(client.streams)
            for number in range(1, 10 * MOST_SILENT_TICKS):
                watch.tick()
                await turn()
                if len(client.streams) > streams:
                    return number
            return 0

        _, waiting = await opened(client, watch)
        found = [await ticks() for _ in range(5)]
        assert found == [SILENT_TICKS, 2 * SILENT_TICKS, 4 * SILENT_TICKS, MOST_SILENT_TICKS, MOST_SILENT_TICKS]
        client.streams[-1].say(bookmark(4))
        await waiting
        waiting = asyncio.create_task(anext(watch))
        await turn()
        assert await ticks() == SILENT_TICKS
        waiting.cancel()

    tell(story)


def test_a_message_ends_the_silence_and_nobody_reads_no_silence() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        watch.tick()  # before anybody reads
        stream, waiting = await opened(client, watch)
        for _ in range(3):
            for _ in range(SILENT_TICKS - 1):
                watch.tick()
            stream.say(bookmark(4))
            await waiting
            for _ in range(2 * SILENT_TICKS):
                watch.tick()
            waiting = asyncio.create_task(anext(watch))
            await turn()
        assert len(client.streams) == 1
        waiting.cancel()

    tell(story)


def test_a_stream_whose_endpoint_was_left_is_left_at_once() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        client.used = 4
        watch.tick()
        watch.tick()
        await turn()
        assert (len(client.streams), client.used, stream.cancelled) == (2, 4, True)
        client.streams[1].say(events(put(5)))
        assert (await waiting).revision == 5

    tell(story)


def test_whoever_is_cancelled_is_cancelled_even_if_the_stream_is_left_too() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        for left in (False, True):
            stream, waiting = await opened(client, watch)
            if left:
                client.used += 1
                watch.tick()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert stream.cancelled
        # The next reader gets a stream of its own.
        stream, waiting = await opened(client, watch)
        stream.say(events(put(5)))
        assert (await waiting).revision == 5

    tell(story)


def test_a_stream_that_is_cancelled_below_the_reader_is_opened_again() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        stream.say(asyncio.CancelledError())
        await turn()
        assert len(client.streams) == 2
        client.streams[1].say(events(put(5)))
        assert (await waiting).revision == 5

    tell(story)


def test_closing_ends_the_reader_and_every_later_one() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        await watch.aclose()
        with pytest.raises(ClosedError):
            await waiting
        assert stream.cancelled
        with pytest.raises(ClosedError):
            await anext(watch)
        assert len(client.streams) == 1

    tell(story)


# ── bookmarks ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_asks_until_a_bookmark_comes_that_is_not_older_than_the_request() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        await watch.ask_progress()
        await turn()
        assert stream.asked.count("progress") > 1
        stream.say(bookmark(6))
        assert (await waiting) == Batch(Revision(6))
        waiting = asyncio.create_task(anext(watch))
        await turn()
        asked = stream.asked.count("progress")
        await turn()
        assert stream.asked.count("progress") > asked, "that one was older than the request"
        stream.say(bookmark(7))
        assert (await waiting) == Batch(Revision(7))
        await turn()
        asked = stream.asked.count("progress")
        await turn()
        assert stream.asked.count("progress") == asked
        waiting = asyncio.create_task(anext(watch))
        await watch.ask_progress()
        await turn()
        assert stream.asked.count("progress") > asked, "it may be asked for again"
        stream.say(bookmark(7))
        await waiting
        await watch.aclose()

    tell(story)


def test_a_watch_that_is_closed_asks_no_more() -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        await watch.ask_progress()
        await turn()
        await watch.aclose()
        with pytest.raises(ClosedError):
            await waiting
        await turn()
        asked = stream.asked.count("progress")
        await turn()
        assert stream.asked.count("progress") == asked

    tell(story)


@pytest.mark.parametrize("error", [AWAY, asyncio.InvalidStateError(), asyncio.CancelledError()])
def test_a_request_for_progress_that_fails_is_the_readers_business(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(client: Client, watch: EtcdWatch) -> None:
        stream, waiting = await opened(client, watch)
        failed: list[object] = []

        async def write(_request: Any) -> None:
            raise error

        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failed.append(context))
        monkeypatch.setattr(stream, "write", write)
        for _ in range(QUIET_TICKS + 2):
            watch.tick()
            await turn()
        assert failed == []
        stream.say(bookmark(4))
        assert await waiting == Batch(Revision(4))
        await watch.aclose()

    tell(story)
