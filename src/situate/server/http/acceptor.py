"""Accepts connections: counts them before their TLS handshakes, which start at a limited rate, addresses in turn.

A connection beyond a limit costs an accept and a close, and one whose client says nothing costs a socket: its handshake
starts with the first byte of the client. When the process has no file descriptor left, it accepts again a second later,
and the connections that are open go on.
"""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import ssl
import sys
from collections import OrderedDict
from functools import partial
from itertools import islice
from typing import Final

from situate.loop.fair_slots import FairSlots, QueueFullError, SlotLimits
from situate.loop.logs import Log
from situate.loop.token_buckets import TokenBuckets
from situate.server.http.connection import Connection, Listener

BACKLOG: Final = 1024
ACCEPTS: Final = 8
"""How many connections are accepted in one turn of the event loop, how many handshakes begin, and how many silent
clients are closed: more would delay everybody else."""
ADDRESSES: Final = 4_096
"""How many addresses have their handshakes counted."""
MOMENT_S: Final = 0.01
"""The pause between two handshakes of one address, apart from the first few."""
NO_RESOURCES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
RETRY_S: Final = 1.0
"""How long to accept nothing when the process cannot open another socket."""
SHUTDOWN_S: Final = 2.0
"""How long a client may take to answer TLS's close_notify."""
UNSENT_BYTES: Final = 128 << 10
"""How much of a response the kernel keeps for a client that does not read. It would keep 4 MiB of each."""
EXPIRE_S: Final = 0.002
"""The pause before more are closed of those who never began their handshake, at most `ACCEPTS` at a time."""
_log = Log(__name__)


class _Accepted:
    """A client from its accept to the end of its handshake."""

    __slots__ = ("_acceptor", "address", "connection", "since", "socket", "task")

    def __init__(self, acceptor: Acceptor, accepted: socket.socket, address: str, since: float) -> None:
        self._acceptor = acceptor
        self.socket = accepted
        self.address = address
        self.since = since
        self.task: asyncio.Task[None] | None = None
        """None: it has said nothing yet."""
        self.connection: Connection | None = None

    def abort(self) -> None:
        if self.task is None:
            self._acceptor.drop(self)
        else:
            self.task.cancel()  # its socket is closed after its transport
            self._acceptor.uncount(self)


