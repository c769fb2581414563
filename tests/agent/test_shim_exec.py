"""Commands of probes and hooks, the shim's side: how many there may be, how long they may be, and how they end."""

import contextlib
import json
import os
import selectors
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from situate.agent import shim_exec
from situate.agent.launch import Launched
from situate.agent.shim_exec import CHUNK, EXEC, MOST_EXECS, OUTPUT_BYTES, ExecServer

PID = 4711


class Server:
    """An ExecServer whose commands are pipes."""

    def __init__(self, directory: Path, stack: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
        self.killed: list[int] = []
        self.asked: list[list[str]] = []
        self.outputs: list[int] = []
        """Where the commands would write."""
        self.readers: list[int] = []
        self.problem = ""
        self._path = directory / EXEC
        self._stack = stack
        self.selector = stack.enter_context(selectors.DefaultSelector())
        monkeypatch.setattr(shim_exec, "launch", self._launch)
        monkeypatch.setattr(shim_exec, "kill_tree", self.killed.append)
        self.execs = ExecServer({"directory": str(directory)}, self.selector)

    def _launch(self, _order: object, argv: list[str], *, joined: bool) -> Launched:
        assert joined
        self.asked.append(argv)
        if self.problem:
            return Launched(self.problem, 0, ())
        reader, writer = os.pipe()
        self.readers.append(reader)
        self.outputs.append(writer)
        return Launched("", PID + len(self.outputs) - 1, (reader,))

    def connect(self) -> socket.socket:
        made = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        made.settimeout(0)
        made.connect(str(self._path))
        self.turn()
        return made

    def ask(self, *argv: str) -> socket.socket:
        made = self.connect()
        made.sendall(request(*argv))
        self.turn()
        return made

    def turn(self) -> None:
        """Whatever there is to do, until there is nothing."""
        while found := self.selector.select(0):
            for key, _ in found:
                key.data()

    def close_outputs(self) -> None:
        while self.outputs:
            os.close(self.outputs.pop())


def request(*argv: str) -> bytes:
    return json.dumps({"argv": argv}).encode() + b"\n"


def answer(connection: socket.socket) -> dict[str, Any] | None:
    """None: it was closed without one."""
    said = connection.makefile("rb").read()
    return json.loads(said) if said else None


def is_waiting(connection: socket.socket) -> bool:
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


def is_open(number: int) -> bool:
    return Path(f"/proc/self/fd/{number}").exists()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with contextlib.ExitStack() as stack:
        made = Server(tmp_path, stack, monkeypatch)
        yield made
        if made.selector.get_map():
            made.execs.close()
        assert not made.selector.get_map(), "it forgets whatever it was waiting for"
        made.close_outputs()


def test_a_command_is_answered_with_its_output_and_code(server: Server) -> None:
    asked = server.ask("a", "b")
    assert server.asked == [["a", "b"]]
    os.write(server.outputs[0], b"said \xff")
    assert is_waiting(asked)
    server.execs.reaped(PID + 1, 0)
    assert is_waiting(asked), "another process has exited"
    server.execs.reaped(PID, 3 << 8)
    assert answer(asked) == {"code": 3, "output": "said \ufffd"}
    assert server.killed == [], "its pid may be another's now"
    assert not is_open(server.readers[0])


def test_a_signal_is_a_code_above_128(server: Server) -> None:
    asked = server.ask("a")
    server.execs.reaped(PID, 9)
    assert answer(asked) == {"code": 137, "output": ""}


def test_a_command_that_cannot_start_says_why(server: Server) -> None:
    server.problem = "no such program"
    assert answer(server.ask("a")) == {"error": "no such program"}


def test_who_has_the_output_open_does_not_delay_the_answer(server: Server) -> None:
    """A child that the command leaves behind has it."""
    asked = server.ask("a")
    assert not os.get_blocking(server.readers[0])
    server.execs.reaped(PID, 0)
    assert answer(asked) == {"code": 0, "output": ""}


def test_the_beginning_of_a_long_output_is_kept_and_the_rest_read(server: Server) -> None:
    asked = server.ask("a")
    for letter in (b"a", b"b"):
        os.write(server.outputs[0], letter * (OUTPUT_BYTES - 1))
        server.turn()
    os.write(server.outputs[0], b"c" * CHUNK)  # as much as a pipe takes
    os.close(server.outputs.pop())
    server.execs.reaped(PID, 0)
    assert answer(asked) == {"code": 0, "output": "a" * (OUTPUT_BYTES - 1) + "b"}


def test_an_output_that_ends_before_its_command_is_closed(server: Server) -> None:
    asked = server.ask("a")
    server.close_outputs()
    server.turn()
    assert not is_open(server.readers[0])
    assert is_waiting(asked)
    server.execs.reaped(PID, 0)
    assert answer(asked) == {"code": 0, "output": ""}


def test_nothing_that_the_shim_waits_for_can_block_it(server: Server) -> None:
    server.ask("a")
    server.connect()
    waiting = [key.fd for key in server.selector.get_map().values()]
    assert len(waiting) == 4
    assert not any(map(os.get_blocking, waiting))


def test_who_hangs_up_ends_the_command(server: Server) -> None:
    asked = server.ask("a")
    other = server.ask("b")
    asked.close()
    server.turn()
    assert server.killed == [PID]
    assert not is_open(server.readers[0])
    server.execs.reaped(PID, 9)
    assert is_waiting(other)


def test_who_hangs_up_before_asking_ends_nothing(server: Server) -> None:
    server.connect().close()
    server.turn()
    assert (server.asked, server.killed) == ([], [])


def test_a_request_may_come_in_pieces_and_is_run_once(server: Server) -> None:
    asked = server.connect()
    for piece in (b'{"argv":', b' ["a"]}'):
        asked.sendall(piece)
        server.turn()
        assert server.asked == []
    for piece in (b"\n", b"\n"):
        asked.sendall(piece)
        server.turn()
        assert server.asked == [["a"]]


@pytest.mark.parametrize("more, fits", [(0, True), (1, False)])
def test_a_request_has_a_limit(more: int, fits: bool, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.problem = "not today"
    monkeypatch.setattr(shim_exec, "REQUEST_BYTES", len(request("a")))
    assert answer(server.ask("a" + "a" * more)) == ({"error": "not today"} if fits else None)


def test_only_so_many_commands_run_at_a_time(server: Server) -> None:
    some = [server.connect() for _ in range(MOST_EXECS)]
    assert all(map(is_waiting, some))
    assert answer(server.connect()) is None
    some.pop().close()
    server.turn()
    assert is_waiting(server.connect())
    assert answer(server.connect()) is None


def test_when_the_container_ends_all_commands_do(server: Server) -> None:
    asked, other = server.ask("a"), server.connect()
    server.execs.close()
    assert (answer(asked), answer(other)) == (None, None)
    assert server.killed == [PID]
    assert not is_open(server.readers[0])
    with pytest.raises(ConnectionRefusedError):
        server.connect()


def test_one_event_may_end_a_command_whose_other_event_is_due(server: Server) -> None:
    """Both the connection and the output have something, and the first to be served ends the command."""
    asked = server.ask("a")
    asked.sendall(b"\n")
    due = [key.data for key, _ in server.selector.select(0)]
    server.execs.reaped(PID, 0)
    assert due
    for each in due:
        each()
    assert server.asked == [["a"]]


def test_a_directory_in_which_no_socket_can_be_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / EXEC).touch()
    with selectors.DefaultSelector() as selector:
        execs = ExecServer({"directory": str(tmp_path)}, selector)
        assert not selector.get_map()
        execs.close()
