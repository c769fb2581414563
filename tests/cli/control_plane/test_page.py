"""The process behind the page's port."""

import asyncio
import os
import signal
from pathlib import Path

from cli.control_plane.running import running
from situate.cli.control_plane.page import PagePort
from situate.cli.control_plane.settings import ControlPlaneSettings

WITHIN_S = 60.0


def children() -> list[int]:
    """Of this process, with `situate web` among their words."""
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(one) for one in found if b"\0web\0" in Path(f"/proc/{one}/cmdline").read_bytes()]


async def greeted(port: int) -> bool:
    """Whether somebody accepts a connection and answers; what does not speak TLS is sent away."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"no TLS\r\n\r\n")
    said = await reader.read(100)
    writer.close()
    return said is not None


def test_a_process_that_is_told_to_stop_ends_and_the_next_connection_starts_another(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(ControlPlaneSettings(directory=tmp_path, nodes=1)):
            port = PagePort(tmp_path, 0)
            task = asyncio.create_task(port.run())
            number = int(port.url.rpartition(":")[2])
            try:
                async with asyncio.timeout(WITHIN_S):
                    assert await greeted(number)
                    (first,) = children()
                    os.kill(first, signal.SIGTERM)
                    while first in children():
                        await asyncio.sleep(0.05)
                    assert await greeted(number)
                    assert len(children()) == 1
                    assert children() != [first]
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                port.close()
        assert not children()

    asyncio.run(test())
