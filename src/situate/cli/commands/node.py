"""`situate node`: add nodes to a cluster, in a process of their own: hollow ones, or this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from situate.cli.cluster.connection import access_to, loop_factory, until_stopped
from situate.cli.options import (
    cluster_options,
    directory_option,
    hollow_node_options,
    hollow_shape,
    verbosity_option,
)

if TYPE_CHECKING:
    from situate.agent.node_objects import NodeShape
    from situate.kube.client import Client

USER_AGENT: Final = "situate-agent"
DIRECTORY: Final = Path(".situate-node")
PODS: Final = "pods"


@click.command()
@cluster_options
@click.option("--process", is_flag=True, help="Make this machine a node: its pods are processes here.")
@click.option("--name", default="", help="The node's name with --process; default: the host name.")
@directory_option("Where this machine keeps its pods and their logs.", DIRECTORY)
@click.option("--hollow", type=click.IntRange(1, 100_000), default=1, show_default=True, help="How many hollow nodes.")
@click.option("--prefix", default="hollow", show_default=True, help="What their names begin with.")
@hollow_node_options
@verbosity_option
def node(
    kubeconfig: str | None,
    context: str | None,
    process: bool,
    name: str,
    directory: Path,
    hollow: int,
    prefix: str,
    zones: int,
    node_cpu: str,
    node_memory: str,
    node_pods: int,
    verbosity: int,
) -> None:
    """Register nodes, renew their leases, and run the pods bound to them: simulated, or as processes here.

    With --process, pods keep running when this command ends, and the next run finds them again.
    """
    from situate.agent.node_objects import hollow_shapes
    from situate.kube.client import Client
    from situate.loop.logs import Logging, set_up

    set_up(Logging(verbosity=verbosity))
    shape = hollow_shape(node_cpu, node_memory, node_pods)
    access = access_to(kubeconfig, context)

    async def run() -> None:
        async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
            if process:
                await until_stopped(lambda: _machine(client, name, directory))
            else:
                shapes = hollow_shapes(hollow, zones, shape, prefix)
                await until_stopped(lambda: _fleet(client, shapes))

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())
    sys.exit(0)


def _fleet(client: Client, shapes: list[tuple[str, NodeShape]]) -> Awaitable[None]:
    from situate.agent.control_plane_http import HttpControlPlane
    from situate.agent.hollow_nodes import HollowNodes

    return HollowNodes(HttpControlPlane(client), shapes).run()


async def _machine(client: Client, name: str, directory: Path) -> None:
    from situate.agent import cgroups
    from situate.agent.agent import AgentError, NodeAgent
    from situate.agent.control_plane_http import HttpControlPlane, cluster_of, own_authorities
    from situate.agent.host import node_name
    from situate.agent.lease import FENCE
    from situate.agent.process import ProcessRuntime, ProcessSettings
    from situate.agent.settings import NodeSettings

    where = directory.absolute()
    settings = NodeSettings(
        node_name(name), where, cluster=cluster_of(client.access), authorities=own_authorities(client.access)
    )
    groups, limits = cgroups.find(), ProcessSettings(fence=where / FENCE)
    agent = NodeAgent(
        HttpControlPlane(client),
        settings,
        lambda changed: ProcessRuntime(where / PODS, changed, groups=groups, settings=limits),
    )
    try:
        await agent.run()
    except AgentError as error:
        raise click.ClickException(str(error)) from None
