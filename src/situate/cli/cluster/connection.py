"""Which cluster a command talks to: the one that its options name, the one in this directory, or kubectl's own."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    import asyncio

    from situate.kube.access import Access
    from situate.kube.client import Client
else:
    Client = Any  # for annotations: commands that read files do not import the client

__all__ = ["DIRECTORY", "KUBECONFIG", "Client", "access_to", "loop_factory", "until_stopped", "with_client"]

DIRECTORY: Final = Path(".situate")
"""Where `situate up` keeps its cluster by default."""
KUBECONFIG: Final = "kubeconfig"
USER_AGENT: Final = "situate-cli"

T = TypeVar("T")


def access_to(kubeconfig: str | None, context: str | None) -> Access:
    """Raises InputError."""
    from situate.kube.kubeconfig import find_access

    own = DIRECTORY / KUBECONFIG
    if kubeconfig is None and context is None and own.is_file():
        kubeconfig = str(own)
    return find_access(kubeconfig, context, None)


def with_client(kubeconfig: str | None, context: str | None, work: Callable[[Client], Awaitable[T]]) -> T:
    """Run `work` with a client of the cluster. What the server refuses is one line and exit code 1."""
    import asyncio  # slow to import, and not needed where a command reads files

    from situate.kube.client import Client
    from situate.kube.errors import ApiError

    access = access_to(kubeconfig, context)

    async def run() -> T:
        async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
            return await work(client)

    try:
        return asyncio.run(run())
    except ApiError as error:
        raise click.ClickException(error.message) from None


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For a process with thousands of requests a second; None: Python's own loop."""
    if sys.platform != "linux":
        return None
    import uvloop

    return uvloop.new_event_loop


async def until_stopped(work: Callable[[], Awaitable[None]]) -> None:
    """Run `work` until it ends, or until SIGTERM or SIGINT."""
    import asyncio

    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    working = asyncio.ensure_future(work())
    stopped = asyncio.create_task(stopping.wait())
    done, _ = await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
    for task in (working, stopped):
        task.cancel()
    await asyncio.gather(working, stopped, return_exceptions=True)
    if working in done:
        working.result()
