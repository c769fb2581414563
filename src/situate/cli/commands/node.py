"""`situate node`: add nodes to a cluster, in a process of their own: hollow ones, or this machine."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from situate.agent.agent import AgentError
from situate.agent.control_plane_http import HttpControlPlane, own_authorities
from situate.agent.hollow_nodes import HollowNodes
from situate.agent.host import node_name
from situate.agent.node_devices import DevicePublisher
from situate.agent.node_objects import hollow_shapes
from situate.agent.security import ContainerUsers, NodeSecurity
from situate.agent.settings import NodeSettings
from situate.cli import CommandGroup
from situate.cli.cluster.connection import access_to, loop_factory, say_target, until_stopped
from situate.cli.cluster.directory import settle
from situate.cli.cluster.node_identity import (
    KUBECONFIG,
    NOT_JOINED,
    USER,
    cluster_id,
    is_joined,
    join,
    joined_name,
    renew_when_due,
    request_certificate,
)
from situate.cli.control_plane.process_agent import process_agent
from situate.cli.input.node_devices import node_devices as read_node_devices
from situate.cli.options import (
    cluster_options,
    container_security,
    container_user_options,
    directory_option,
    hollow_node_options,
    hollow_shape,
    own_cluster_option,
    verbosity_option,
)
from situate.kube.access import Access
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.kubeconfig import find_access
from situate.loop.logs import Log, Logging, set_up
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.users import UserDirectory
from situate.wire.errors import InputError

USER_AGENT: Final = "situate-agent"
DIRECTORY: Final = Path(".situate-node")
WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW: Final = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}'

_log = Log(__name__)


@click.group(cls=CommandGroup, invoke_without_command=True)
@cluster_options
@click.option("--process", is_flag=True, help="Make this machine a node: its pods are processes here.")
@click.option("--name", default="", help="The node's name with --process; default: the joined one, or the host name.")
@directory_option("Where this machine keeps its certificate, its pods and their logs.", DIRECTORY)
@click.option("--hollow", type=click.IntRange(1, 100_000), default=1, show_default=True, help="How many hollow nodes.")
@click.option("--prefix", default="hollow", show_default=True, help="What their names begin with.")
@container_user_options
@hollow_node_options
@verbosity_option
@click.pass_context
def node(
    ctx: click.Context,
    kubeconfig: str | None,
    context: str | None,
    process: bool,
    name: str,
    directory: Path,
    hollow: int,
    prefix: str,
    run_as_user: str,
    container_users: ContainerUsers,
    zones: int,
    node_cpu: str,
    node_memory: str,
    node_pods: int,
    node_devices: Path | None,
    verbosity: int,
) -> None:
    """Register nodes, renew their leases, and run the pods bound to them: simulated, or as processes here.

    With --process, pods keep running when this command ends, and the next run finds them again. The node works with a
    certificate of its own, which `situate node join` or an administrator's kubeconfig gets.
    """
    if ctx.invoked_subcommand is not None:
        return
    set_up(Logging(verbosity=verbosity))
    shape, devices = hollow_shape(node_cpu, node_memory, node_pods), read_node_devices(node_devices)
    if process:
        security = container_security(run_as_user, container_users)
        _run(lambda: _run_machine(kubeconfig, context, name, directory.absolute(), security))
    access = access_to(kubeconfig, context)
    say_target(access)

    async def simulate() -> None:
        async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
            plane = HttpControlPlane(client)
            publish = DevicePublisher(plane, devices).publish if devices else None
            nodes = HollowNodes(plane, hollow_shapes(hollow, zones, shape, prefix), publish=publish)
            await until_stopped(nodes.run)

    _run(simulate)


@node.command("join")
@click.argument("server", metavar="SERVER")
@click.option("--token", required=True, help="The one-time token of `situate token create --node`.")
@click.option(
    "--ca-hash",
    "hashes",
    multiple=True,
    required=True,
    metavar="sha256:HEX",
    help="The hash of the cluster authority's public key.",
)
@click.option("--name", default="", help="The node's name; default: the host name.")
@directory_option("Where this machine keeps its certificate, its pods and their logs.", DIRECTORY)
def node_join(server: str, token: str, hashes: tuple[str, ...], name: str, directory: Path) -> None:
    """Get a certificate for this machine from SERVER, with a one-time token. Then run `situate node --process`."""
    if is_joined(directory):
        raise click.ClickException(
            f"{directory} belongs to node {joined_name(directory)} already; choose another --dir, or move it away"
        )
    own = node_name(name)
    try:
        asyncio.run(join(server, token.strip(), hashes, own, directory))
    except (ApiError, IdentityError) as error:
        raise click.ClickException(str(error)) from None
    except ValueError:
        raise click.ClickException("--token: this is not a token of `situate token create --node`") from None
    where = "" if directory == DIRECTORY else f" --dir {directory}"
    click.echo(f"Node {own} has its certificate. `situate node --process{where}` runs it.")


@node.command("remove")
@click.argument("name", metavar="NAME")
@own_cluster_option("Where the cluster keeps its keys.")
def node_remove(name: str, directory: Path) -> None:
    """Revoke the certificates of node NAME. Its Node and pods stay until somebody deletes them."""
    try:
        UserDirectory(directory).revoke_all_before(USER + name, datetime.now(UTC))
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    settle(directory)
    click.echo(f"Node {name} no longer has access. `situate delete node {name}` removes its Node.")


def _run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(work())
        except (AgentError, ApiError, IdentityError) as error:
            raise click.ClickException(str(error)) from None
    sys.exit(0)


async def _run_machine(
    kubeconfig: str | None, context: str | None, name: str, directory: Path, security: NodeSecurity
) -> None:
    """Run this machine as a node, always with the rights of this one node."""
    access, own = await _as_node(kubeconfig, context, name, directory)
    async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
        settings = NodeSettings(
            own,
            directory,
            cluster=cluster_id(directory, client.access),
            security=security,
            authorities=own_authorities(client.access),
        )
        renewing = asyncio.create_task(renew_when_due(client, directory)) if is_joined(directory) else None
        try:
            await until_stopped(process_agent(HttpControlPlane(client), settings, directory).run)
        finally:
            if renewing is not None:
                renewing.cancel()


async def _as_node(kubeconfig: str | None, context: str | None, name: str, directory: Path) -> tuple[Access, str]:
    """A node's credentials and name. With an administrator's credentials, first get a certificate for the node."""
    if not is_joined(directory) or kubeconfig or context:
        try:
            given = access_to(kubeconfig, context)
        except InputError:
            if kubeconfig or context:
                raise
            raise click.ClickException(NOT_JOINED) from None
        own = node_name(name)
        async with Client(given, qps=-1, user_agent=USER_AGENT) as client:
            caller = await _caller(client)
            if caller == USER + own:
                return given, own
            _check_name(directory, own)
            try:
                await request_certificate(client, own, directory)
            except ApiError as error:
                if error.not_found:  # not a situate server: it does not serve NodeJoins
                    _log.warning(
                        "The server does not serve NodeJoins; using the kubeconfig's user instead of the node's own",
                        user=caller,
                    )
                    return given, own
                if error.forbidden:
                    raise click.ClickException(f"user {caller} may not add nodes; {NOT_JOINED}") from None
                raise
    _check_name(directory, name)
    own = joined_name(directory)
    return find_access(str(directory / KUBECONFIG), None, None), own


def _check_name(directory: Path, name: str) -> None:
    if name and is_joined(directory) and name != (own := joined_name(directory)):
        raise click.ClickException(f"{directory} belongs to node {own}, not to {name}; choose another --dir")


async def _caller(client: Client) -> str:
    found: Any = msgspec.json.decode(await client.request("POST", WHO, body=REVIEW))
    return str(found["status"]["userInfo"].get("username", ""))
