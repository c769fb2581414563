"""The page's port, beside the API's. Nothing runs behind it until a browser connects: then its process starts.

The process is a client of the API with the rights of whoever is logged in, so a question about 5,000 nodes costs the
API server nothing but requests. It gets the listening socket, which stays ours: when it ends, because nobody was logged
in for a while or because it failed, the next connection starts another.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Final

from situate.loop.logs import Log

PAGE_FOLDER: Final = "page"
"""Below the control plane's directory: login links that nobody has used."""
SOCKET: Final = "SITUATE_WEB_SOCKET"
"""The environment variable with the descriptor of the socket."""
LOOPBACK: Final = "127.0.0.1"
BACKLOG: Final = 128
FIRST_WAIT_S: Final = 0.5
LAST_WAIT_S: Final = 30.0
"""How long to wait before a process that failed is started again: doubled each time."""
STOP_S: Final = 5.0

_log = Log(__name__)


class PagePort:
    """`run` it until it is cancelled."""

    def __init__(self, directory: Path, port: int) -> None:
        """If the port is in use, the page is not served, and the log says so."""
        self._directory = directory
        self._socket: socket.socket | None = None
        self.url = ""
        """Empty: the page is not served."""
        try:
            self._socket = socket.create_server((LOOPBACK, port), backlog=BACKLOG)
        except OSError as error:
            _log.warning("The page is not served; --web-port chooses another port", port=port, err=error.strerror)
            return
        self._socket.setblocking(False)
        self.url = f"https://{LOOPBACK}:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    async def run(self) -> None:
        listening, wait_s = self._socket, FIRST_WAIT_S
        if listening is None:
            await asyncio.Event().wait()
            return
        while True:
            await _connected(listening)
            code = await self._serve(listening)
            if not code:
                wait_s = FIRST_WAIT_S
                continue
            _log.error("The page's process failed; the next connection starts another", exit=code, seconds=wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, LAST_WAIT_S)

    async def _serve(self, listening: socket.socket) -> int:
        """Run the process until it ends; its exit code. It ends by itself when its stdin does."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "situate", "web", "--cluster", str(self._directory.absolute())),
            stdin=asyncio.subprocess.PIPE,
            env={**os.environ, SOCKET: str(listening.fileno())},
            pass_fds=[listening.fileno()],
        )
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                try:
                    async with asyncio.timeout(STOP_S):
                        await process.wait()
                except TimeoutError:
                    process.kill()


async def _connected(listening: socket.socket) -> None:
    """Until somebody connects. The connection stays in the queue, for the process to accept."""
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listening, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(listening)
