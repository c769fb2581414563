"""A stream whose client leaves before its first byte."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from situate.server.http.streams import OpenStreams


def test_a_client_that_left_before_the_stream_began_is_no_bug_of_the_server() -> None:
    async def story() -> None:
        request: Any = SimpleNamespace(protocol=None, keep_alive=True, transport=None)
        streams = OpenStreams(10.0)
        with pytest.raises(ConnectionError):
            async with streams.open(request, "application/json", ""):
                raise AssertionError("the block began")
        assert len(streams) == 0

    asyncio.run(story())
