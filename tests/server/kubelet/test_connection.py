"""HTTP/1.1 with a kubelet that may say anything."""

import asyncio

import pytest

from situate.server.kubelet.connection import REFUSAL_BYTES, AnswerError, read_body, read_head, refusal


def read(text: bytes, method: str = "GET") -> tuple[int, bytes]:
    async def story() -> tuple[int, bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(text)
        reader.feed_eof()
        head = await read_head(reader)
        return head.code, b"".join([piece async for piece in read_body(reader, head, method)])

    return asyncio.run(story())


@pytest.mark.parametrize(
    "text, body",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", b"abc", id="with a length"),
        pytest.param(b"HTTP/1.1 200\r\n\r\nabc", b"abc", id="until the end"),
        pytest.param(
            b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nT: 1\r\n\r\n",
            b"abc",
            id="in chunks",
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", id="empty"),
    ],
)
def test_a_body(text: bytes, body: bytes) -> None:
    assert read(text) == (200, body)


def test_an_answer_to_head_has_none() -> None:
    assert read(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD") == (200, b"")


@pytest.mark.parametrize(
    "text, why",
    [
        (b"", "ended early"),
        (b"SSH-2.0\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 099 What\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nX: a\nSet-Cookie: b\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n", "control character"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", "too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n", "not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "ended early"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "without a size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc", "without a size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\nabc", "without a size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", "without an end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + b"x" * 2_000 + b"\r\nab\r\n", "long head"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na", "ended early"),
    ],
)
def test_what_is_no_answer(text: bytes, why: str) -> None:
    with pytest.raises(AnswerError, match=why):
        read(text)


def test_a_refusal_without_end_is_cut() -> None:
    async def story() -> str:
        reader = asyncio.StreamReader()
        reader.feed_data(b"HTTP/1.1 500 x\r\n\r\n" + b"x" * (2 * REFUSAL_BYTES))
        head = await read_head(reader)
        return (await refusal(reader, head)).message

    assert len(asyncio.run(story())) == REFUSAL_BYTES
