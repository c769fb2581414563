"""Which cluster a command talks to: the one that its options name, else the one that kubectl would talk to.

Where kubectl would find none, it is the cluster of `situate up`, if exactly one is up.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from situate.cli.cluster.local import KUBECONFIG, running_clusters

if TYPE_CHECKING:
    import asyncio

    from situate.kube.access import Access
    from situate.kube.client import Client
else:
    Client = Any  # for annotations: commands that read files do not import the client

__all__ = ["KUBECONFIG", "Client", "access_to", "loop_factory", "say_target", "until_stopped", "with_client"]

USER_AGENT: Final = "situate-cli"

T = TypeVar("T")


def access_to(kubeconfig: str | None, context: str | None, master: str | None = None) -> Access:
    """Raises InputError."""
    from situate.kube.kubeconfig import NoKubeconfigError, find_access

    try:
        return find_access(kubeconfig, context, master)
    except NoKubeconfigError as error:
        found = running_clusters()
        if len(found) == 1:
            return find_access(str(found[0].kubeconfig), context, None)
        if not found:
            raise NoKubeconfigError(f"{error}, or start a cluster with `situate up`") from None
        choices = ", ".join(one.option for one in found)
        raise NoKubeconfigError(f"several clusters are up: choose one of {choices}") from None


def say_target(access: Access) -> None:
    """Before a command changes a cluster, it says which one."""
    from situate.cli import one_line

    click.echo(f"note: {one_line(f'this changes the cluster at {access.server} ({access.where})')}", err=True)


def with_client(
    kubeconfig: str | None, context: str | None, work: Callable[[Client], Awaitable[T]], *, changes: bool = False
) -> T:
    """Run `work` with a client of the cluster. What the server refuses is one line and exit code 1.

    `changes`: the command changes the cluster, and says first which one that is.
    """
    import asyncio  # slow to import, and not needed where a command reads files

    from situate.kube.client import Client
    from situate.kube.errors import ApiError

    access = access_to(kubeconfig, context)
    if changes:
        say_target(access)

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
