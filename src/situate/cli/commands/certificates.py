"""`situate certificates`: the keys and certificates of a cluster, and their replacement."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from situate.cli import CommandGroup
from situate.cli.cluster.connection import KUBECONFIG
from situate.cli.cluster.directory import Duration
from situate.cli.commands.user import WHERE
from situate.cli.options import output_option, own_cluster_option
from situate.cli.output.text import columns, show
from situate.server.identity.file_names import AUTHORITY
from situate.server.identity.pki import account_keys, rotation
from situate.server.identity.pki.account_keys import rotate_account_key
from situate.server.identity.pki.rotation import finish_rotation, key_states, rotate_authority, rotate_server
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.users import UserDirectory

HEADINGS: Final = ("NAME", "ID", "EXPIRES", "USE")
SERVER: Final = "server"
ACCOUNTS: Final = "service-accounts"
CA: Final = "ca"


@click.group(cls=CommandGroup)
def certificates() -> None:
    """Show and replace the keys and certificates of a cluster. Works on its directory, running or not."""


@certificates.command("list")
@output_option()
@own_cluster_option(WHERE)
def certificates_list(output: str, directory: Path) -> None:
    """Show the authority, the server's certificate, the administrator's, and the keys of service accounts."""
    try:
        UserDirectory(directory)  # says so if there is no cluster
        found = key_states(directory / AUTHORITY, directory / KUBECONFIG, datetime.now(UTC))
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    values = [{"name": one.name, "id": one.id, "expires": _time(one.expires), "use": one.use} for one in found]
    lines = columns(HEADINGS, [(one.name, one.id[:16], _time(one.expires) or "never", one.use) for one in found])
    show(lines, values, [], output, [one.name for one in found])


@certificates.command("rotate")
@click.argument("what", type=click.Choice([SERVER, ACCOUNTS, CA]), metavar="WHAT")
@click.option(
    "--overlap",
    type=Duration(rotation.MAX_OVERLAP),
    metavar="DURATION",
    help="How long what the former key has signed stays valid; default: 1d for service-accounts, 30d for ca.",
)
@click.option("--finish", is_flag=True, help="With ca: end the overlap now.")
@own_cluster_option(WHERE)
def certificates_rotate(what: str, overlap: timedelta | None, finish: bool, directory: Path) -> None:
    """Replace WHAT: server (its certificate), service-accounts (the key of their tokens), or ca (the authority).

    A running server uses the new one within a second.
    """
    if finish and (what != CA or overlap):
        raise click.UsageError("--finish needs ca, and cannot be combined with --overlap")
    if overlap and what == SERVER:
        raise click.UsageError("--overlap needs service-accounts or ca")
    now, folder = datetime.now(UTC), directory / AUTHORITY
    said, work = _work(what, overlap, finish, folder, now)
    try:
        with UserDirectory(directory).locked():
            work()
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    click.echo(said)


def _work(
    what: str, overlap: timedelta | None, finish: bool, folder: Path, now: datetime
) -> tuple[str, Callable[[], None]]:
    if what == SERVER:
        return "The server has a new certificate.", lambda: rotate_server(folder, now)
    if finish:
        said = "The former authority is no longer trusted. Make new kubeconfigs for its users with `situate user add`."
        return said, lambda: finish_rotation(folder, now)
    if what == ACCOUNTS:
        while_ = overlap or account_keys.DEFAULT_OVERLAP
        said = f"A new key signs service account tokens. Those of the former key are valid until {_time(now + while_)}."
        return said, lambda: rotate_account_key(folder, while_, now)
    while_ = overlap or rotation.DEFAULT_OVERLAP
    said = (
        f"A new authority signs certificates. The former one is trusted until {_time(now + while_)}: until then, make "
        "new kubeconfigs with `situate user add`, and restart each `situate node --process` once."
    )
    return said, lambda: rotate_authority(folder, while_, now)


def _time(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at is not None else ""
