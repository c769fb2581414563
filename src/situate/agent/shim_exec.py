"""Runs commands in a container, for its probes and hooks and for users: the shim's side.

The agent connects to the socket EXEC in the run's directory, once for each command:

    {"argv": [...]}                       from the agent, one line
    {"code": 0, "output": "..."}          from the shim, when the command has exited
    {"error": "..."}                      instead, if it could not start

With {"argv": [...], "terminal": false, "files": true}, the agent sends the command's stdin, stdout and stderr along, as
open files, and there is no output to answer. `terminal`: they are a terminal, and the command gets it as its own.

When the agent hangs up, the shim kills the command. What a command leaves behind ends with the container.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
from functools import partial
from typing import Any, Final

from situate.agent.launch import Order, launch
from situate.agent.processes import kill_tree

EXEC: Final = "exec"
MOST_EXECS: Final = 16
"""How many commands may run at a time in one container."""
REQUEST_BYTES: Final = 4 << 20
OUTPUT_BYTES: Final = 10 << 10
"""The output of a command that is kept; the rest is dropped."""
CHUNK: Final = 64 << 10
FILES: Final = 3
"""stdin, stdout and stderr."""


class _Exec:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.request = b""
        self.pid = 0
        self.output = -1
        self.kept = b""
        self.files: list[int] = []
        """The command's own, until it has started."""


class ExecServer:
    """Its callbacks are the data of the selector's keys."""

    def __init__(self, order: Order, selector: selectors.BaseSelector) -> None:
        self._order = order
        self._selector = selector
        self._running: list[_Exec] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        directory = os.open(order["directory"], os.O_RDONLY | os.O_DIRECTORY)
        try:
            # By the descriptor: a socket's own path may have 108 bytes only.
            with contextlib.suppress(OSError):  # this file system has no sockets: commands cannot be run
                self._listener.bind(f"/proc/self/fd/{directory}/{EXEC}")
                self._listener.listen(MOST_EXECS)
                selector.register(self._listener, selectors.EVENT_READ, self._accept)
        finally:
            os.close(directory)

    def close(self) -> None:
        """The container and all commands have exited."""
        for one in list(self._running):
            self._end(one)
        with contextlib.suppress(KeyError):
            self._selector.unregister(self._listener)
        self._listener.close()

    def reaped(self, pid: int, status: int) -> None:
        one = next((one for one in self._running if one.pid == pid), None)
        if one is None:
            return
        one.pid = 0  # it may be reused
        while self._read(one):
            pass
        code = os.waitstatus_to_exitcode(status)
        self._answer(one, {"code": code if code >= 0 else 128 - code, "output": one.kept.decode(errors="replace")})

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        if len(self._running) >= MOST_EXECS:
            connection.close()
            return
        connection.setblocking(False)
        one = _Exec(connection)
        self._running.append(one)
        self._selector.register(connection, selectors.EVENT_READ, partial(self._hear, one))

    def _hear(self, one: _Exec) -> None:
        if one not in self._running:
            return  # ended by another event of the same round
        try:
            data, files, _, _ = socket.recv_fds(one.connection, CHUNK, FILES)
        except BlockingIOError:
            return
        except OSError:
            data, files = b"", []
        one.request += data
        one.files += files
        if not data or len(one.request) > REQUEST_BYTES:
            self._end(one)
        elif not one.pid and one.request.endswith(b"\n"):
            self._start(one)

    def _start(self, one: _Exec) -> None:
        request = json.loads(one.request)
        if request.get("files"):
            if len(one.files) != FILES:
                self._answer(one, {"error": "its files are missing"})
                return
            terminal = bool(request.get("terminal"))
            launched = launch(self._order, request["argv"], joined=True, files=one.files, terminal=terminal)
            _close(one.files)
        else:
            launched = launch(self._order, request["argv"], joined=True)
        if launched.problem:
            self._answer(one, {"error": launched.problem})
            return
        one.pid = launched.pid
        if not launched.outputs:
            return
        (one.output,) = launched.outputs
        os.set_blocking(one.output, False)
        self._selector.register(one.output, selectors.EVENT_READ, partial(self._read, one))

    def _read(self, one: _Exec) -> bool:
        """Keep the beginning; read and drop the rest, so that the command does not block."""
        if one.output < 0:
            return False
        try:
            data = os.read(one.output, CHUNK)
        except BlockingIOError:
            return False
        one.kept += data[: OUTPUT_BYTES - len(one.kept)]
        if not data:
            self._close_output(one)
        return bool(data)

    def _answer(self, one: _Exec, answer: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the agent is gone
            one.connection.sendall(json.dumps(answer).encode() + b"\n")
        self._end(one)

    def _end(self, one: _Exec) -> None:
        if one.pid:
            kill_tree(one.pid)
        _close(one.files)
        self._close_output(one)
        self._selector.unregister(one.connection)
        one.connection.close()
        self._running.remove(one)

    def _close_output(self, one: _Exec) -> None:
        if one.output >= 0:
            self._selector.unregister(one.output)
            os.close(one.output)
            one.output = -1


def _close(files: list[int]) -> None:
    while files:
        os.close(files.pop())
