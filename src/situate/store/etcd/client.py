"""Connections to etcd's endpoints: uses one, and the next when it does not answer. Knows nothing of a store.

It retries reads until an endpoint answers. It sends a write once; the caller decides what to do without an answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc

from situate.store.errors import ClosedError, UnavailableError
from situate.store.etcd.errors import explained, is_final, wants_new_token
from situate.store.etcd.protocol import AUTHENTICATE, LEASE_KEEP_ALIVE, Method
from situate.store.etcd.settings import RECEIVE_BYTES, EtcdSettings

PAUSE_S: Final = 0.1
# A member that has lost its leader fails our calls at once.
_NEEDS_LEADER: Final = ("hasleader", "true")
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", RECEIVE_BYTES),
    ("grpc.max_send_message_length", -1),
    # Detects a dead connection within ten seconds, also for an idle watch.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


class EtcdClient:
    """Create it in the event loop that uses it, after any fork."""

    def __init__(self, settings: EtcdSettings) -> None:
        self.settings = settings
        self._channels: list[grpc.aio.Channel] = [self._channel(endpoint) for endpoint in settings.endpoints]
        self._made: dict[tuple[grpc.aio.Channel, str], Any] = {}
        self._used = 0
        self._token = ""
        self._closed = False

    def _channel(self, endpoint: str) -> grpc.aio.Channel:
        if not self.settings.secure:
            return grpc.aio.insecure_channel(endpoint, options=_OPTIONS)
        own = self.settings
        credentials = grpc.ssl_channel_credentials(own.ca, own.key, own.certificate)
        return grpc.aio.secure_channel(endpoint, credentials, options=_OPTIONS)

    # -- calls ---------------------------------------------------------------------------------------------------

    async def ask(self, method: Method, request: Any) -> Any:
        """Call an idempotent method, and retry until it is answered or time is up."""
        deadline = asyncio.get_running_loop().time() + self.settings.give_up_s
        while True:
            try:
                return await self.try_once(method, request)
            except grpc.aio.AioRpcError as error:
                if is_final(error) or asyncio.get_running_loop().time() > deadline:
                    raise explained(error) from None
            await asyncio.sleep(PAUSE_S)

    async def try_once(self, method: Method, request: Any) -> Any:
        """Call once. AioRpcError if it was not answered. Retries only after a refused token: then nothing was done."""
        channel = self._in_use()
        for last in (False, True):
            try:
                return await self._call(channel, method, request, await self._metadata(channel))
            except grpc.aio.AioRpcError as error:
                if wants_new_token(error) and not last:
                    self._token = ""
                    continue
                if not is_final(error):
                    self.next_endpoint(channel)
                raise
        raise UnavailableError("etcd accepts none of our tokens")

    async def _call(self, channel: grpc.aio.Channel, method: Method, request: Any, metadata: Any) -> Any:
        made = self._made.get((channel, method.path))
        if made is None:
            made = channel.unary_unary(method.path, method.request.SerializeToString, method.response.FromString)
            self._made[channel, method.path] = made
        return await made(request, timeout=self.settings.request_s, metadata=metadata)

    async def keep_alive(self, lease: int) -> int:
        """The remaining seconds; 0: the lease has ended."""

        async def request() -> AsyncIterator[Any]:
            yield LEASE_KEEP_ALIVE.request(ID=lease)

        deadline = asyncio.get_running_loop().time() + self.settings.give_up_s
        while True:
            channel = self._in_use()
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
        channel = self._in_use()
        return channel, self.stream(channel, method)(metadata=await self._metadata(channel))

    def stream(self, channel: grpc.aio.Channel, method: Method) -> Any:
        return channel.stream_stream(method.path, method.request.SerializeToString, method.response.FromString)

    # -- endpoints -----------------------------------------------------------------------------------------------

    def _in_use(self) -> grpc.aio.Channel:
        if self._closed:
            raise ClosedError
        return self._channels[self._used]

    def next_endpoint(self, failed: grpc.aio.Channel) -> None:
        """Move on from a channel, unless another caller has done so."""
        if self._channels[self._used] is failed:
            self._used = (self._used + 1) % len(self._channels)

    def forget_token(self) -> None:
        self._token = ""

    async def _metadata(self, channel: grpc.aio.Channel) -> tuple[tuple[str, str], ...]:
        own = self.settings
        if not own.username:
            return (_NEEDS_LEADER,)
        if not self._token:
            request = AUTHENTICATE.request(name=own.username, password=own.password)
            self._token = (await self._call(channel, AUTHENTICATE, request, (_NEEDS_LEADER,))).token
        return (_NEEDS_LEADER, ("token", self._token))

    async def aclose(self) -> None:
        self._closed = True
        for channel in self._channels:
            await channel.close()
