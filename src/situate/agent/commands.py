"""Runs a user's command in a container and connects its files to the channels of a WebSocket, until either ends; and
attaches a user to the output of a container.

The command is part of the container: its shim starts it, with the container's user, rights, limits and control group.
Its output is read before the client hears how it ended. When the client goes, the command is killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import struct
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final, NamedTuple

from situate.agent.channels import (
    CLOSE,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    SUCCESS,
    ChannelMessage,
    Channels,
    exit_status,
    failure,
)
from situate.agent.runtime import RunError, RunningCommand, RunsCommands

PIECE: Final = 32 << 10
DRAIN_S: Final = 1.0
"""How long output may come after the command has ended: a child that it left behind may hold the files."""
LOOK_S: Final = 5.0
"""How often to look for the client while the command does not read its input."""
MOST_SIDE: Final = 0xFFFF
"""The most rows or columns of a terminal."""
FAILED: Final = "error executing command in container: {}"


class Streams(NamedTuple):
    """What the user asked for. A terminal has one output."""

    stdin: bool
    stdout: bool
    stderr: bool
    terminal: bool


class _Files:
    """The files of a command, and our ends of them."""

    def __init__(self, wanted: Streams) -> None:
        self.stdin, self.outputs = -1, dict[int, int]()
        """Our ends; the outputs by channel."""
        self.terminal = -1
        self.given: list[int] = []
        self._opened: list[int] = []
        if wanted.terminal:
            ours, theirs = pty.openpty()
            self._opened += (ours, theirs)
            self.terminal, self.given, self.outputs = ours, [theirs] * 3, {STDOUT: ours}
            self.stdin = ours if wanted.stdin else -1
            return
        if wanted.stdin:
            theirs, self.stdin = self._pipe()
            self.given.append(theirs)
        else:
            self.given.append(self._null(os.O_RDONLY))
        for channel, is_wanted in ((STDOUT, wanted.stdout), (STDERR, wanted.stderr)):
            if is_wanted:
                self.outputs[channel], theirs = self._pipe()
                self.given.append(theirs)
            else:
                self.given.append(self._null(os.O_WRONLY))

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._opened += ends
        return ends

    def _null(self, mode: int) -> int:
        opened = os.open(os.devnull, mode)
        self._opened.append(opened)
        return opened

    def close_given(self) -> None:
        """The command has its own now."""
        for end in dict.fromkeys(self.given):
            self.close(end)

    def close(self, end: int) -> None:
        if end in self._opened:
            self._opened.remove(end)
            os.close(end)

    def close_all(self) -> None:
        while self._opened:
            os.close(self._opened.pop())


async def run_command(
    runtime: RunsCommands, pod: str, container: str, argv: Sequence[str], wanted: Streams, channels: Channels
) -> None:
    """Returns when the command has ended and the client knows it, or the client has gone."""
    with ExitStack() as stack:
        files = _Files(wanted)
        stack.callback(files.close_all)
        try:
            command = await runtime.start_command(pod, container, argv, files.given, terminal=wanted.terminal)
        except RunError as error:
            await channels.finish(failure(FAILED.format(error)))
            return
        stack.callback(command.close)
        files.close_given()
        await _connect(command, files, channels)


async def send_logs(logs: Mapping[int, AsyncIterator[bytes]], channels: Channels) -> None:
    """Send each log on its channel until the container has ended, or the client has gone."""
    loop = asyncio.get_running_loop()
    sending = asyncio.gather(*(_send_log(log, channel, channels) for channel, log in logs.items()))
    heard = loop.create_task(_hear_nothing(channels))
    try:
        waited: list[asyncio.Future[Any]] = [sending, heard]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            await channels.finish(SUCCESS)
    finally:
        sending.cancel()
        heard.cancel()
        await asyncio.gather(sending, heard, return_exceptions=True)


async def _send_log(log: AsyncIterator[bytes], channel: int, channels: Channels) -> None:
    with suppress(ConnectionError):
        async for piece in log:
            for start in range(0, len(piece), PIECE):
                await channels.send(channel, piece[start : start + PIECE])


async def _hear_nothing(channels: Channels) -> None:
    while await channels.receive() is not None:
        pass


async def _connect(command: RunningCommand, files: _Files, channels: Channels) -> None:
    loop = asyncio.get_running_loop()
    outputs = [loop.create_task(_send(end, channel, channels)) for channel, end in files.outputs.items()]
    ended = loop.create_task(command.wait())
    heard = loop.create_task(_hear(files, channels))
    tasks = [*outputs, ended, heard]
    try:
        await asyncio.wait([ended, heard], return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            return  # the client has gone
        if outputs:
            await asyncio.wait(outputs, timeout=DRAIN_S)
        try:
            status = exit_status(ended.result())
        except RunError as error:
            status = failure(FAILED.format(error))
        await channels.finish(status)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _send(end: int, channel: int, channels: Channels) -> None:
    """Until nobody has the other end any more."""
    os.set_blocking(end, False)
    with suppress(OSError):  # a terminal that nobody has open; a client that has gone
        while data := await _read(end):
            await channels.send(channel, data)


async def _read(end: int) -> bytes:
    """Raises OSError."""
    while True:
        try:
            return os.read(end, PIECE)
        except BlockingIOError:
            await _ready(end, write=False)


async def _hear(files: _Files, channels: Channels) -> None:
    """Until the client goes."""
    while (message := await channels.receive()) is not None:
        await _handle(message, files, channels)


async def _handle(message: ChannelMessage, files: _Files, channels: Channels) -> None:
    if message.channel == STDIN:
        await _write(files, message.data, channels)
    elif message.channel == RESIZE and files.terminal >= 0:
        _resize(files.terminal, message.data)
    elif message.channel == CLOSE and message.data == bytes((STDIN,)):
        _end_input(files)


async def _write(files: _Files, data: bytes, channels: Channels) -> None:
    """The command may have closed its stdin; then the rest of it is dropped, as when the client has gone."""
    if files.stdin < 0:
        return
    os.set_blocking(files.stdin, False)
    left = memoryview(data)
    try:
        while left:
            try:
                left = left[os.write(files.stdin, left) :]
            except BlockingIOError:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await _ready(files.stdin, write=True)
                if channels.is_gone:
                    return
    except OSError:
        _end_input(files)


def _end_input(files: _Files) -> None:
    """A terminal has no end of its own: the client sends one as a character."""
    if files.terminal < 0:
        files.close(files.stdin)
        files.stdin = -1


def _resize(terminal: int, data: bytes) -> None:
    with suppress(ValueError, TypeError, KeyError, OSError):
        size = json.loads(data)
        rows, columns = (max(0, min(int(size[side]), MOST_SIDE)) for side in ("Height", "Width"))
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def _ready(end: int, *, write: bool) -> None:
    """Wait until a file can be read or written. Cancelling it leaves nothing behind."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(end, ready.set)
    try:
        await ready.wait()
    finally:
        remove(end)