class Acceptor:
    def __init__(self, listener: Listener, tls: ssl.SSLContext | None) -> None:
        self._listener = listener
        self._tls = tls
        limits = listener.limits
        slots = limits.handshakes if tls is not None else limits.connections
        self._turns = FairSlots(SlotLimits(slots, slots, limits.connections, slots))
        """An address has a slot for a moment, not for the handshake: a client that stalls does not hold it. It gets its
        slots back one a moment. So the handshakes for which a long turn of the event loop had no time start together
        after it: one a turn would be hundreds of requests of open connections for each new one."""
        self._due: dict[str, float] = {}
        """When an address gets back the last of its slots."""
        self._budgets = TokenBuckets(limits.handshake_rate, limits.handshake_burst, ADDRESSES)
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent: OrderedDict[int, _Accepted] = OrderedDict()
        """Clients that have said nothing yet, by descriptor, the oldest first."""
        self._first_bytes = select.epoll() if tls is not None and hasattr(select, "epoll") else None
        """Of these clients. The event loop itself would handle all that are ready in one turn."""
        self._expiring: asyncio.TimerHandle | None = None
        self.sockets: list[socket.socket] = []

    async def start(self, address: str, port: int) -> None:
        """Raises OSError if it cannot listen there."""
        found = await self._loop.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, where in dict.fromkeys(found):
                self.sockets.append(listening_socket(family, kind, protocol, where))
        except OSError:
            self.close()
            raise
        for one in self.sockets:
            self._loop.add_reader(one, self._accept, one)
        if self._first_bytes is not None:
            self._loop.add_reader(self._first_bytes.fileno(), self._begin_some, self._first_bytes)

    def close(self) -> None:
        """Stop accepting. Open connections stay open."""
        sockets, self.sockets = self.sockets, []
        for one in sockets:
            self._loop.remove_reader(one)
            one.close()
        for client in list(self._silent.values()):
            self.drop(client)
        if self._first_bytes is not None:
            self._loop.remove_reader(self._first_bytes.fileno())
            self._first_bytes.close()
        if self._expiring is not None:
            self._expiring.cancel()
        for task in list(self._tasks):
            task.cancel()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS):
            try:
                accepted, where = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in NO_RESOURCES:
                    continue  # the client has gone already
                _log.error("No connection can be accepted", err=error.strerror, retry_s=RETRY_S)
                self._loop.remove_reader(listening)
                self._loop.call_later(RETRY_S, self._accept_again, listening)
                return
            accepted.setblocking(False)
            client = _Accepted(self, accepted, str(where[0]), self._loop.time())
            if not self._listener.admit(client):
                accepted.close()
            elif self._first_bytes is None:
                self._begin(client)
            else:
                self._silent[accepted.fileno()] = client
                self._first_bytes.register(accepted, select.EPOLLIN)
                if self._expiring is None:
                    self._expiring = self._loop.call_later(self._listener.limits.handshake_s, self._expire)

    def _begin_some(self, first_bytes: select.epoll) -> None:
        for descriptor, _ in first_bytes.poll(0, ACCEPTS):
            client = self._silent[descriptor]
            try:
                has_gone = not client.socket.recv(1, socket.MSG_PEEK)
            except OSError:
                has_gone = True
            if has_gone:
                self.drop(client)
            else:
                self._hear(client)
                self._begin(client)

    def _begin(self, client: _Accepted) -> None:
        client.task = self._loop.create_task(self._open(client))
        self._tasks.add(client.task)
        client.task.add_done_callback(partial(self._ended, client))

    def _hear(self, client: _Accepted) -> None:
        if self._silent.get(client.socket.fileno()) is client and self._first_bytes is not None:
            del self._silent[client.socket.fileno()]
            self._first_bytes.unregister(client.socket)

    def _expire(self) -> None:
        """Close the clients that have said nothing for too long."""
        self._expiring = None
        limit_s, now = self._listener.limits.handshake_s, self._loop.time()
        for client in [one for one in islice(self._silent.values(), ACCEPTS) if one.since + limit_s <= now]:
            self.drop(client)
        if self._silent:
            oldest = next(iter(self._silent.values()))
            self._expiring = self._loop.call_later(max(EXPIRE_S, oldest.since + limit_s - now), self._expire)

    def drop(self, client: _Accepted) -> None:
        """Close a client whose handshake is not finished. May be called twice."""
        self._hear(client)
        self.uncount(client)
        client.socket.close()

    def uncount(self, client: _Accepted) -> None:
        """It makes room for another one. May be called twice."""
        self._listener.opened(client)
        self._listener.left(client if client.connection is None else client.connection)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self.sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _open(self, client: _Accepted) -> None:
        """Perform the TLS handshake, when it is the turn of its address. If cancelled earlier, it holds nothing."""
        limits, address = self._listener.limits, client.address
        try:
            waiting = self._turns.enter(address)
            if waiting is None:
                self._leave_soon(address)
            else:
                async with asyncio.timeout(limits.handshake_wait_s):
                    await self._turn(waiting, address)
            client.connection = self._listener.connection(client)
            async with asyncio.timeout(limits.handshake_s):
                await self._shake_hands(client.socket, client.connection)
            self._listener.opened(client)
        except (OSError, TimeoutError, QueueFullError):  # ssl.SSLError is an OSError
            self.drop(client)

    def _ended(self, client: _Accepted, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            self.drop(client)

    async def _turn(self, waiting: asyncio.Future[None], address: str) -> None:
        try:
            await waiting
        finally:
            if not waiting.cancelled():
                self._leave_soon(address)

    def _leave_soon(self, address: str) -> None:
        """The next handshake of this address may start a moment later, or two if it has too many."""
        now = self._loop.time()
        if self._tls is None:
            moment_s = 0.0
        elif self._budgets.take(address, now):
            moment_s = MOMENT_S
        else:
            moment_s = 1.0 / self._listener.limits.handshake_rate
        due = self._due[address] = max(now, self._due.get(address, now)) + moment_s
        self._loop.call_at(due, self._leave, address, due)

    def _leave(self, address: str, due: float) -> None:
        if self._due.get(address) == due:
            del self._due[address]
        self._turns.leave(address)

    async def _shake_hands(self, accepted: socket.socket, connection: Connection) -> None:
        tls, limit_s = self._tls, self._listener.limits.handshake_s
        await self._loop.connect_accepted_socket(
            lambda: connection,
            accepted,
            ssl=tls,
            ssl_handshake_timeout=limit_s if tls is not None else None,
            ssl_shutdown_timeout=SHUTDOWN_S if tls is not None else None,
        )


def listening_socket(family: int, kind: int, protocol: int, where: object) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)  # for what it accepts, too
        made.bind(where)  # type: ignore[arg-type]
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
