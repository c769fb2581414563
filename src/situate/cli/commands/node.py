"""`situate node`: add nodes to a cluster, in a process of their own: hollow ones, or this machine."""

import asyncio
import sys
from pathlib import Path
from typing import Final

import click

from situate.agent.agent import AgentError
from situate.agent.control_plane_http import HttpControlPlane, cluster_of, own_authorities
from situate.agent.hollow_nodes import HollowNodes
from situate.agent.host import node_name
from situate.agent.node_objects import hollow_shapes
from situate.agent.settings import NodeSettings
from situate.cli.cluster.connection import access_to, loop_factory, until_stopped
from situate.cli.control_plane.process_agent import process_agent
from situate.cli.options import (
    cluster_options,
    directory_option,
    hollow_node_options,
    hollow_shape,
    verbosity_option,
)
from situate.kube.client import Client
from situate.loop.logs import Logging, set_up

USER_AGENT: Final = "situate-agent"
DIRECTORY: Final = Path(".situate-node")


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
    set_up(Logging(verbosity=verbosity))
    shape = hollow_shape(node_cpu, node_memory, node_pods)
    access = access_to(kubeconfig, context)

    async def run() -> None:
        async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
            plane = HttpControlPlane(client)
            if not process:
                await until_stopped(HollowNodes(plane, hollow_shapes(hollow, zones, shape, prefix)).run)
                return
            settings = NodeSettings(
                node_name(name),
                directory.absolute(),
                cluster=cluster_of(client.access),
                authorities=own_authorities(client.access),
            )
            try:
                await until_stopped(process_agent(plane, settings).run)
            except AgentError as error:
                raise click.ClickException(str(error)) from None

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())
    sys.exit(0)
