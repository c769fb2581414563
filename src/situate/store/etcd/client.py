"""Connections to etcd's endpoints: uses one, and the next when it does not answer. Knows nothing of a store.

It retries reads until an endpoint answers. It sends a write once; the caller decides what to do without an answer.

Twice a second it asks the endpoint in use for a read that needs a majority. It leaves an endpoint that does not answer,
and gives up the calls in flight there: a member that is frozen, or cut off from the others, holds nobody up for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc

from situate.store.errors import ClosedError
from situate.store.etcd.errors import explained, is_final, wants_new_token
from situate.store.etcd.protocol import AUTHENTICATE, LEASE_KEEP_ALIVE, RANGE, Method
from situate.store.etcd.settings import RECEIVE_BYTES, EtcdSettings

PAUSE_S: Final = 0.1
PROBE_S: Final = 0.5
"""The pause between two probes."""
PROBE_TIMEOUT_S: Final = 1.0
"""If an endpoint does not answer a probe in this time, use the next one."""
KEEPALIVE_MS: Final = 6_000
"""How often to ping an HTTP/2 connection that receives nothing. etcd closes connections that ping more often than every
five seconds."""
PING_TIMEOUT_MS: Final = 3_000
"""A connection whose ping is not answered in this time is closed. gRPC's own default is a minute."""
CONNECT_MS: Final = 1_000
"""The timeout of an attempt to connect, and the shortest time between two."""
# A member that has lost its leader fails our calls at once.
_NEEDS_LEADER: Final = ("hasleader", "true")
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", RECEIVE_BYTES),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", CONNECT_MS),
    ("grpc.max_reconnect_backoff_ms", 2 * CONNECT_MS),
)

_log = logging.getLogger(__name__)


