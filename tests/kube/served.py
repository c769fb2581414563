"""A fake server for tests of commands, which have no event loop of their own."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kube.fake_server import FakeServer


@contextmanager
def served(*objects: dict[str, Any], hidden: tuple[str, ...] = ()) -> Iterator[tuple[FakeServer, str]]:
    """A server with these objects, in a thread of its own, and its address."""
    began, loop = threading.Event(), asyncio.new_event_loop()
    box: list[FakeServer] = []

    async def serve() -> None:
        async with FakeServer() as server:
            for one in objects:
                server.put(f"/api/v1/{one['kind'].lower()}s", one)
            for path in hidden:
                server.fault("GET", path, status=403, reason="Forbidden", times=99)
            box.append(server)
            began.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    began.wait(30)
    try:
        yield box[0], box[0].access().server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()
