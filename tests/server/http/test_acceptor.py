import asyncio
import errno
import json
import socket
import ssl
import time
from contextlib import AsyncExitStack, ExitStack, suppress

import pytest

from server.http.test_fair_shares import Named
from server.http.world import PODS, Door, Line, World, pod, told, world
from situate.server.http import acceptor, connection
from situate.server.http.acceptor import Acceptor
from situate.server.http.connection import Listener
from situate.server.http.flow_control import FlowControl
from situate.server.http.metrics import RequestMetrics
from situate.server.http.settings import Limits


async def line_from(here: World, stack: AsyncExitStack, address: str) -> Line:
    host, port = here.server.address
    line = Line(*await asyncio.open_connection(host, port, local_addr=(address, 0)))
    stack.callback(line.close)
    return line


async def version(line: Line) -> int:
    line.request("GET", "/version")
    return (await line.reply()).code


def greeting(stack: ExitStack, where: tuple[str, int], address: str = "127.0.0.1") -> socket.socket:
    """A client that has said its first byte."""
    made = stack.enter_context(socket.create_connection(where, source_address=(address, 0)))
    made.sendall(b"x")
    return made


class Noting(Acceptor):
    """It notes whose handshakes start, and ends each at once."""

    def __init__(self, listener: Listener, tls: ssl.SSLContext) -> None:
        super().__init__(listener, tls)
        self.started: list[str] = []

    async def _shake_hands(self, accepted: socket.socket, connection: connection.Connection) -> None:
        self.started.append(connection.address)
        self._listener.left(connection)
        accepted.close()


def listener_of(here: World) -> Listener:
    assert here.server._listener is not None
    return here.server._listener


def test_connections_from_one_address_do_not_use_up_those_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ROOM_IDLE_S", 1000.0)  # a known caller's connection is not closed for another

    async def story() -> None:
        async with world(limits=Limits(connections_per_address=2)) as here, AsyncExitStack() as stack:
            rude = [await line_from(here, stack, "127.0.0.2") for _ in range(2)]
            assert [await version(line) for line in rude] == [200, 200]
            assert await (await line_from(here, stack, "127.0.0.2")).ended()
            assert await version(await line_from(here, stack, "127.0.0.1")) == 200
            assert await version(rude[0]) == 200
            assert listener_of(here).refused == 1
            rude[0].close()
            while listener_of(here).open > 2:
                await asyncio.sleep(0)
            assert await version(await line_from(here, stack, "127.0.0.2")) == 200

    told(story)


def test_silent_connections_are_closed_for_new_ones() -> None:
    async def story() -> None:
        async with world(limits=Limits(connections_per_address=3)) as here, AsyncExitStack() as stack:
            used = await line_from(here, stack, "127.0.0.1")
            assert await version(used) == 200
            silent = [await line_from(here, stack, "127.0.0.1") for _ in range(2)]
            while listener_of(here).open < 3:
                await asyncio.sleep(0)
            for _ in range(5):
                line = await line_from(here, stack, "127.0.0.1")
                assert await version(line) == 200
                line.close()
            assert await silent[0].ended()
            assert await version(used) == 200
            assert listener_of(here).refused == 0

    told(story)


def test_a_connection_without_a_known_caller_is_closed_when_it_is_idle() -> None:
    async def story() -> None:
        async with world(limits=Limits(unknown_idle_s=5.0)) as here, AsyncExitStack() as stack:
            used, silent = [await line_from(here, stack, "127.0.0.1") for _ in range(2)]
            assert await version(used) == 200
            listener, now = listener_of(here), asyncio.get_running_loop().time()
            while listener.open < 2:
                await asyncio.sleep(0)
            listener.sweep(now + 4.0)
            assert listener.open == 2
            listener.sweep(now + 6.0)
            assert await silent.ended()
            assert await version(used) == 200

    told(story)


def test_without_file_descriptors_it_waits_and_accepts_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor, "RETRY_S", 0.2)
    tries: list[None] = []

    class Exhausted:
        """A listening socket whose process has no descriptor left, the first two times."""

        def __init__(self, real: socket.socket) -> None:
            self._real = real

        def accept(self) -> tuple[socket.socket, object]:
            tries.append(None)
            if len(tries) <= 2:
                raise OSError(errno.EMFILE, "Too many open files")
            return self._real.accept()

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    made = acceptor.listening_socket

    def listening(*args: object) -> Exhausted:
        return Exhausted(made(*args))  # type: ignore[arg-type]

    monkeypatch.setattr(acceptor, "listening_socket", listening)

    async def story() -> None:
        async with world() as here, AsyncExitStack() as stack:
            assert await version(await line_from(here, stack, "127.0.0.1")) == 200

    told(story)
    assert 3 <= len(tries) <= 5  # it does not spin
    assert [one.levelname for one in caplog.records].count("ERROR") == 2


