"""`situate version`: the version of this program and, if one can be reached, of the cluster's API server."""

from __future__ import annotations

import platform
from typing import Any, Final

import click

from situate import __version__
from situate.cli.cluster.connection import Client, access_to
from situate.cli.options import cluster_options, output_option
from situate.cli.output.formats import NAME, dump, for_people
from situate.cli.output.text import echo_notes
from situate.core.versions import DEFAULT, RULES

WITHIN_S: Final = 5.0
"""How long to wait for the server."""


@click.command()
@click.option("--client", is_flag=True, help="Show only this program's; ask no server.")
@output_option(without=(NAME,))
@cluster_options
def version(client: bool, output: str, kubeconfig: str | None, context: str | None) -> None:
    """Show the version of this program and of the cluster's API server, if one answers."""
    values: dict[str, Any] = {
        "clientVersion": {
            "version": __version__,
            "kubernetes": list(RULES),
            "default": DEFAULT.version,
            "python": platform.python_version(),
        }
    }
    notes: list[str] = []
    if not client:
        found = _server(kubeconfig, context)
        if isinstance(found, str):
            notes.append(f"no server version: {found}")
        else:
            values["serverVersion"] = found
    if not for_people(output):
        click.echo(dump(values, output), nl=False)
    else:
        click.echo(f"Client: situate {__version__}, with the rules of Kubernetes {' and '.join(RULES)}")
        if "serverVersion" in values:
            click.echo(f"Server: {values['serverVersion'].get('gitVersion', 'unknown')}")
    echo_notes(notes)


def _server(kubeconfig: str | None, context: str | None) -> dict[str, Any] | str:
    """What the server says, or why it does not."""
    import asyncio

    from situate.cli.cluster.objects import get_object
    from situate.kube import client as http
    from situate.kube.errors import ApiError
    from situate.wire.errors import InputError

    try:
        access = access_to(kubeconfig, context)
    except InputError as error:
        if kubeconfig is not None or context is not None:
            raise
        return str(error)

    async def ask(client: Client) -> dict[str, Any]:
        return await get_object(client, "/version")

    async def run() -> dict[str, Any]:
        async with http.Client(access, qps=-1) as client:
            return await asyncio.wait_for(ask(client), WITHIN_S)

    try:
        return asyncio.run(run())
    except ApiError as error:
        return error.message
    except TimeoutError:
        return f"{access.server} did not answer within {WITHIN_S:.0f} s"
