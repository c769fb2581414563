"""A watch on etcd: one stream. When it breaks, it is reopened after the last event, at the next endpoint.

The watch asks a silent stream for its progress. If the stream stays silent, or the client has left its endpoint, it
counts as broken: so a watch does not wait for a frozen member while reads and writes go on at another.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import Any, Final, Self

from situate.store.entries import Batch, Revision
from situate.store.errors import ClosedError, CompactedError, StoreError
from situate.store.etcd.channel import Channel
from situate.store.etcd.client import PAUSE_S, EtcdClient
from situate.store.etcd.errors import DENIED, explained, is_final, wants_new_token
from situate.store.etcd.protocol import RANGE, WATCH, message
from situate.store.etcd.rpc import EOF, RpcError
from situate.store.etcd.translation import Keys, batches

ASK_AGAIN_S: Final = 0.1
QUIET_TICKS: Final = 4
"""After this many ticks without a message, ask a stream for its progress. The store ticks with its probes."""
SILENT_TICKS: Final = 10
"""After this many, it counts as broken. etcd does not answer while it reads a long history for a watch, so this doubles
each time that a stream breaks before its first message."""
MOST_SILENT_TICKS: Final = 8 * SILENT_TICKS

_Create = message("WatchCreateRequest")
_Progress = message("WatchProgressRequest")


class EtcdWatch:
    """Reads on demand, so a slow reader slows etcd's stream and needs no queue here."""

    def __init__(self, client: EtcdClient, keys: Keys, prefix: str, after: Revision) -> None:
        self._client = client
        self._keys = keys
        self._prefix = prefix
        self._delivered = after
        self._ready: deque[Batch] = deque()
        self._channel: Channel | None = None
        self._call: Any = None
        self._progress_from = 0
        self._asking: asyncio.Task[None] | None = None
        self._reader: asyncio.Task[Any] | None = None
        """The task that waits for the next message."""
        self._interrupted = False
        self._quiet = 0
        """Ticks without a message, while somebody reads."""
        self._patience = SILENT_TICKS
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        while not self._ready:
            if self._closed:
                raise ClosedError
            try:
                response = await self._read()
            except asyncio.CancelledError:
                self._drop()  # gRPC gives up the stream with the reader
                if not self._was_interrupted():
                    raise
                continue  # closed, or the stream was left
            except RpcError as error:
                await self._broken(error)
                continue
            self._patience = SILENT_TICKS
            if response is EOF:
                self._drop()
                await asyncio.sleep(PAUSE_S)
            else:
                self._hear(response)
                if self._call is None:
                    await asyncio.sleep(PAUSE_S)
        batch = self._ready.popleft()
        self._delivered = max(self._delivered, batch.revision)
        return batch

    async def _read(self) -> Any:
        """The next message. `_interrupt` may cancel this, and nothing else of the reader."""
        self._reader, self._quiet = asyncio.current_task(), 0
        try:
            call = self._call or await self._open()
            return await call.read()
        finally:
            self._reader = None

    async def _open(self) -> Any:
        self._channel, call = await self._client.open_stream(WATCH)
        create = _Create(
            key=self._keys.there(self._prefix),
            range_end=self._keys.end(self._prefix),
            start_revision=self._delivered + 1,
            progress_notify=True,
            prev_kv=True,
        )
        self._call = call
        await call.write(WATCH.request(create_request=create))
        return call

    def tick(self) -> None:
        """Called with each probe: leave a stream that does not answer, or whose endpoint was left."""
        channel = self._channel
        if self._reader is None or channel is None:
            return
        self._quiet += 1
        if channel is not self._client.channel():
            self._interrupt()
        elif self._quiet >= self._patience:
            self._patience = min(2 * self._patience, MOST_SILENT_TICKS)
            self._client.next_endpoint(channel)
            self._interrupt()
        elif self._quiet >= QUIET_TICKS:
            self._request_progress()

    def _interrupt(self) -> None:
        """Have the reader open another stream. We cancel the task, as a timeout does: gRPC does not always wake the
        reader of a stream that is cancelled before it is connected."""
        if self._reader is not None and not self._interrupted:
            self._interrupted = True
            self._reader.cancel()

    def _was_interrupted(self) -> bool:
        """Whether the reader was cancelled by us and by nobody else, or only its stream was."""
        task, interrupted = asyncio.current_task(), self._interrupted
        self._interrupted = False
        if task is None:
            return False
        return (task.uncancel() if interrupted else task.cancelling()) == 0

    async def _broken(self, error: RpcError) -> None:
        if wants_new_token(error):
            self._client.forget_token()
        elif is_final(error):
            raise explained(error) from None
        elif self._channel is not None:
            self._client.next_endpoint(self._channel)
        self._drop()
        await asyncio.sleep(PAUSE_S)

    def _hear(self, response: Any) -> None:
        if response.canceled:
            self._drop()
            if response.compact_revision:
                raise CompactedError(self._delivered, Revision(response.compact_revision))
            if DENIED in response.cancel_reason:
                raise StoreError(f"etcd ended a watch: {response.cancel_reason}")
            return  # for a reason that passes, such as a lost leader: another stream is opened
        if response.events:
            self._ready.extend(batches(self._keys, response.events))
        elif not response.created:
            self._ready.append(Batch(Revision(response.header.revision)))
            if response.header.revision >= self._progress_from:
                self._progress_from = 0

    # -- bookmarks -----------------------------------------------------------------------------------------------

    async def ask_progress(self) -> None:
        """etcd does not answer while a watch is behind, nor does it remember that it was asked; so ask until it does.

        A bookmark in flight may be older than the request, so the newest revision is read first.
        """
        answer = await self._client.ask(RANGE, RANGE.request(key=self._keys.there(self._prefix), count_only=True))
        self.request_progress(answer.header.revision)

    def request_progress(self, revision: int) -> None:
        """Ask for a bookmark of this revision or a later one."""
        self._progress_from = max(self._progress_from, revision)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        """Until the bookmark has come."""
        while self._progress_from and not self._closed:
            self._request_progress()
            await asyncio.sleep(ASK_AGAIN_S)
        self._asking = None

    def _request_progress(self) -> None:
        """Unless a request is still on its way."""
        if self._call is not None and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send_progress(self._call))

    async def _send_progress(self, call: Any) -> None:
        """Errors are ignored: the reader sees them too, and opens another stream. Cancelled only with the stream: it
        would end in the middle of a write."""
        try:
            with suppress(RpcError, asyncio.InvalidStateError):
                await call.write(WATCH.request(progress_request=_Progress()))
        except asyncio.CancelledError:
            if _cancelled():
                raise

    # -- the end -------------------------------------------------------------------------------------------------

    def _drop(self) -> None:
        if self._call is not None:
            self._call.cancel()
        self._call = None
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    async def aclose(self) -> None:
        self._closed = True
        self._drop()
        if self._reader is not asyncio.current_task():
            self._interrupt()


def _cancelled() -> bool:
    """Whether the task is cancelled, and not only the stream."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