def test_addresses_take_turns_with_their_handshakes() -> None:
    async def story() -> None:
        limits = Limits()
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Noting(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        where, started = accepting.sockets[0].getsockname(), accepting.started
        with ExitStack() as stack:
            for address in ["127.0.0.2"] * 9 + ["127.0.0.3"]:
                greeting(stack, where, address)
            while len(started) < 10:
                await asyncio.sleep(0)
            assert started.index("127.0.0.3") <= limits.handshakes + 1
        accepting.close()

    told(story)


def test_a_busy_event_loop_does_not_starve_new_connections_of_one_address() -> None:
    """Each turn is as long as several handshakes: what they had no time for starts after it, not one a turn."""
    clients, turn_s = 30, 0.05

    async def story() -> int:
        limits = Limits()
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Noting(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        turns = 0
        with ExitStack() as stack:
            for _ in range(clients):
                greeting(stack, accepting.sockets[0].getsockname())
            while len(accepting.started) < clients:
                time.sleep(turn_s)  # requests of open connections
                turns += 1
                await asyncio.sleep(0)
        accepting.close()
        return turns

    assert asyncio.run(story()) <= clients


def test_handshakes_of_one_address_start_a_moment_apart_but_for_the_first_few() -> None:
    async def story() -> None:
        limits = Limits()
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Noting(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        clients = limits.handshakes + 10
        with ExitStack() as stack:
            for _ in range(clients):
                greeting(stack, accepting.sockets[0].getsockname())
            began = time.monotonic()
            while len(accepting.started) < clients:
                await asyncio.sleep(0)
            assert time.monotonic() - began >= 9 * acceptor.MOMENT_S
        accepting.close()

    told(story)


def test_a_client_that_says_nothing_has_no_handshake_and_is_closed_after_a_while() -> None:
    async def story() -> None:
        limits = Limits(handshake_s=0.3, connections_per_address=3)
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Noting(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        where, started = accepting.sockets[0].getsockname(), accepting.started
        with ExitStack() as stack:
            silent = [stack.enter_context(socket.create_connection(where)) for _ in range(3)]
            while listener.open < 3:
                await asyncio.sleep(0.001)
            assert len(asyncio.all_tasks()) == 1, "they have no task of their own"
            silent[0].settimeout(0)
            with pytest.raises(BlockingIOError):
                silent[0].recv(1)
            greeting(stack, where)  # the oldest of them makes room
            while not started:
                await asyncio.sleep(0.001)
            assert silent[0].recv(1) == b""
            async with asyncio.timeout(2.0):
                while listener.open:
                    await asyncio.sleep(0.01)
            assert started == ["127.0.0.1"]
            greeting(stack, where)
            while len(started) < 2:
                await asyncio.sleep(0.001)
        accepting.close()

    told(story)


def test_a_client_that_leaves_before_its_first_byte_no_longer_counts() -> None:
    async def story() -> None:
        limits = Limits()
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Acceptor(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        clients = [socket.create_connection(accepting.sockets[0].getsockname()) for _ in range(100)]
        while listener.open < 100:
            await asyncio.sleep(0.001)
        for client in clients:
            client.close()
        async with asyncio.timeout(2.0):
            while listener.open:
                await asyncio.sleep(0.001)
        assert len(asyncio.all_tasks()) == 1
        accepting.close()

    told(story)


def test_a_head_that_grows_without_end_is_refused() -> None:
    async def story() -> None:
        async with world(limits=Limits(head_bytes=10_000)) as here, here.line() as line:
            line.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            for number in range(21):
                line.send(b"X-%d: " % number + b"x" * 500 + b"\r\n")
            assert (await line.reply()).code == 431
            assert await line.ended()
            assert listener_of(here).held == 0

    told(story)


def test_heads_that_never_end_have_a_budget_of_memory_in_all() -> None:
    async def story() -> None:
        async with world(limits=Limits(heads_bytes=10_000)) as here, AsyncExitStack() as stack:
            lines = [await line_from(here, stack, "127.0.0.1") for _ in range(4)]
            for line in lines:
                line.send(b"GET / HTTP/1.1\r\nX: " + b"x" * 3_000)
            assert await lines[3].ended()
            assert 9_000 <= listener_of(here).held <= 10_000
            assert await version(await line_from(here, stack, "127.0.0.1")) == 200

    told(story)


def test_what_a_client_sends_ahead_is_not_read_before_its_turn() -> None:
    async def story() -> None:
        async with world(limits=Limits(head_bytes=10_000)) as here, here.line() as line:
            line.request("GET", "/api/v1/pods?watch=true")
            assert (await line.head()).code == 200
            request = b"GET /version HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 3_000 + b"\r\n\r\n"
            sent = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    while sent < 50 << 20:
                        line.send(request * 10)
                        sent += 10 * len(request)
                        await line.writer.drain()
            assert sent < 50 << 20
            assert listener_of(here).held < 1 << 20

    told(story)


def test_a_connection_closed_before_its_handshake_began_leaves_its_turn_to_the_next() -> None:
    async def story() -> None:
        limits = Limits(connections_per_address=4)
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Noting(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        where, started = accepting.sockets[0].getsockname(), accepting.started
        with ExitStack() as stack:
            # Many are accepted in one turn of the event loop: most are closed for the next before their task runs.
            for _ in range(60):
                greeting(stack, where)
            while listener.open or not started:
                await asyncio.sleep(0.001)
            before = len(started)
            greeting(stack, where)
            async with asyncio.timeout(2.0):
                while len(started) == before:
                    await asyncio.sleep(0.001)
        accepting.close()

    told(story)


def test_heads_that_come_in_pieces_do_not_add_up() -> None:
    async def story() -> None:
        async with world(limits=Limits(head_bytes=10_000)) as here, here.line() as line:
            for _ in range(20):
                line.send(b"GET /version HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 1_000)
                while not any(getattr(one, "head_since", 0.0) for one in listener_of(here).connections):
                    await asyncio.sleep(0)
                line.send(b"\r\n\r\n")
                assert (await line.reply()).code == 200
            assert listener_of(here).held == 0

    told(story)


@pytest.mark.parametrize("known", [True, False])
def test_what_a_client_sends_during_a_pause_is_not_read_before_its_turn(known: bool) -> None:
    async def story() -> None:
        limits = Limits(head_bytes=10_000, anonymous_burst=1, forbidden_burst=1, anonymous_pause_s=5, refused_pause_s=5)
        groups = "system:authenticated" if known else "system:unauthenticated"
        door = Named(groups=(groups,), barred=("list",))
        async with world(limits=limits, door=door) as here, here.line() as line:
            for code in (403, 403 if known else 429):
                line.request("GET", "/api/v1/pods", headers={"Authorization": "Bearer bob"} if known else {})
                assert (await line.reply()).code == code
            sent = 0
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    while sent < 50 << 20:
                        line.send(b"GET /version HTTP/1.1\r\nHost: localhost\r\n")
                        for number in range(100):
                            line.send(b"X-%d: " % number + b"x" * 30_000 + b"\r\n")
                            sent += 30_000
                            await line.writer.drain()
                        line.send(b"\r\n")
            assert sent < 50 << 20
            assert listener_of(here).held < 1 << 20

    told(story)


def test_a_request_that_came_during_a_pause_is_answered_after_it() -> None:
    async def story() -> None:
        limits = Limits(head_bytes=10_000, forbidden_burst=1, refused_pause_s=0.2)
        async with world(limits=limits, door=Door(barred=("list",))) as here, here.line() as line:
            for _ in range(2):
                line.request("GET", "/api/v1/pods")
                assert (await line.reply()).code == 403
            body = b" " * 1_000_000 + json.dumps(pod()).encode()
            line.request("POST", PODS, body)
            assert (await line.reply()).code == 201
            for _ in range(3):
                line.send(b"GET /version HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 5_000)
                await asyncio.sleep(0.01)
                line.send(b"\r\n\r\n")
                assert (await line.reply()).code == 200
            assert listener_of(here).held == 0

    told(story)


@pytest.mark.parametrize("rude", [b"GET / HTTP/1.1\r\nHost: loc", b"GET /api HTTP/1.1\r\nHost: localhost\r\n\r\n"])
def test_unknown_callers_with_half_a_request_or_in_a_pause_give_way_to_new_ones(rude: bytes) -> None:
    async def story() -> None:
        limits = Limits(connections=3, anonymous_burst=0)  # the second is answered 429, and pauses
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            lines = [await line_from(here, stack, "127.0.0.2") for _ in range(3)]
            for line in lines:
                line.send(rude)

            def waiting(one: object) -> bool:
                return bool(getattr(one, "head_since", 0.0) or getattr(one, "pausing", None))

            while sum(map(waiting, listener_of(here).connections)) < 3:
                await asyncio.sleep(0.001)
            honest = await line_from(here, stack, "127.0.0.1")
            honest.request("GET", "/version", headers={"Authorization": "Bearer alice"})
            assert (await honest.reply()).code == 200
            assert listener_of(here).refused == 0

    told(story)


def test_a_full_server_does_not_look_for_room_at_every_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[None] = []
    waiting_since = connection.Connection.waiting_since

    def looked(self: connection.Connection) -> float | None:
        looks.append(None)
        return waiting_since.__get__(self)  # type: ignore[no-any-return]

    monkeypatch.setattr(connection.Connection, "waiting_since", property(looked))

    async def story() -> None:
        limits = Limits(connections_per_address=2)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            for _ in range(2):
                line = await line_from(here, stack, "127.0.0.2")
                line.request("GET", "/api/v1/pods?watch=true", headers={"Authorization": "Bearer bob"})
                assert (await line.head()).code == 200
            for _ in range(20):
                assert await (await line_from(here, stack, "127.0.0.2")).ended()
            assert listener_of(here).refused == 20
            assert len(looks) <= 4

    told(story)


class Expiring(Acceptor):
    """It notes how many silent clients it closes in one turn of the event loop."""

    def __init__(self, listener: Listener, tls: ssl.SSLContext) -> None:
        super().__init__(listener, tls)
        self.closed: list[int] = []

    def _expire(self) -> None:
        before = len(self._silent)
        super()._expire()
        self.closed.append(before - len(self._silent))


def test_clients_that_say_nothing_are_closed_a_few_at_a_time() -> None:
    async def story() -> None:
        limits = Limits(handshake_s=0.5)
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Expiring(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        where = accepting.sockets[0].getsockname()
        with ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(socket.create_connection(where))
            while listener.open < 100:
                await asyncio.sleep(0.001)
            while listener.open:
                await asyncio.sleep(0.01)
        assert sum(accepting.closed) == 100
        assert max(accepting.closed) <= acceptor.ACCEPTS
        accepting.close()

    told(story)


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(Limits(connections=200), id="in all"),
        pytest.param(Limits(connections_per_address=200), id="from one address"),
    ],
)
@pytest.mark.parametrize("says", [pytest.param(b"", id="silent"), pytest.param(b"x", id="in their handshake")])
def test_a_full_server_closes_one_client_for_a_new_one(limits: Limits, says: bytes) -> None:
    """And not many at once, which would delay everybody."""

    async def story() -> None:
        listener = Listener(lambda _: None, limits, FlowControl(limits, RequestMetrics()))
        accepting = Acceptor(listener, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        await accepting.start("127.0.0.1", 0)
        where = accepting.sockets[0].getsockname()
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(socket.create_connection(where)).sendall(says)
            while listener.open < 200 or (says and accepting._silent):
                await asyncio.sleep(0.001)
            new = stack.enter_context(socket.create_connection(where))
            while new.getsockname()[1] not in {one.socket.getpeername()[1] for one in accepting._silent.values()}:
                await asyncio.sleep(0.001)
            assert (listener.open, listener.refused) == (200, 0)
        accepting.close()
        await asyncio.sleep(0)

    told(story)


def test_a_full_server_closes_one_idle_connection_for_a_new_one_and_none_that_was_used_since() -> None:
    async def story() -> None:
        limits = Limits(connections=150)
        async with world(limits=limits, door=Named()) as here, AsyncExitStack() as stack:
            idle = [await line_from(here, stack, "127.0.0.2") for _ in range(150)]
            while len(listener_of(here).connections) < 150:
                await asyncio.sleep(0.001)
            for number in range(3):
                if number == 2:  # the oldest that is left, and that was found when the first was closed
                    idle[2].request("GET", "/version", headers={"Authorization": "Bearer alice"})
                    assert (await idle[2].reply()).code == 200
                new = await line_from(here, stack, "127.0.0.1")
                new.request("GET", "/api/v1/pods?watch=true", headers={"Authorization": "Bearer bob"})
                assert (await new.head()).code == 200
                assert listener_of(here).open == 150
            assert [await idle[number].ended() for number in (0, 1, 3)] == [True] * 3
            idle[2].request("GET", "/version", headers={"Authorization": "Bearer alice"})
            assert (await idle[2].reply()).code == 200

    told(story)


def test_the_kernel_keeps_little_for_a_client_that_does_not_read() -> None:
    class Writing(asyncio.Protocol):
        """It writes until its client would have to read."""

        written, paused = 0, False

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.WriteTransport)
            while not self.paused:
                transport.write(b"x" * 65536)
                self.written += 65536

        def pause_writing(self) -> None:
            self.paused = True

    async def story() -> None:
        loop = asyncio.get_running_loop()
        listening = acceptor.listening_socket(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", 0))
        with listening, socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            transport, writing = await loop.connect_accepted_socket(Writing, accepted)
            assert writing.paused
            assert writing.written < 1 << 20
            transport.abort()
            await asyncio.sleep(0)

    told(story)
