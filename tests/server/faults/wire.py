"""A client that writes the bytes it is given, over TLS, and reads an HTTP/1.1 answer: it refuses nothing by itself."""

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

WITHIN_S = 5.0
CHUNK = 1 << 16


class NoAnswerError(Exception):
    """The server closed the connection, or said nothing in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float = 0.0

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection, made again when the server has closed it. `headers` go with every request."""

    def __init__(
        self, port: int, tls: ssl.SSLContext | None, headers: Iterable[str] = (), within_s: float = WITHIN_S
    ) -> None:
        self._port = port
        self._tls = tls
        self._lines = "".join(f"{line}\r\n" for line in (f"Host: 127.0.0.1:{port}", *headers))
        self._within_s = within_s
        self._socket: socket.socket | None = None
        self._rest = bytearray()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._rest = None, bytearray()

    def connect(self) -> socket.socket:
        if self._socket is None:
            made = socket.create_connection(("127.0.0.1", self._port), self._within_s)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = made if self._tls is None else self._tls.wrap_socket(made, server_hostname="127.0.0.1")
        return self._socket

    # ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Iterable[str] = ()) -> Answer:
        """Raises NoAnswerError. A connection that was closed since the last request is made anew, once."""
        lines = "".join(f"{line}\r\n" for line in headers)
        length = "" if body is None else f"Content-Length: {len(body)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\n{self._lines}{lines}{length}\r\n".encode("utf-8", "surrogateescape")
        fresh = self._socket is None
        began = time.monotonic()
        try:
            answer = self.exchange(head + (body or b""), method == "HEAD")
        except NoAnswerError:
            if fresh:
                raise
            answer = self.exchange(head + (body or b""), method == "HEAD")
        return Answer(answer.code, answer.headers, answer.body, time.monotonic() - began)

    def send(self, method: str, path: str, value: Any) -> Answer:
        return self.ask(method, path, json.dumps(value).encode(), ["Content-Type: application/json"])

    def exchange(self, data: bytes, headless: bool = False) -> Answer:
        """These bytes, and the answer to them. A server may answer, and close, before it has read all of them."""
        try:
            connection = self.connect()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                connection.sendall(data)
            return self.answer(headless)
        except (OSError, NoAnswerError) as error:
            self.close()
            raise NoAnswerError(repr(error)) from None

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, headless: bool = False) -> Answer:
        head = self._until(b"\r\n\r\n").decode("latin-1")
        first, *lines = head.split("\r\n")
        code = int(first.split(" ")[1])
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if code == 100:
            return self.answer(headless)
        body = b"" if headless or code in (101, 204, 304) else self._body(headers)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(code, headers, body)

    def _body(self, headers: Mapping[str, str]) -> bytes:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            pieces: list[bytes] = []
            while True:
                size = int(self._until(b"\r\n"), 16)
                piece = self._exactly(size + 2)[:-2]
                if not size:
                    return b"".join(pieces)
                pieces.append(piece)
        if "content-length" in headers:
            return self._exactly(int(headers["content-length"]))
        return self._to_the_end()

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._rest:
            self._rest += self._more()
        found, _, self._rest = self._rest.partition(mark)
        return bytes(found)

    def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._rest += self._more()
        found = bytes(self._rest[:size])
        del self._rest[:size]
        return found

    def _to_the_end(self) -> bytes:
        try:
            while True:
                self._rest += self._more()
        except NoAnswerError:
            found, self._rest = bytes(self._rest), bytearray()
            return found

    def _more(self) -> bytes:
        found = self.connect().recv(CHUNK)
        if not found:
            raise NoAnswerError("the server closed the connection")
        return found
