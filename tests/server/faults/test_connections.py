"""Bytes that are no HTTP, or half of it, or too much of it."""

# ruff: noqa: E501 - tables read better in rows

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Iterator

import pytest

from server.faults.process import Plane
from server.faults.standing import standing
from server.faults.wire import Answer, NoAnswerError, Wire

PODS = "/api/v1/namespaces/corpus/pods"
HOST = "Host: 127.0.0.1\r\n"
MIB = 1 << 20
LIMIT_S = 1.0


@pytest.fixture(autouse=True)
def unharmed(plane: Plane) -> Iterator[None]:
    """Whatever it was, the server goes on, and knows what it knew."""
    with Wire(plane.port, plane.admin()) as wire:
        before = standing(wire)
        yield
        assert standing(wire) == before
    assert before.panics == 0
    assert plane.running


def is_refused(answer: Answer) -> bool:
    return 400 <= answer.code < 500 and bool(json.loads(answer.body)["code"] == answer.code)


REFUSED = {
    "no Host": f"GET {PODS} HTTP/1.1\r\n\r\n",
    "an empty Host": f"GET {PODS} HTTP/1.1\r\nHost:\r\n\r\n",
    "another Host": f"GET {PODS} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "another Host with a port": f"GET {PODS} HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
    "a Host that begins like ours": f"GET {PODS} HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n",
    "a Host with a name and ours": f"GET {PODS} HTTP/1.1\r\nHost: evil@127.0.0.1\r\n\r\n",
    "two Hosts": f"GET {PODS} HTTP/1.1\r\n{HOST}Host: evil.example\r\n\r\n",
    "an absolute address": f"GET http://evil.example{PODS} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a length and chunks": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "a length of x": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: x\r\n\r\n",
    "a length of -5": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: -5\r\n\r\n",
    "a length of +5": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: +5\r\n\r\nabcde",
    "a length of 1e3": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: 1e3\r\n\r\n",
    "a length of 99 digits": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: {'9' * 99}\r\n\r\n",
    "a length of 4 MiB": f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: {4 * MIB}\r\n\r\n",
    "a chunk of size x": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\nx\r\n",
    "a chunk of size -1": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n-1\r\n",
    "a chunk of size 0x5": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0x5\r\nabcde\r\n",
    "a chunk of 99 digits": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n{'f' * 99}\r\n",
    "a chunk that is longer": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n2\r\nabcde\r\n0\r\n\r\n",
    "an encoding gzip": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip\r\n\r\nabc",
    "an encoding xchunked": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunks twice": f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "a header of 1 MiB": f"GET {PODS} HTTP/1.1\r\n{HOST}X: {'a' * MIB}\r\n\r\n",
    "200 headers": f"GET {PODS} HTTP/1.1\r\n{HOST}{''.join(f'X-{n}: a{chr(13)}{chr(10)}' for n in range(200))}\r\n",
    "a header name with a space": f"GET {PODS} HTTP/1.1\r\n{HOST}X Y: a\r\n\r\n",
    "a header without a name": f"GET {PODS} HTTP/1.1\r\n{HOST}: a\r\n\r\n",
    "a header without a colon": f"GET {PODS} HTTP/1.1\r\n{HOST}abc\r\n\r\n",
    "a folded header": f"GET {PODS} HTTP/1.1\r\n{HOST}X: a\r\n b\r\n\r\n",
    "a header with a zero": f"GET {PODS} HTTP/1.1\r\n{HOST}X: a\0b\r\n\r\n",
    "no path": "GET HTTP/1.1\r\n\r\n",
    "no version": f"GET {PODS}\r\n\r\n",
    "version 9": f"GET {PODS} HTTP/9.9\r\n{HOST}\r\n",
    "version x": f"GET {PODS} HTTP/x\r\n{HOST}\r\n",
    "another protocol": f"GET {PODS} FTP/1.1\r\n{HOST}\r\n",
    "a request line of 1 MiB": f"GET /{'a' * MIB} HTTP/1.1\r\n{HOST}\r\n",
    "a space in the path": f"GET {PODS}/a b HTTP/1.1\r\n{HOST}\r\n",
    "a zero in the path": f"GET {PODS}/a\0b HTTP/1.1\r\n{HOST}\r\n",
    "a path without a slash": f"GET api HTTP/1.1\r\n{HOST}\r\n",
    "a path that is *": f"GET * HTTP/1.1\r\n{HOST}\r\n",
    "OPTIONS *": f"OPTIONS * HTTP/1.1\r\n{HOST}\r\n",
    "CONNECT": f"CONNECT 127.0.0.1:22 HTTP/1.1\r\n{HOST}\r\n",
    "TRACE": f"TRACE {PODS} HTTP/1.1\r\n{HOST}\r\n",
    "HTTP/2 from the start": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "zeros": "\0" * 1000 + "\r\n\r\n",
    "a greeting": "EHLO evil.example\r\n\r\n",
    "an end of line alone before it": f"\n\n\n\nGET {PODS}\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_bytes_that_are_no_request_are_refused_with_a_status(text: str, wire: Wire) -> None:
    began = time.monotonic()
    answer = wire.exchange(text.encode("latin-1"))
    assert is_refused(answer), answer
    assert time.monotonic() - began < LIMIT_S


def test_bytes_of_which_more_may_come_are_waited_for_and_nobody_else_waits(plane: Plane, wire: Wire) -> None:
    """Fifty clients that never finish: others do not notice."""
    with contextlib.ExitStack() as stack:
        for number in range(50):
            slow = stack.enter_context(Wire(plane.port, plane.admin()))
            half = f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: 500\r\n\r\nabc" if number % 2 else f"GET {PODS} HT"
            slow.connect().sendall(half.encode())
        began = time.monotonic()
        for _ in range(20):
            assert wire.ask("GET", f"{PODS}/p").code == 200
        assert time.monotonic() - began < LIMIT_S


def test_bodies_are_not_held_beyond_the_limit(plane: Plane) -> None:
    """100 MB in chunks: refused long before, and what comes after that is thrown away for a second at most."""
    before = plane.peak_bytes()
    sent = 0
    with Wire(plane.port, plane.admin()) as wire:
        connection = wire.connect()
        connection.sendall(f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n".encode())
        piece = b"10000\r\n" + b"a" * 65536 + b"\r\n"
        with contextlib.suppress(OSError):
            while sent < 100_000_000:
                connection.sendall(piece)
                sent += len(piece)
        with contextlib.suppress(NoAnswerError, OSError):  # it may have gone, and the answer with it
            assert wire.answer().code == 413
    assert plane.peak_bytes() - before < 32 * MIB


def test_what_follows_a_refused_body_is_not_taken_for_a_request(plane: Plane) -> None:
    smuggled = f"DELETE {PODS}/p HTTP/1.1\r\n{HOST}\r\n"
    for head in (
        f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"POST {PODS} HTTP/1.1\r\n{HOST}Content-Length: 4\r\nContent-Length: {4 + len(smuggled)}\r\n\r\nabcd",
        f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        f"POST {PODS} HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\nx\r\n",
        f"GET {PODS}/p HTTP/1.1\r\n{HOST}Content-Length: x\r\n\r\n",
    ):
        with Wire(plane.port, plane.admin()) as wire:
            answer = wire.exchange((head + smuggled).encode())
            assert is_refused(answer)
            assert answer.headers["connection"] == "close"


def test_requests_may_be_sent_before_the_answers_are_read(wire: Wire) -> None:
    connection = wire.connect()
    names = ["p", "none", "bound", "none"]
    connection.sendall("".join(f"GET {PODS}/{name} HTTP/1.1\r\n{HOST}\r\n" for name in names).encode())
    assert [wire.answer().code for _ in names] == [200, 404, 200, 404]


def test_an_upgrade_is_not_made(wire: Wire) -> None:
    for upgrade in ("websocket", "h2c", "SPDY/3.1"):
        headers = ["Connection: Upgrade", f"Upgrade: {upgrade}", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
        assert wire.ask("GET", f"{PODS}/none", headers=headers).code == 404


def test_plain_http_and_noise_on_the_port_for_tls_are_turned_away(plane: Plane, wire: Wire) -> None:
    for noise in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\0" * 500,
        b"\x16\x03\x01\xff\xff" + b"a" * 500,
        b"\xff" * 100,
        b"\x80\x2e\x01",
    ):
        with socket.create_connection(("127.0.0.1", plane.port), 5.0) as connection:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(4096):
                    pass
        assert wire.ask("GET", f"{PODS}/p").code == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1], ids=["1.0", "1.1"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_of_tls_are_refused(version: ssl.TLSVersion, plane: Plane) -> None:
    context = plane.anybody()
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    with Wire(plane.port, context) as wire, pytest.raises(ssl.SSLError):
        wire.connect()


def test_hundreds_of_connections_that_say_nothing_do_no_harm(plane: Plane, wire: Wire) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(socket.create_connection(("127.0.0.1", plane.port), 5.0))
        assert wire.ask("GET", f"{PODS}/p").code == 200