class EtcdClient:
    """Create it in the event loop that uses it, after any fork."""

    def __init__(self, settings: EtcdSettings) -> None:
        self.settings = settings
        self._channels: list[grpc.aio.Channel] = [self._channel(endpoint) for endpoint in settings.endpoints]
        self._flying: dict[grpc.aio.Channel, set[Any]] = {}
        """The calls in flight."""
        self._made: dict[tuple[grpc.aio.Channel, str], Any] = {}
        self._used = 0
        self.problem = ""
        """Why etcd cannot be used now; "" if it can."""
        self._token = ""
        self._closed = False

    def _channel(self, endpoint: str) -> grpc.aio.Channel:
        if not self.settings.secure:
            return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
        own = self.settings
        credentials = grpc.ssl_channel_credentials(own.ca, own.key, own.certificate)
        return grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)

    # -- calls ---------------------------------------------------------------------------------------------------

    async def ask(self, method: Method, request: Any, timeout_s: float | None = None) -> Any:
        """Call an idempotent method, and retry until it is answered or time is up."""
        deadline = asyncio.get_running_loop().time() + self.settings.give_up_s
        while True:
            try:
                return await self.try_once(method, request, timeout_s)
            except grpc.aio.AioRpcError as error:
                if is_final(error) or asyncio.get_running_loop().time() > deadline:
                    raise explained(error) from None
            await asyncio.sleep(PAUSE_S)

    async def try_once(self, method: Method, request: Any, timeout_s: float | None = None) -> Any:
        """Call once. AioRpcError if it was not answered. Retries only after a refused token: then nothing was done."""
        channel = self.channel()
        within_s = self.settings.request_s if timeout_s is None else timeout_s
        refused = False
        while True:
            try:
                return await self._call(channel, method, request, await self._metadata(channel), within_s)
            except grpc.aio.AioRpcError as error:
                if wants_new_token(error) and not refused:
                    self._token, refused = "", True
                    continue
                if not is_final(error):
                    self.next_endpoint(channel)
                raise

    async def probe(self, tick: Callable[[], None]) -> None:
        """Probe with reads until closed. Leave an endpoint that does not answer, and set `problem`. Call `tick`
        after each answer or timeout."""
        request = RANGE.request(key=self.settings.prefix.encode(), count_only=True)
        down_since: float | None = None
        while not self._closed:
            await asyncio.sleep(PROBE_S)
            endpoint, channel, now = self.endpoint, self.channel(), asyncio.get_running_loop().time()
            try:
                await self.try_once(RANGE, request, PROBE_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                if not self.problem:
                    down_since = now
                    _log.warning("etcd does not answer: endpoint=%s err=%s", endpoint, explained(error))
                self.problem = f"{explained(error)} (endpoint {endpoint})"
                if len(self._channels) > 1:
                    self._give_up(channel)
            else:
                if down_since is not None:
                    _log.warning("etcd answers again: endpoint=%s after_s=%.1f", endpoint, now - down_since)
                self.problem, down_since = "", None
            tick()

    async def _call(
        self, channel: grpc.aio.Channel, method: Method, request: Any, metadata: Any, timeout_s: float
    ) -> Any:
        made = self._made.get((channel, method.path))
        if made is None:
            made = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
            self._made[channel, method.path] = made
        call = made(request, timeout=timeout_s, metadata=metadata)
        flying = self._flying.setdefault(channel, set())
        flying.add(call)
        try:
            return await call
        except asyncio.CancelledError:
            if call in flying:
                raise
            raise _left() from None
        finally:
            flying.discard(call)

    async def keep_alive(self, lease: int) -> int:
        """The remaining seconds; 0: the lease has ended."""

        async def request() -> AsyncIterator[Any]:
            yield LEASE_KEEP_ALIVE.request(ID=lease)

        deadline = asyncio.get_running_loop().time() + self.settings.give_up_s
        while True:
            channel = self.channel()
            try:
                metadata = await self._metadata(channel)
                made = self.stream(channel, LEASE_KEEP_ALIVE)(
                    request(), timeout=self.settings.request_s, metadata=metadata
                )
                answer: Any = await made.read()
                made.cancel()
                if answer is not grpc.aio.EOF:
                    return int(answer.TTL)
            except grpc.aio.AioRpcError as error:
                if wants_new_token(error):
                    self._token = ""
                elif is_final(error) or asyncio.get_running_loop().time() > deadline:
                    raise explained(error) from None
                else:
                    self.next_endpoint(channel)
            await asyncio.sleep(PAUSE_S)

    async def open_stream(self, method: Method) -> tuple[grpc.aio.Channel, Any]:
        """A bidirectional stream on the current endpoint; pass the channel to next_endpoint()."""
        channel = self.channel()
        return channel, self.stream(channel, method)(metadata=await self._metadata(channel))

    def stream(self, channel: grpc.aio.Channel, method: Method) -> Any:
        return channel.stream_stream(method.path, method.request.SerializeToString, method.response.FromString)

    # -- endpoints -----------------------------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """The endpoint in use."""
        return self.settings.endpoints[self._used]

    def channel(self) -> grpc.aio.Channel:
        """The connection in use."""
        if self._closed:
            raise ClosedError
        return self._channels[self._used]

    def next_endpoint(self, failed: grpc.aio.Channel) -> None:
        """Move on from a channel, unless another caller has done so."""
        if self._channels[self._used] is failed:
            self._used = (self._used + 1) % len(self._channels)

    def _give_up(self, left: grpc.aio.Channel) -> None:
        """End the calls in flight on a channel that was left. Their outcome is unknown, as after a timeout."""
        flying = self._flying.pop(left, set())
        calls = list(flying)
        flying.clear()
        for call in calls:
            call.cancel()

    def forget_token(self) -> None:
        self._token = ""

    async def _metadata(self, channel: grpc.aio.Channel) -> tuple[tuple[str, str], ...]:
        own = self.settings
        if not own.username:
            return (_NEEDS_LEADER,)
        if not self._token:
            request = AUTHENTICATE.request(name=own.username, password=own.password)
            answer = await self._call(channel, AUTHENTICATE, request, (_NEEDS_LEADER,), own.request_s)
            self._token = answer.token
        return (_NEEDS_LEADER, ("token", self._token))

    async def aclose(self) -> None:
        self._closed = True
        for channel in self._channels:
            await channel.close()


def _left() -> grpc.aio.AioRpcError:
    """The error of a call that we gave up."""
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(
        grpc.StatusCode.UNAVAILABLE, nothing, nothing, "the endpoint does not answer and was left"
    )
