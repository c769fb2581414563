"""`situate controllers`: run the controllers in a process of their own, against an API server."""

import asyncio
from typing import Final

import click

from situate.cli.cluster.connection import access_to, until_stopped
from situate.cli.options import cluster_options, verbosity_option
from situate.core.reconcile.nodes.fencing import PROFILES
from situate.kube.client import Client
from situate.kube.controllers import ApiControllers
from situate.kube.discovery import served_kinds
from situate.kube.errors import ApiError
from situate.loop.logs import Logging, set_up

USER_AGENT: Final = "situate-controllers"


@click.command()
@cluster_options
@click.option(
    "--nodes",
    type=click.Choice(["kubernetes", "fast"]),
    help="Run the node controllers, too: with Kubernetes' times, or those of `situate up --fast-recovery`.",
)
@verbosity_option
def controllers(kubeconfig: str | None, context: str | None, nodes: str | None, verbosity: int) -> None:
    """Run the controllers of Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, budgets, namespaces and garbage."""
    set_up(Logging(verbosity=verbosity))
    access = access_to(kubeconfig, context)

    async def run() -> None:

        async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
            try:
                kinds = await served_kinds(client)
            except ApiError as error:
                raise click.ClickException(error.message) from None
            await ApiControllers(client, kinds, PROFILES[nodes] if nodes else None).run()

    asyncio.run(until_stopped(run))
