"""The client against servers that refuse, hang, break off, come back and are somebody else; on loopback, for real."""

import asyncio
import base64
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop

from kube.fake_server import FakeServer, status
from situate import __version__
from situate.kube import client as client_module
from situate.kube import line_stream
from situate.kube.access import Access, Fixed
from situate.kube.client import RETRIES, RETRY_AFTER_MAX_S, Client
from situate.kube.errors import (
    LOST,
    NO_CREDENTIALS,
    NOT_HTTP,
    NOT_LEADER,
    TIMEOUT,
    TOO_LARGE,
    UNREACHABLE,
    ApiError,
    from_status,
)
from situate.kube.line_stream import LineStream
from situate.kube.tls import Pair, client_context, show

DATA = Path(__file__).parents[1] / "loop" / "data"
PODS = "/api/v1/pods"
BINDING = "/api/v1/namespaces/default/pods/web/binding"
BODY = json.dumps({"target": {"kind": "Node", "name": "n1"}}).encode()

Result = TypeVar("Result")
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


Loops = Callable[[], asyncio.AbstractEventLoop]

both_loops = pytest.mark.parametrize(
    "loops", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


def run(work: Coroutine[Any, Any, Result], loops: Loops = asyncio.new_event_loop) -> Result:
    async def within() -> Result:
        async with asyncio.timeout(20):
            return await work

    with asyncio.Runner(loop_factory=loops) as runner:
        return runner.run(within())


@dataclass
class Heard:
    """An observer, and a sleep that does not."""

    done: list[tuple[str, str]] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)
    retries: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def request_done(self, verb: str, host: str, code: str, seconds: float) -> None:
        assert host.startswith("127.0.0.1:")
        assert seconds >= 0
        self.done.append((verb, code))

    def rate_limited(self, verb: str, host: str, seconds: float) -> None:
        self.limited.append(seconds)

    def retried(self, verb: str, host: str, code: str) -> None:
        self.retries.append(code)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@asynccontextmanager
async def served(heard: Heard | None = None, **fields: Any) -> AsyncIterator[tuple[FakeServer, Client]]:
    heard = heard or Heard()
    async with FakeServer() as server:
        server.put(PODS, {"metadata": {"name": "web", "namespace": "default"}})
        access = server.access(**fields)
        async with Client(access, qps=-1, observe=heard, sleep=heard.sleep) as client:
            yield server, client


@asynccontextmanager
async def talking(talk: Talk) -> AsyncIterator[str]:
    """A server that says whatever it likes."""

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


def saying(*pieces: bytes) -> Talk:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return talk


