"""Kubernetes' channels over WebSocket: the streams of exec and attach, numbered, in the messages of one connection.

The first byte of a message is its channel. v5 adds the message that closes one: only with it can a client end a
command's stdin and still read its output. At the end the server sends a Status on the channel ERROR.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final, NamedTuple

from aiohttp import WSMsgType, web

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
MESSAGE_BYTES: Final = 1 << 20
"""The longest message of a client; kubectl sends 32 KiB."""
NO_WEBSOCKET: Final = (
    "this node speaks WebSocket only, with the protocol v5.channel.k8s.io or v4.channel.k8s.io: "
    "use kubectl 1.29 or newer, without KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false"
)
SUCCESS: Final = {"metadata": {}, "status": "Success"}


class ChannelMessage(NamedTuple):
    channel: int
    data: bytes


class Channels:
    """One connection. Open it with `open_channels`."""

    def __init__(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        self._request = request
        self._socket = socket

    @property
    def is_gone(self) -> bool:
        """Whether the connection is known to be closed."""
        transport = self._request.transport
        return self._socket.closed or transport is None or transport.is_closing()

    async def send(self, channel: int, data: bytes) -> None:
        """Waits while the client is slower than we are. Raises ConnectionError."""
        await self._socket.send_bytes(bytes((channel,)) + data)

    async def receive(self) -> ChannelMessage | None:
        """None: the client has gone."""
        while True:
            message = await self._socket.receive()
            if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                return None
            data = message.data.encode() if isinstance(message.data, str) else message.data
            if data:
                return ChannelMessage(data[0], data[1:])

    @property
    def response(self) -> web.StreamResponse:
        return self._socket

    async def finish(self, status: dict[str, Any]) -> None:
        with suppress(ConnectionError):
            await self.send(ERROR, json.dumps(status).encode())
            await self._socket.close()


async def open_channels(request: web.Request) -> Channels:
    """Raises an HTTP error if the client speaks something else."""
    socket = web.WebSocketResponse(protocols=PROTOCOLS, compress=False, max_msg_size=MESSAGE_BYTES)
    if not socket.can_prepare(request) or not _offers(request):
        raise web.HTTPBadRequest(text=NO_WEBSOCKET)
    await socket.prepare(request)
    return Channels(request, socket)


def _offers(request: web.Request) -> bool:
    offered = [one.strip() for one in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    return any(one in PROTOCOLS for one in offered)


def exit_status(code: int) -> dict[str, Any]:
    """The Status of a command that has ended."""
    if not code:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def failure(message: str) -> dict[str, Any]:
    text = f"Internal error occurred: {message}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }
