"""`situate controllers`: run the controllers in a process of their own, against an API server."""

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import click

from situate.cli.cluster.connection import access_to, say_target, until_stopped
from situate.cli.options import cluster_options, drift_option, verbosity_option
from situate.core.reconcile.nodes.fencing import PROFILES
from situate.kube.client import Client
from situate.kube.controllers import ApiControllers
from situate.kube.errors import ApiError
from situate.kube.lease_store import ApiLeaseStore
from situate.kube.served_kinds import served_kinds
from situate.loop.election import ElectionRules, Elector, lead, new_identity
from situate.loop.logs import Logging, set_up

USER_AGENT: Final = "situate-controllers"
LEASE: Final = ("kube-system", "situate-controllers")
"""The same lease as that of the controllers inside a server, so that the two stand by for each other."""
RULES: Final = ElectionRules(*LEASE)


@click.command()
@cluster_options
@click.option(
    "--nodes",
    type=click.Choice(["kubernetes", "fast"]),
    help="Run the node controllers, too: with Kubernetes' times, or those of `situate up --fast-recovery`.",
)
@drift_option
@verbosity_option
def controllers(kubeconfig: str | None, context: str | None, nodes: str | None, drift: str, verbosity: int) -> None:
    """Run the controllers of Deployments, StatefulSets, DaemonSets, Jobs, CronJobs, budgets, namespaces and garbage.

    If several run, one works and the others stand by.
    """
    set_up(Logging(verbosity=verbosity))
    access = access_to(kubeconfig, context)
    say_target(access)

    async def run() -> None:
        async with AsyncExitStack() as stack:
            side = await stack.enter_async_context(Client(access, qps=-1, user_agent=USER_AGENT))
            elector = Elector(ApiLeaseStore(side, *LEASE, component=USER_AGENT), RULES, new_identity())
            # The client checks the lease when it sends a request, not when the request is queued.
            client = await stack.enter_async_context(
                Client(access, qps=-1, user_agent=USER_AGENT, may_write=elector.may_write)
            )
            try:
                kinds = await served_kinds(client)
            except ApiError as error:
                raise click.ClickException(error.message) from None
            profile = PROFILES[nodes] if nodes else None
            await lead(elector, lambda: ApiControllers(client, kinds, profile, moves_drifted=drift == "move").run())

    asyncio.run(until_stopped(run))
