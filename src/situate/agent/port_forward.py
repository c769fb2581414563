"""Forwards ports of a pod: SPDY streams inside a WebSocket, as kubectl tunnels them, to where the ports are here.

A connection is two streams with one requestID: `error`, on which only a problem is said, and `data`. Only ports that
the pod's containers declare are forwarded: the other ports of this machine are not the pod's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from aiohttp import WSMsgType, web

from situate.agent.spdy import Data, Frame, FrameReader, FrameWriter, GoAway, Opened, Ping, Reset, SpdyError
from situate.loop.logs import Log

PROTOCOL: Final = "SPDY/3.1+portforward.k8s.io"
MOST_STREAMS: Final = 512
"""Of one kubectl: two for each connection."""
MESSAGE_BYTES: Final = 1 << 20
PIECE: Final = 32 << 10
QUEUED: Final = 32
"""How many pieces of one connection may wait for the pod; then the whole tunnel waits."""
AT_ONCE: Final = 64
"""Frames to handle before other work of the agent gets its turn."""
LOOK_S: Final = 5.0
"""How often to look for the client while the pod does not read what it sent."""
CONNECT_S: Final = 10.0
HOST: Final = "127.0.0.1"
NO_WEBSOCKET: Final = (
    "this node forwards ports over WebSocket only: use kubectl 1.31 or newer, "
    "without KUBECTL_PORT_FORWARD_WEBSOCKETS=false"
)
UNDECLARED: Final = "no container of pod {} declares the port {}"
FAILED: Final = "error forwarding port {} to pod {}: {}"

_log = Log(__name__)

RealPort = Callable[[int], int | None]
"""The port of this machine where a port of the pod is; None: the pod does not have it."""


async def forward_ports(request: web.Request, pod: str, real_port: RealPort) -> web.StreamResponse:
    """Until the client goes. Raises an HTTP error if it speaks something else."""
    socket = web.WebSocketResponse(protocols=(PROTOCOL,), compress=False, max_msg_size=MESSAGE_BYTES)
    offered = [one.strip() for one in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    if not socket.can_prepare(request) or PROTOCOL not in offered:
        raise web.HTTPBadRequest(text=NO_WEBSOCKET)
    await socket.prepare(request)
    transport = request.transport
    await _Tunnel(socket, pod, real_port, lambda: transport is None or transport.is_closing()).run()
    return socket


class _Tunnel:
    def __init__(
        self, socket: web.WebSocketResponse, pod: str, real_port: RealPort, is_gone: Callable[[], bool]
    ) -> None:
        """`is_gone`: whether the client's connection is known to be closed."""
        self._socket = socket
        self._is_gone = is_gone
        self._pod = pod
        self._real_port = real_port
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._errors: dict[str, int] = {}
        """The error stream of each requestID that has no data stream yet."""
        self._inputs: dict[int, asyncio.Queue[bytes | None]] = {}
        """What the client sent on each data stream; None: no more."""
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        try:
            while (message := await self._socket.receive()).type is WSMsgType.BINARY:
                for number, frame in enumerate(self._reader.feed(message.data), 1):
                    if isinstance(frame, GoAway):
                        return
                    if frame is not None:
                        await self._handle(frame)
                    if number % AT_ONCE == 0:
                        await asyncio.sleep(0)
        except (SpdyError, ConnectionError) as error:
            _log.v(2).info("A port-forward ends", pod=self._pod, err=str(error))
        finally:
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            with suppress(ConnectionError):
                await self._socket.close()

    async def _handle(self, frame: Frame) -> None:
        match frame:
            case Opened():
                await self._open(frame)
            case Data(stream=stream, data=data, ended=ended):
                if data:
                    await self._pass_on(stream, data)
                if ended:
                    await self._pass_on(stream, None)
            case Reset(stream=stream):
                task = self._tasks.get(stream)
                if task is not None:
                    task.cancel()
            case Ping(id=number) if number % 2:  # the client's own
                await self._send(self._writer.ping(number))

    async def _pass_on(self, stream: int, data: bytes | None) -> None:
        """To the pod. While it does not read, wait, but for no client that has gone, nor for a connection that ended.
        Raises ConnectionError."""
        while (queue := self._inputs.get(stream)) is not None:
            try:
                async with asyncio.timeout(LOOK_S):
                    await queue.put(data)
            except TimeoutError:
                if self._is_gone():
                    raise ConnectionError("the client has gone") from None
            else:
                return

    async def _send(self, frame: bytes) -> None:
        await self._socket.send_bytes(frame)

    async def _open(self, frame: Opened) -> None:
        request, kind = frame.headers.get("requestid", ""), frame.headers.get("streamtype", "")
        port = frame.headers.get("port", "")
        if len(self._tasks) + len(self._errors) >= MOST_STREAMS or not port.isdecimal():
            await self._send(self._writer.reset(frame.stream))
        elif frame.stream in self._tasks or frame.stream in self._errors.values():
            raise SpdyError(f"stream {frame.stream} is open already")
        elif kind == "error" and request not in self._errors:
            self._errors[request] = frame.stream
            await self._send(self._writer.reply(frame.stream))
        elif kind == "data" and request in self._errors:
            error = self._errors.pop(request)
            self._inputs[frame.stream] = asyncio.Queue(QUEUED)
            await self._send(self._writer.reply(frame.stream))
            task = asyncio.create_task(self._forward(frame.stream, error, int(port[:6])))
            self._tasks[frame.stream] = task
        else:
            await self._send(self._writer.reset(frame.stream))

    # -- one connection ----------------------------------------------------------------------------------------------

    async def _forward(self, stream: int, error: int, port: int) -> None:
        problem = ""
        try:
            problem = await self._connect_and_copy(stream, port)
        except ConnectionError as cut:
            problem = str(cut)
        finally:
            left = self._inputs.pop(stream)
            del self._tasks[stream]
            while not left.empty():  # a piece may be waiting for room
                left.get_nowait()
        with suppress(ConnectionError):
            await self._send(self._writer.data(stream, b"", ended=True))
            text = FAILED.format(port, self._pod, problem).encode() if problem else b""
            await self._send(self._writer.data(error, text, ended=True))

    async def _connect_and_copy(self, stream: int, port: int) -> str:
        """What went wrong."""
        real = self._real_port(port)
        if real is None:
            return UNDECLARED.format(self._pod, port)
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(HOST, real)
        except (OSError, TimeoutError) as error:
            return str(error) or "no answer in time"
        sending = asyncio.create_task(self._upstream(stream, writer))
        try:
            while data := await reader.read(PIECE):
                await self._send(self._writer.data(stream, data))
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            writer.transport.abort()
        return ""

    async def _upstream(self, stream: int, writer: asyncio.StreamWriter) -> None:
        queue = self._inputs[stream]
        try:
            while (data := await queue.get()) is not None:
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except ConnectionError:
            while await queue.get() is not None:  # the pod has gone: drop the rest, so that the tunnel goes on
                pass
