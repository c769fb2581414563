"""`situate controllers`: run the controllers in a process of their own, against an API server."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Final

import click

from situate.cli.connecting import access_to, cluster_options

USER_AGENT: Final = "situate-controllers"


@click.command()
@cluster_options
@click.option("-v", "--v", "verbosity", type=click.IntRange(0, 10), default=0, help="How much to log.")
def controllers(kubeconfig: str | None, context: str | None, verbosity: int) -> None:
    """Look after Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, budgets, namespaces and garbage."""
    from situate.loop.logs import Logging, set_up

    set_up(Logging(verbosity=verbosity))
    access = access_to(kubeconfig, context)

    async def run() -> int:
        from situate.kube.client import Client
        from situate.kube.controlling import ServerControllers, served_kinds
        from situate.kube.problems import ApiError

        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
            try:
                kinds = await served_kinds(client)
            except ApiError as error:
                raise click.ClickException(error.message) from None
            working = asyncio.create_task(ServerControllers(client, kinds).run())
            stopped = asyncio.create_task(stopping.wait())
            done, _ = await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
            for task in (working, stopped):
                task.cancel()
            await asyncio.gather(working, stopped, return_exceptions=True)
            if working in done:
                working.result()
        return 0

    sys.exit(asyncio.run(run()))
