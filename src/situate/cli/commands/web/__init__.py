"""`situate web`: serve the page for the cluster of a kubeconfig, or print a new login link for a page that is up."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

from situate.cli import BadInput
from situate.cli.cluster.connection import access_to
from situate.cli.cluster.local import HERE, LocalCluster, require_running, running_clusters
from situate.cli.control_plane.page import PAGE_FOLDER, SOCKET
from situate.cli.options import cluster_options, namespace_option

DEFAULT_PORT: Final = 7444
PORT: Final = click.IntRange(0, 65_535)
FILE: Final = click.Path(path_type=Path, dir_okay=False)


@click.command()
@cluster_options
@namespace_option
@click.option("--address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=PORT, default=DEFAULT_PORT, show_default=True, help="0: any free one.")
@click.option("--tls-san", "names", multiple=True, metavar="HOST", help="Another host name by which browsers reach it.")
@click.option(
    "--tls-cert-file", type=FILE, metavar="FILE", help="The certificate to serve; default: a self-signed one."
)
@click.option("--tls-private-key-file", type=FILE, metavar="FILE", help="Its key.")
@click.option("--tokens-only", is_flag=True, help="Print no login link: people log in with a token of the API server.")
@click.option("--login", is_flag=True, help="Print a new login link for the page of `situate up`, and exit.")
@click.option("--as", "user", metavar="USER", default="", help="Log in as this user, by impersonation.")
@click.option("--as-group", "groups", multiple=True, metavar="GROUP", help="A group of that user; repeatable.")
def web(
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    address: str,
    port: int,
    names: tuple[str, ...],
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    tokens_only: bool,
    login: bool,
    user: str,
    groups: tuple[str, ...],
) -> None:
    """Serve the page for the cluster of a kubeconfig: the cluster live in a browser. Ctrl-C stops it.

    The page acts with the rights of the kubeconfig, or of the user whom --as names, and changes nothing. `situate up`
    serves it already: there, --login prints a new link to it.
    """
    if groups and not user:
        raise BadInput("--as-group needs --as")
    if tokens_only and (login or user):
        raise BadInput(
            f"--tokens-only and {'--login' if login else '--as'} exclude each other: the link is for --as and --login"
        )
    if login:
        _print_link(_cluster_of(kubeconfig), user, groups, namespace or "")
        return
    from situate.cli.commands.web.serving import PageOptions, serve_page

    behind_up = SOCKET in os.environ and kubeconfig is not None
    serve_page(
        PageOptions(
            access=access_to(kubeconfig, context),
            address=address,
            port=port,
            names=names,
            certificate=tls_cert_file,
            key=tls_private_key_file,
            user=user,
            groups=groups,
            links=not tokens_only,
            namespace=namespace or "",
            directory=Path(kubeconfig).parent if behind_up and kubeconfig is not None else None,
        )
    )


def _cluster_of(kubeconfig: str | None) -> LocalCluster:
    """The cluster of `situate up` with this kubeconfig; else the one here, or the only one that is up."""
    if kubeconfig is not None:
        return require_running(Path(kubeconfig).parent)
    found = running_clusters()
    here = [one for one in found if one.directory == HERE]
    if len(found) > 1 and not here:
        raise BadInput(f"several clusters are up: choose one of {', '.join(one.option for one in found)}")
    return (here or found or [require_running(HERE)])[0]


def _print_link(cluster: LocalCluster, user: str, groups: tuple[str, ...], namespace: str) -> None:
    from situate.web.grants import GrantFolder, TooManyGrantsError

    address = (cluster.state or {}).get("page")
    if not address:
        raise click.ClickException(f"the cluster in {cluster.directory} does not serve the page; `situate web` does")
    try:
        token = GrantFolder(cluster.directory / PAGE_FOLDER).create(user, groups, namespace)
    except TooManyGrantsError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{address}/login#{token}")