async def problem(work: Awaitable[object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await work
    assert "\n" not in str(caught.value)
    return caught.value


# -- what is sent ------------------------------------------------------------------------------------------------------


def test_a_request_says_who_we_are_and_what_we_take_and_no_more() -> None:
    async def work() -> None:
        shown = Fixed("Bearer abc")
        groups = (("Impersonate-User", "bob"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"))
        async with served(credentials=shown, headers=groups) as (server, client):
            await client.request("GET", PODS, params={"fieldSelector": "a=b,c!=d", "limit": "5"})
            await client.request(
                "PATCH", f"{PODS[:7]}/namespaces/default/pods/web", body=b'{"x": 1}', content_type="m/p"
            )
            get, patch = server.requests
            assert get.query == {"fieldSelector": "a=b,c!=d", "limit": "5"}
            ours = {"Authorization", "Impersonate-User", "Impersonate-Group", "Accept", "Accept-Encoding", "User-Agent"}
            assert set(get.headers) == {"Host", *ours}
            assert get.headers["Authorization"] == "Bearer abc"
            assert get.headers["User-Agent"] == f"situate/{__version__}"
            assert get.headers["Accept"] == "application/json"
            assert patch.headers["Content-Type"] == "m/p"
            assert patch.body == {"x": 1}

    run(work())


def test_every_group_we_come_as_is_sent() -> None:
    async def work() -> None:
        heads: list[bytes] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await talk(reader, writer)
            writer.close()

        server = await asyncio.start_server(met, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/prefix/"
        headers = (("Impersonate-User", "bob"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"))
        async with server, Client(Access(url, headers=headers)) as client:
            assert await client.request("GET", "/version") == b"{}"
        assert heads[0].startswith(b"GET /prefix/version HTTP/1.1\r\n")
        assert heads[0].count(b"Impersonate-Group: ") == 2

    run(work())


def test_the_connections_are_kept_and_there_are_never_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 3)

    async def work() -> None:
        connections = 0

        async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            try:
                while await reader.readuntil(b"\r\n\r\n"):
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            except asyncio.IncompleteReadError:
                writer.close()

        server = await asyncio.start_server(met, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            async with Client(Access(url), qps=-1) as client:
                for _ in range(4):
                    await asyncio.gather(*(client.request("GET", "/") for _ in range(10)))
            assert connections == 3

    run(work())


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code, reason, predicate",
    [(409, "Conflict", "conflict"), (404, "NotFound", "not_found"), (403, "Forbidden", "forbidden"),
     (410, "Expired", "gone"), (500, "InternalError", "lost"), (503, "ServiceUnavailable", "temporary")],
)  # fmt: skip
def test_a_refusal_is_told_in_the_words_of_the_server(code: int, reason: str, predicate: str) -> None:
    async def work() -> None:
        async with served() as (server, client):
            server.fault("POST", "/binding", status=code, reason=reason, message="because\nof this")
            error = await problem(client.request("POST", BINDING, body=BODY))
            assert (error.status, error.reason, str(error)) == (code, reason, "because of this")
            assert getattr(error, predicate)
            assert len(server.requests) == 1

    run(work())


def test_an_answer_that_is_no_status_is_quoted() -> None:
    error = from_status(502, b"<html>\n<b>Bad gateway</b>")
    assert (error.status, error.reason, error.message) == (502, "Unknown", "<html> <b>Bad gateway</b>")
    assert from_status(404, b"").message == "HTTP 404 NotFound"
    assert from_status(500, b'{"kind": "Pod"}').message == "HTTP 500 InternalError"
    assert len(from_status(500, b"x" * 100_000).message) <= 1_000
    told = json.dumps(status(410, "Expired", "too old", retryAfterSeconds=3)).encode()
    assert (from_status(0, told).status, from_status(0, told).gone, from_status(0, told).retry_after_s) == (
        410,
        True,
        3,
    )


def test_a_redirect_is_not_followed() -> None:
    async def work() -> None:
        async with served() as (server, client):
            server.fault("GET", PODS, status=302, headers={"Location": f"{server.url}/elsewhere"})
            assert (await problem(client.request("GET", PODS))).status == 302
            assert len(server.requests) == 1

    run(work())


# -- again -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method, path, body", [("GET", PODS, None), ("POST", BINDING, BODY)])
@pytest.mark.parametrize("code", [429, 500, 503])
def test_what_the_server_wants_to_be_asked_again_later_is_asked_again_later(
    method: str, path: str, body: bytes | None, code: int
) -> None:
    heard = Heard()

    async def work() -> None:
        async with served(heard) as (server, client):
            server.fault(method, path, status=code, headers={"Retry-After": "7"}, times=2)
            await client.request(method, path, body=body)
            assert len(server.requests) == 3

    run(work())
    assert heard.slept == [7, 7]
    assert [done for _, done in heard.done] == [str(code), str(code), "200"]
    assert heard.retries == [str(code), "200"]


def test_without_the_server_asking_for_it_nothing_is_sent_twice() -> None:
    async def work() -> None:
        async with served() as (server, client):
            for code in (429, 500, 503):
                server.fault("POST", BINDING, status=code)
                assert (await problem(client.request("POST", BINDING, body=BODY))).temporary
            assert len(server.requests) == 3

    run(work())


def test_there_is_an_end_to_asking_again() -> None:
    heard = Heard()

    async def work() -> None:
        async with served(heard) as (server, client):
            server.fault("GET", PODS, status=429, reason="TooManyRequests", headers={"Retry-After": "1"}, times=99)
            error = await problem(client.request("GET", PODS))
            assert (error.status, error.retry_after_s) == (429, 1)
            assert len(server.requests) == RETRIES + 1

    run(work())


def test_nobody_waits_beyond_the_deadline_of_the_request_or_the_limit_of_a_wait() -> None:
    heard = Heard()

    async def work() -> None:
        async with served(heard) as (server, client):
            server.fault("GET", PODS, status=503, headers={"Retry-After": "30"}, times=2)
            assert (await problem(client.request("GET", PODS, timeout_s=20))).retry_after_s == 30
            server.fault("GET", "/nodes", status=503, headers={"Retry-After": "99999"})
            await client.request("GET", "/api/v1/nodes", timeout_s=1_000)

    run(work())
    assert heard.slept == [RETRY_AFTER_MAX_S]


def test_a_read_whose_answer_is_lost_is_asked_again() -> None:
    heard = Heard()

    async def work() -> None:
        async with served(heard) as (server, client):
            server.fault("GET", PODS, drop="after", times=3)
            assert b'"web"' in await client.request("GET", PODS)
            assert len(server.requests) == 4

    run(work())
    assert heard.slept == [1, 1]  # the first at once
    assert heard.done == [("GET", "<error>")] * 3 + [("GET", "200")]


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
def test_a_write_whose_answer_is_lost_is_said_to_be_lost_and_not_sent_again(method: str) -> None:
    async def work() -> None:
        async with served() as (server, client):
            path = f"{PODS[:7]}/namespaces/default/pods/web" + ("/binding" if method == "POST" else "")
            await client.request("GET", PODS)  # so that there is a kept connection
            server.fault(method, path, drop="after")
            body = BODY if method == "POST" else b'{"metadata": {"name": "web", "namespace": "default"}}'
            error = await problem(client.request(method, path, body=body if method != "DELETE" else None))
            assert (error.status, error.reason, error.sent, error.lost) == (0, LOST, True, True)
            assert len(server.asked(method)) == 1

    run(work())


def test_the_work_of_a_lost_answer_was_done() -> None:
    async def work() -> None:
        async with served() as (server, client):
            server.fault("POST", BINDING, drop="after")
            assert (await problem(client.request("POST", BINDING, body=BODY))).lost
            bound = server.get(PODS, "web", "default")
            assert bound is not None
            assert bound["spec"]["nodeName"] == "n1"

    run(work())


def test_a_write_that_never_left_is_known_never_to_have_left() -> None:
    async def work() -> None:
        async with FakeServer() as server:
            access = server.access()
        async with Client(access) as client:  # nobody listens there any more
            error = await problem(client.request("POST", BINDING, body=BODY))
            assert (error.status, error.reason, error.sent, error.lost) == (0, UNREACHABLE, False, False)
            assert error.temporary
            assert "cannot be reached: Connection refused: check the address" in str(error)
            assert "the fake server" in str(error)

    run(work())


def test_a_name_that_no_one_knows_is_unreachable() -> None:
    async def work() -> None:
        async with Client(Access("http://no-such-host.invalid")) as client:
            error = await problem(client.request("GET", PODS))
            assert (error.reason, error.sent) == (UNREACHABLE, False)

    run(work())


def test_an_answer_that_does_not_come_in_time_is_lost() -> None:
    async def work() -> None:
        async with served() as (server, client):
            server.fault("POST", BINDING, hang=True)
            error = await problem(client.request("POST", BINDING, body=BODY, timeout_s=0.05))
            assert (error.status, error.reason, error.sent) == (0, TIMEOUT, True)
            assert await client.request("GET", PODS)

    run(work())


def test_a_cancelled_request_ends_at_once_and_leaves_the_client_usable() -> None:
    async def work() -> None:
        async with served() as (server, client):
            server.fault("GET", PODS, hang=True)
            task = asyncio.create_task(client.request("GET", PODS))
            while not server.requests:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await client.request("GET", PODS)

    run(work())


@pytest.mark.parametrize(
    "said, reason",
    [
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n\r\n", NOT_HTTP, id="something that is not HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", LOST, id="half an answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", LOST, id="no last chunk"),
        pytest.param(b"", LOST, id="nothing"),
    ],
)
def test_what_is_no_whole_answer_is_none(said: bytes, reason: str) -> None:
    async def work() -> None:
        async with talking(saying(said)) as url, Client(Access(url)) as client:
            error = await problem(client.request("POST", BINDING, body=BODY))
            assert (error.status, error.reason, error.sent) == (0, reason, True)

    run(work())


def test_an_answer_without_end_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "RESPONSE_BYTES", 1 << 20)

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            await writer.drain()

    async def work() -> None:
        async with talking(talk) as url, Client(Access(url)) as client:
            assert (await problem(client.request("GET", "/"))).reason == TOO_LARGE

    run(work())


def test_what_comes_compressed_uninvited_is_not_unpacked() -> None:
    packed = gzip.compress(b"{}" * 1_000)

    async def work() -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
        async with talking(saying(head + packed)) as url, Client(Access(url)) as client:
            assert await client.request("GET", "/") == packed

    run(work())


def test_a_large_list_comes_whole() -> None:
    async def work() -> None:
        async with served() as (server, client):
            for number in range(2_000):
                server.put(
                    PODS, {"metadata": {"name": f"pod-{number}", "namespace": "x"}, "spec": {"pad": "x" * 1_000}}
                )
            assert len(json.loads(await client.request("GET", PODS))["items"]) == 2_001

    run(work())


# -- credentials -------------------------------------------------------------------------------------------------------


class Rotating:
    """A token that is refused until it is renewed."""

    certificate = 0

    def __init__(self, *, helps: bool = True) -> None:
        self.version = 0
        self.renewed = 0
        self.helps = helps

    async def header(self) -> str | None:
        return f"Bearer {self.version}"

    async def renew(self, version: int) -> bool:
        self.renewed += 1
        if version == self.version and self.helps:
            self.version += 1
        return self.helps


def test_refused_credentials_are_renewed_once_and_shown_again() -> None:
    async def work() -> None:
        shown = Rotating()
        async with served(credentials=shown) as (server, client):
            server.fault("GET", PODS, status=401, reason="Unauthorized")
            await client.request("GET", PODS)
            assert [one.headers["Authorization"] for one in server.requests] == ["Bearer 0", "Bearer 1"]
            server.fault("GET", PODS, status=401, reason="Unauthorized", message="Unauthorized", times=5)
            error = await problem(client.request("GET", PODS))
            assert error.unauthorized
            assert "does not accept our credentials (Unauthorized): renew those of the fake server" in str(error)
            assert shown.renewed == 2

    run(work())


def test_credentials_of_which_there_are_no_newer_are_not_shown_again() -> None:
    async def work() -> None:
        async with served(credentials=Rotating(helps=False)) as (server, client):
            server.fault("POST", BINDING, status=401, reason="Unauthorized")
            assert (await problem(client.request("POST", BINDING, body=BODY))).unauthorized
            assert len(server.requests) == 1

    run(work())


def test_nothing_is_sent_when_there_is_nothing_to_show() -> None:
    class Nothing(Rotating):
        async def header(self) -> str | None:
            raise ApiError(0, NO_CREDENTIALS, "no token", sent=False)

    async def work() -> None:
        async with served(credentials=Nothing()) as (server, client):
            error = await problem(client.request("POST", BINDING, body=BODY))
            assert (error.reason, error.sent) == (NO_CREDENTIALS, False)
            with pytest.raises(ApiError):
                async with client.stream(PODS, idle_s=1):
                    pass
            assert server.requests == []

    run(work())


# -- streams -----------------------------------------------------------------------------------------------------------


def test_a_watch_gives_whole_lines_as_they_come_and_ends_when_the_server_ends_it() -> None:
    async def work() -> None:
        async with served() as (server, client):
            params = {"watch": "true", "resourceVersion": str(server.revision)}
            kinds = []
            async with client.stream(PODS, params=params, idle_s=5) as lines:
                server.put(PODS, {"metadata": {"name": "web", "namespace": "default"}})
                async for line in lines:
                    kinds.append(json.loads(line)["type"])
                    if len(kinds) == 1:
                        server.remove(PODS, "web", "default")
                    else:
                        server.cut(clean=True)
            assert kinds == ["MODIFIED", "DELETED"]
            assert await client.request("GET", PODS)

    run(work())


def chunked(*pieces: bytes) -> list[bytes]:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
def test_lines_are_the_same_however_they_are_cut_into_pieces(size: int) -> None:
    whole = b"one\ntwo\n\n" + b"x" * 40 + b"\nlast\n"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]

    async def work() -> None:
        async with talking(saying(*chunked(*pieces), b"0\r\n\r\n")) as url, Client(Access(url)) as client:
            async with client.stream("/", idle_s=5) as lines:
                assert [line async for line in lines] == [b"one", b"two", b"x" * 40, b"last"]
            async with client.stream("/", idle_s=5) as lines:
                batches = []
                while batch := await lines.batch():
                    batches += batch
                assert batches == [b"one", b"two", b"x" * 40, b"last"]

    run(work())


def test_a_line_of_many_megabytes_in_small_pieces_comes_whole_and_soon() -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in chunked(*[b"x" * 16_384] * 1_024, b"\n"):
            writer.write(piece)
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def work() -> None:
        async with talking(talk) as url, Client(Access(url)) as client, client.stream("/", idle_s=5) as lines:
            assert [len(line) async for line in lines] == [16 << 20]

    run(work())


def test_a_line_without_end_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_stream, "LINE_BYTES", 100_000)

    async def work() -> None:
        talk = saying(*chunked(*[b"x" * 60_000] * 9))
        async with talking(talk) as url, Client(Access(url)) as client, client.stream("/", idle_s=5) as lines:
            assert (await problem(lines.batch())).reason == TOO_LARGE

    run(work())


async def collected(lines: LineStream, into: list[bytes]) -> None:
    async for line in lines:
        into.append(line)


@pytest.mark.parametrize(
    "ending",
    [pytest.param(b"", id="with no last chunk"), pytest.param(b"4\r\nhalf\r\n0\r\n\r\n", id="in the middle of a line")],
)
def test_a_stream_that_breaks_off_is_lost_after_the_lines_that_came(ending: bytes) -> None:
    async def work() -> None:
        talk = saying(*chunked(b"one\n"), ending)
        async with talking(talk) as url, Client(Access(url)) as client, client.stream("/", idle_s=5) as lines:
            got: list[bytes] = []
            error = await problem(collected(lines, got))
            assert got in ([b"one"], [])  # what is in the buffer when a connection breaks may be gone with it
            assert (error.status, error.reason) == (0, LOST)

    run(work())


def test_a_silent_stream_is_given_up() -> None:
    async def work() -> None:
        async with served() as (_, client), client.stream(PODS, params={"watch": "true"}, idle_s=0.05) as lines:
            assert await lines.batch()
            error = await problem(lines.batch())
            assert (error.status, error.reason) == (0, TIMEOUT)

    run(work())


def test_a_stream_that_is_refused_says_why() -> None:
    async def work() -> None:
        async with served() as (server, client):
            server.compact()
            with pytest.raises(ApiError) as caught:
                async with client.stream(PODS, params={"watch": "true", "resourceVersion": "1"}, idle_s=5):
                    pass
            assert caught.value.gone
            assert "too old resource version" in str(caught.value)

    run(work())


def test_opening_a_stream_is_tried_again_as_a_request_is() -> None:
    heard = Heard()

    async def work() -> None:
        async with served(heard, credentials=Rotating()) as (server, client):
            server.fault("GET", "watch=", status=429, headers={"Retry-After": "2"})
            server.fault("GET", "watch=", status=401)
            server.fault("GET", "watch=", drop="before")
            async with client.stream(PODS, params={"watch": "true"}, idle_s=5) as lines:
                assert len(await lines.batch()) == 1
            assert len(server.requests) == 4

    run(work())
    assert heard.slept[0] == 2


def test_streams_do_not_take_the_connections_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 1)

    async def work() -> None:
        async with served() as (_, client):
            watch = {"watch": "true"}
            async with client.stream(PODS, params=watch, idle_s=5), client.stream(PODS, params=watch, idle_s=5):
                assert await client.request("GET", PODS, timeout_s=5)

    run(work())


# -- the rate ----------------------------------------------------------------------------------------------------------


def test_requests_wait_for_the_rate_limit_and_say_how_long() -> None:
    heard = Heard()

    async def work() -> None:
        async with FakeServer() as server, Client(server.access(), qps=100, burst=2, observe=heard) as client:
            await asyncio.gather(*(client.request("GET", PODS) for _ in range(5)))

    run(work())
    waited = sorted(heard.limited)
    assert waited[:2] == [0, 0]
    assert waited[4] >= 0.025


def test_the_deadline_of_a_request_does_not_run_while_it_waits_for_the_rate_limit() -> None:
    async def work() -> None:
        async with FakeServer() as server, Client(server.access(), qps=10, burst=1) as client:
            answers = (client.request("GET", PODS, timeout_s=0.09) for _ in range(3))
            assert len(await asyncio.gather(*answers)) == 3

    run(work())


def test_a_write_that_waited_for_its_turn_is_not_sent_by_who_may_not_write_any_more() -> None:
    leads = True

    async def work() -> None:
        nonlocal leads
        async with FakeServer() as server:
            async with Client(server.access(), qps=50, burst=1, may_write=lambda: leads) as client:
                await client.request("GET", PODS)
                writes = asyncio.gather(*(client.request("POST", BINDING, body=BODY) for _ in range(3)))
                refused = asyncio.create_task(problem(writes))
                await asyncio.sleep(0)  # now they wait for the rate limit
                leads = False
                error = await refused
                assert (error.reason, error.sent, error.lost) == (NOT_LEADER, False, False)
                await client.request("GET", PODS)  # reading is free
            assert server.asked("POST") == []

    run(work())


# -- TLS and proxies ---------------------------------------------------------------------------------------------------


def server_tls(name: str = "localhost", *, clients: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / f"{name}.pem")
    if clients:
        context.load_verify_locations(DATA / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def trusting(name: str = "ca", **fields: Any) -> ssl.SSLContext:
    return client_context((DATA / f"{name}.pem").read_bytes(), **fields)


@pytest.mark.parametrize(
    "server, client, problem_with",
    [
        pytest.param("localhost", {}, "", id="a server that the authority vouches for"),
        pytest.param("localhost", {"name": "other-ca"}, "certificate is not trusted", id="one that it does not"),
        pytest.param("elsewhere", {}, "not valid for '127.0.0.1'", id="one of another name"),
        pytest.param("elsewhere", {"server_name": "elsewhere.test"}, "", id="one of the name that was asked for"),
        pytest.param(
            "localhost", {"server_name": "elsewhere.test"}, "not valid for 'elsewhere.test'", id="not of that"
        ),
        pytest.param("elsewhere", {"name": "other-ca", "verify": False}, "", id="anybody, if that is wanted"),
    ],
)
@both_loops
def test_over_tls_we_speak_to(server: str, client: dict[str, Any], problem_with: str, loops: Loops) -> None:
    async def work() -> None:
        tls = trusting(**client)
        async with FakeServer(server_tls(server)) as fake, Client(fake.access(tls=tls)) as asking:
            if not problem_with:
                assert await asking.request("GET", PODS)
                return
            error = await problem(asking.request("GET", PODS))
            assert (error.reason, error.sent) == (UNREACHABLE, False)
            assert problem_with in str(error)
            assert "check certificate-authority in the fake server" in str(error)

    run(work(), loops)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""], ids=["another language", "nothing"])
def test_a_server_that_speaks_no_tls_is_unreachable_over_it(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECT_S", 0.05)
    client_module._timeout.cache_clear()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        while await reader.read(1_000):
            pass
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(met, "127.0.0.1", 0)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, Client(Access(url, tls=trusting())) as client:
            error = await problem(client.request("POST", BINDING, body=BODY))
            assert (error.reason, error.sent) == (UNREACHABLE, False)
            assert ("the TLS handshake failed" if said else "no connection within 0.05 s") in str(error)

    run(work())
    client_module._timeout.cache_clear()


def test_a_replaced_client_certificate_is_shown_on_new_connections_and_the_old_ones_are_left() -> None:
    class Certified(Rotating):
        async def header(self) -> str | None:
            return None

    async def work() -> None:
        tls, shown = trusting(), Certified()
        pem = (DATA / "client.pem").read_bytes()
        show(tls, Pair(pem, pem))
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(FakeServer(server_tls(clients=True)))
            client = await stack.enter_async_context(Client(server.access(tls=tls, credentials=shown), qps=-1))
            server.fault("GET", "/nodes", hang=True)
            slow = asyncio.create_task(client.request("GET", "/api/v1/nodes"))
            while not server.requests:
                await asyncio.sleep(0)
            before = client._line
            shown.certificate += 1
            assert await client.request("GET", PODS)
            assert client._line is not before
            assert not before.requests.closed  # an answer is still to come
            server.release()
            assert await slow
            while client._closing:
                await asyncio.sleep(0)
            assert before.requests.closed

    run(work())


@asynccontextmanager
async def proxying(heads: list[bytes], refuse: bool = False) -> AsyncIterator[str]:
    """A proxy that connects anybody with anything."""

    async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        if refuse:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = heads[-1].split()[1].decode().rpartition(":")
        there = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(copied(reader, there[1]), copied(there[0], writer))

    server = await asyncio.start_server(met, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.mark.parametrize("name", ["localhost", "elsewhere"])
@both_loops
def test_through_a_proxy_the_server_is_known_by_its_own_certificate(name: str, loops: Loops) -> None:
    async def work() -> None:
        heads: list[bytes] = []
        tls = trusting(server_name="elsewhere.test" if name == "elsewhere" else "")
        async with FakeServer(server_tls(name)) as server, proxying(heads) as proxy:
            access = server.access(tls=tls, proxy=f"http://bob:secret@{proxy}", credentials=Fixed("Bearer abc"))
            async with Client(access) as client:
                assert await client.request("GET", PODS)
                async with client.stream(PODS, params={"watch": "true", "timeoutSeconds": "0.01"}, idle_s=5) as lines:
                    assert await lines.batch() == []
        for head in heads:
            assert head.startswith(b"CONNECT 127.0.0.1:")
            assert b"Basic " + base64.b64encode(b"bob:secret") in head
            assert b"Bearer" not in head

    run(work(), loops)


def test_a_proxy_that_refuses_or_is_not_there_is_named_as_the_reason() -> None:
    async def work() -> None:
        async with FakeServer(server_tls()) as server:
            access = server.access(tls=trusting())
            async with proxying([], refuse=True) as proxy, Client(replace(access, proxy=f"http://{proxy}")) as client:
                error = await problem(client.request("POST", BINDING, body=BODY))
                assert (error.sent, error.reason) == (False, UNREACHABLE)
                assert "its proxy refuses: HTTP 407" in str(error)
            async with Client(server.access(tls=trusting(), proxy="http://user:secret@127.0.0.1:1")) as client:
                error = await problem(client.request("POST", BINDING, body=BODY))
                assert "its proxy cannot be reached" in str(error)
                assert "secret" not in str(error)

    run(work())
