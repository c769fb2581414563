"""Connections to etcd's endpoints: uses one, and the next when it does not answer. Knows nothing of a store.

It retries reads until an endpoint answers. It sends a write once; the caller decides what to do without an answer.

Twice a second it asks the endpoint in use for a read that needs a majority. It leaves an endpoint that does not answer,
and gives up the calls in flight there: a member that is frozen, or cut off from the others, holds nobody up for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from situate.store.errors import ClosedError
from situate.store.etcd.channel import Channel, Metadata, StreamCall
from situate.store.etcd.errors import explained, is_final, wants_new_token
from situate.store.etcd.protocol import AUTHENTICATE, LEASE_KEEP_ALIVE, RANGE, Method
from situate.store.etcd.rpc import EOF, RpcError, unavailable
from situate.store.etcd.settings import EtcdSettings
from situate.store.etcd.tls import client_context

PAUSE_S: Final = 0.1
PROBE_S: Final = 0.5
"""The pause between two probes."""
PROBE_TIMEOUT_S: Final = 1.0
"""If an endpoint does not answer a probe in this time, use the next one."""
# A member that has lost its leader fails our calls at once.
_NEEDS_LEADER: Final = ("hasleader", "true")

_log = logging.getLogger(__name__)


class EtcdClient:
    """Create it in the event loop that uses it, after any fork."""

    def __init__(self, settings: EtcdSettings) -> None:
        self.settings = settings
        tls = client_context(settings) if settings.secure else None
        self._channels = [Channel(endpoint, tls) for endpoint in settings.endpoints]
        self._flying: dict[Channel, set[Any]] = {}
        """The calls in flight."""
        self._used = 0
        self.problem = ""
        """Why etcd cannot be used now; "" if it can."""
        self._token = ""
        self._closed = False

    # -- calls ---------------------------------------------------------------------------------------------------

    async def ask(self, method: Method, request: Any, timeout_s: float | None = None) -> Any:
        """Call an idempotent method, and retry until it is answered or time is up."""
        deadline = asyncio.get_running_loop().time() + self.settings.give_up_s
        while True:
            try:
                return await self.try_once(method, request, timeout_s)
            except RpcError as error:
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
            except RpcError as error:
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
            except RpcError as error:
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

    async def _call(self, channel: Channel, method: Method, request: Any, metadata: Metadata, timeout_s: float) -> Any:
        call = channel.call(method, request, metadata, timeout_s)
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

        deadline = asyncio.get_running_loop().time() + self.settings.give_up_s
        while True:
            channel = self.channel()
            try:
                metadata = await self._metadata(channel)
                made = channel.stream(LEASE_KEEP_ALIVE, metadata, self.settings.request_s)
                await made.write(LEASE_KEEP_ALIVE.request(ID=lease))
                answer: Any = await made.read()
                made.cancel()
                if answer is not EOF:
                    return int(answer.TTL)
            except RpcError as error:
                if wants_new_token(error):
                    self._token = ""
                elif is_final(error) or asyncio.get_running_loop().time() > deadline:
                    raise explained(error) from None
                else:
                    self.next_endpoint(channel)
            await asyncio.sleep(PAUSE_S)

    async def open_stream(self, method: Method) -> tuple[Channel, StreamCall]:
        """A bidirectional stream on the current endpoint; pass the channel to next_endpoint()."""
        channel = self.channel()
        return channel, channel.stream(method, await self._metadata(channel))

    # -- endpoints -----------------------------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """The endpoint in use."""
        return self.settings.endpoints[self._used]

    def channel(self) -> Channel:
        """The connection in use."""
        if self._closed:
            raise ClosedError
        return self._channels[self._used]

    def next_endpoint(self, failed: Channel) -> None:
        """Move on from a channel, unless another caller has done so."""
        if self._channels[self._used] is failed:
            self._used = (self._used + 1) % len(self._channels)

    def _give_up(self, left: Channel) -> None:
        """End the calls in flight on a channel that was left. Their outcome is unknown, as after a timeout."""
        flying = self._flying.pop(left, set())
        calls = list(flying)
        flying.clear()
        for call in calls:
            call.cancel()

    def forget_token(self) -> None:
        self._token = ""

    async def _metadata(self, channel: Channel) -> Metadata:
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


def _left() -> RpcError:
    """The error of a call that we gave up."""
    return unavailable("the endpoint does not answer and was left")
