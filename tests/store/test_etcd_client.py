"""Calls to etcd, beside endpoints that answer as we say: which are repeated, where, and for how long."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import pytest

from situate.store.errors import ClosedError, InvalidRequestError, UnavailableError
from situate.store.etcd import client as client_module
from situate.store.etcd.client import EtcdClient
from situate.store.etcd.protocol import AUTHENTICATE, LEASE_KEEP_ALIVE, RANGE, WATCH, Method, message
from situate.store.etcd.rpc import EOF, RpcError, StatusCode
from situate.store.etcd.settings import EtcdSettings
from store.etcd_stories import count_time


def failure(code: StatusCode, text: str = "") -> RpcError:
    return RpcError(code, text)


AWAY = failure(StatusCode.UNAVAILABLE, "away")
INVALID = failure(StatusCode.INVALID_ARGUMENT, "no such thing")
OLD_TOKEN = failure(StatusCode.UNAUTHENTICATED, "invalid auth token")
SILENCE = "silence"
ANSWER = message("RangeResponse")(count=1)
REQUEST = RANGE.request(key=b"/a")


class Call:
    def __init__(self, answer: Any) -> None:
        self._answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if isinstance(answer, Exception):
            self._answer.set_exception(answer)
        elif answer != SILENCE:
            self._answer.set_result(answer)
        self.cancelled = False

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer.__await__()

    async def write(self, _request: Any) -> None: ...

    async def read(self) -> Any:
        return await self._answer

    def cancel(self) -> None:
        self.cancelled = True
        self._answer.cancel()


class Endpoint:
    """A channel. It gives the answers of `say` in order, and then ANSWER for ever."""

    def __init__(self) -> None:
        self.say: list[Any] = []
        self.calls: list[tuple[str, dict[str, str], float | None]] = []
        self.made: list[Call] = []
        self.closed = False

    def call(self, method: Method, _request: Any, metadata: Any, timeout_s: float | None) -> Call:
        return self.stream(method, metadata, timeout_s)

    def stream(self, method: Method, metadata: Any, timeout_s: float | None = None) -> Call:
        self.calls.append((method.path, dict(metadata), timeout_s))
        if method is AUTHENTICATE:
            return Call(message("AuthenticateResponse")(token=f"token {len(self.calls)}"))
        self.made.append(Call(self.say.pop(0) if self.say else ANSWER))
        return self.made[-1]

    async def close(self) -> None:
        self.closed = True


def tell(
    story: Callable[[EtcdClient, list[Endpoint]], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
    count: int = 2,
    **settings: Any,
) -> None:
    async def told() -> None:
        endpoints = [Endpoint() for _ in range(count)]
        names = tuple(map(str, range(count)))
        monkeypatch.setattr(client_module, "Channel", lambda name, _tls: endpoints[int(name)])
        monkeypatch.setattr(client_module, "PAUSE_S", 0)
        monkeypatch.setattr(client_module, "PROBE_S", 0)
        client = EtcdClient(EtcdSettings(endpoints=names, request_s=3.0, **settings))
        async with asyncio.timeout(10):
            await story(client, endpoints)

    asyncio.run(told())


async def turn() -> None:
    for _ in range(8):
        await asyncio.sleep(0)


def test_a_read_is_repeated_at_the_next_endpoint_and_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        endpoints[0].say = [AWAY]
        assert client.endpoint == "0"
        assert await client.ask(RANGE, REQUEST) == ANSWER
        assert await client.ask(RANGE, REQUEST, 7.0) == ANSWER
        assert client.endpoint == "1"
        assert [len(one.calls) for one in endpoints] == [1, 2]
        assert endpoints[1].calls == [(RANGE.path, {"hasleader": "true"}, at) for at in (3.0, 7.0)]
        endpoints[1].say = [AWAY]
        await client.ask(RANGE, REQUEST)
        assert client.endpoint == "0", "after the last comes the first"

    tell(story, monkeypatch)


def test_what_etcd_refuses_is_not_repeated_and_its_endpoint_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        endpoints[0].say = [INVALID]
        with pytest.raises(InvalidRequestError, match="etcd: no such thing"):
            await client.ask(RANGE, REQUEST)
        assert client.endpoint == "0"
        assert [len(one.calls) for one in endpoints] == [1, 0]

    tell(story, monkeypatch)


def test_a_read_is_given_up_after_its_time_and_a_write_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        count_time(monkeypatch)
        for one in endpoints:
            one.say = [AWAY] * 1_000
        with pytest.raises(UnavailableError, match="etcd: away"):
            await client.ask(RANGE, REQUEST)
        assert all(len(one.calls) > 1 for one in endpoints)
        before = sum(len(one.calls) for one in endpoints)
        with pytest.raises(RpcError):
            await client.try_once(RANGE, REQUEST)
        assert sum(len(one.calls) for one in endpoints) == before + 1

    tell(story, monkeypatch, give_up_s=0.05)


def test_only_the_first_of_several_who_failed_moves_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        endpoints[0].say = [AWAY, AWAY]
        await asyncio.gather(client.ask(RANGE, REQUEST), client.ask(RANGE, REQUEST))
        assert client.endpoint == "1"

    tell(story, monkeypatch, 3)


# ── tokens ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_token_is_asked_for_once_and_again_when_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        (only,) = endpoints
        await client.ask(RANGE, REQUEST)
        await client.ask(RANGE, REQUEST)
        paths = [path for path, *_ in only.calls]
        assert paths == [AUTHENTICATE.path, RANGE.path, RANGE.path]
        assert only.calls[2][1] == {"hasleader": "true", "token": "token 1"}
        only.say = [OLD_TOKEN]
        assert await client.try_once(RANGE, REQUEST) == ANSWER
        assert only.calls[-1][1]["token"] == "token 5"
        client.forget_token()
        await client.try_once(RANGE, REQUEST)
        assert only.calls[-1][1]["token"] == "token 7"
        only.say = [OLD_TOKEN, OLD_TOKEN]
        with pytest.raises(RpcError):
            await client.try_once(RANGE, REQUEST)
        assert only.say == [], "and no third time"

    tell(story, monkeypatch, 1, username="me", password="secret")


# ── leases ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lease_is_kept_alive_by_whoever_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        alive, ended = (message("LeaseKeepAliveResponse")(TTL=left) for left in (17, 0))
        endpoints[0].say = [EOF, AWAY]
        endpoints[1].say = [alive, ended]
        assert await client.keep_alive(5) == 17
        assert await client.keep_alive(5) == 0
        assert [path for path, *_ in endpoints[0].calls] == [LEASE_KEEP_ALIVE.path] * 2
        assert [call.cancelled for call in endpoints[1].made] == [True, True], "the stream is not needed any longer"
        assert endpoints[1].calls[0][2] == 3.0
        endpoints[1].say = [INVALID]
        with pytest.raises(InvalidRequestError):
            await client.keep_alive(5)
        assert client.endpoint == "1"

    tell(story, monkeypatch)


def test_keeping_a_lease_alive_is_given_up_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        count_time(monkeypatch)
        for one in endpoints:
            one.say = [AWAY] * 1_000
        with pytest.raises(UnavailableError):
            await client.keep_alive(5)
        assert all(len(one.calls) > 1 for one in endpoints)

    tell(story, monkeypatch, give_up_s=0.05)


def test_a_lease_is_kept_alive_with_a_new_token(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        endpoints[0].say = [OLD_TOKEN, message("LeaseKeepAliveResponse")(TTL=17)]
        assert await client.keep_alive(5) == 17
        assert client.endpoint == "0"
        assert [one[1].get("token") for one in endpoints[0].calls] == [None, "token 1", None, "token 3"]

    tell(story, monkeypatch, username="me", password="secret")


# ── probes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 2])
def test_an_endpoint_that_does_not_answer_is_left_with_the_calls_in_flight_there(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        ticks = 0

        def tick() -> None:
            nonlocal ticks
            ticks += 1

        endpoints[0].say = [SILENCE, AWAY]
        stuck = asyncio.create_task(client.try_once(RANGE, REQUEST))
        await turn()
        probing = asyncio.create_task(client.probe(tick))
        while not ticks:
            await asyncio.sleep(0)
        assert client.problem == "etcd: away (endpoint 0)"
        assert ticks == 1
        await turn()
        if count == 2:
            with pytest.raises(RpcError, match="the endpoint does not answer and was left"):
                await stuck
        else:
            assert not stuck.done(), "there is nowhere to go, and it may still be answered"
            stuck.cancel()
        while ticks < 3:
            await asyncio.sleep(0)
        assert client.problem == ""
        assert client.endpoint == str(count - 1)
        probing.cancel()

    tell(story, monkeypatch, count)


def test_whoever_gives_up_a_call_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        endpoints[0].say = [SILENCE]
        waiting = asyncio.create_task(client.ask(RANGE, REQUEST))
        await turn()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert client.endpoint == "0"

    tell(story, monkeypatch)


def test_a_client_that_is_closed_calls_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(client: EtcdClient, endpoints: list[Endpoint]) -> None:
        opened: tuple[Any, Any] = await client.open_stream(WATCH)
        assert opened[0] is endpoints[0]
        await client.aclose()
        assert all(one.closed for one in endpoints)
        for asked in (client.ask(RANGE, REQUEST), client.keep_alive(1), client.open_stream(WATCH)):
            with pytest.raises(ClosedError):
                await asked
        await client.probe(lambda: None)

    tell(story, monkeypatch)
