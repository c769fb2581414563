"""`situate top`: a cluster live in a terminal: how full its nodes are, what waits and why, what was placed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from situate.cli.cluster.connection import Client, with_client
from situate.cli.options import cluster_options

if TYPE_CHECKING:
    from situate.web.model import ClusterModel


@click.command()
@click.option("--once", is_flag=True, help="Print the state once, as when the output is not a terminal.")
@cluster_options
def top(once: bool, kubeconfig: str | None, context: str | None) -> None:
    """Show a cluster live: its nodes as a map or a list, what waits and why, what was placed.

    Keys: m, n, w and p choose the view, the arrows scroll, q quits. If you may not read all namespaces, it shows that
    of the kubeconfig.
    """
    live = not once and sys.stdout.isatty() and sys.stdin.isatty()

    async def work(client: Client) -> None:
        import asyncio

        from situate.cli.commands.top.frame import printed
        from situate.cli.commands.top.terminal import watch
        from situate.cli.output.text import echo_lines
        from situate.kube.discovery import server_rules
        from situate.kube.kinds import CUSTOM_POD_GROUPS, NODES, POD_GROUPS, PODS
        from situate.web.model import ClusterModel, ModelEndedError, kinds_for
        from situate.web.rights import find_scope

        scope = await find_scope(client)
        kinds = kinds_for(scope, (NODES, POD_GROUPS, *CUSTOM_POD_GROUPS, PODS))
        model = ClusterModel(client, scope, kinds, await server_rules(client))
        task = asyncio.create_task(model.run(), name="model")
        try:
            if live:
                await watch(model, client.access.server)
            else:
                await _listed(model)
                echo_lines(printed(model, client.access.server))
        except ModelEndedError as error:
            raise click.ClickException(str(error)) from None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    with_client(kubeconfig, context, work)


async def _listed(model: ClusterModel) -> None:
    """Raises ModelEndedError, also if the lists do not come."""
    import asyncio

    from situate.web.limits import START_S
    from situate.web.model import ModelEndedError
    from situate.web.models import SLOW

    try:
        async with asyncio.timeout(START_S):
            await model.synced()
    except TimeoutError:
        raise ModelEndedError(next(iter(model.problems()), SLOW)) from None
