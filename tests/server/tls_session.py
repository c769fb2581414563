"""A session of aiohttp over TLS that leaves no socket behind.

aiohttp closes the connection of a cancelled request gracefully: in the background it waits for the close_notify of the
server, and the event loop may end before. The garbage collector then finds the socket, in some other test.
"""

import asyncio
import socket
import ssl
from typing import Any

import aiohttp

CLOSED_S = 10.0


class TlsSession:
    """Create it in a running event loop."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._sockets: list[socket.socket] = []
        connector = aiohttp.TCPConnector(ssl=tls, limit=0, socket_factory=self._socket)
        self.http = aiohttp.ClientSession(connector=connector)

    def _socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, _ = address
        self._sockets = [one for one in self._sockets if one.fileno() >= 0]
        self._sockets.append(socket.socket(family, kind, protocol))
        return self._sockets[-1]

    async def close(self) -> None:
        await self.http.close()
        async with asyncio.timeout(CLOSED_S):
            while any(one.fileno() >= 0 for one in self._sockets):
                await asyncio.sleep(0.005)
