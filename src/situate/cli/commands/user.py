"""`situate user`: gives people access to a cluster, each with a certificate in a kubeconfig."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import click

from situate.cli import CommandGroup
from situate.cli.cluster.directory import server_address, server_option, settle
from situate.cli.options import output_option, own_cluster_option
from situate.cli.output.text import columns, plural, show
from situate.server.identity.pki.kubeconfig import kubeconfig as kubeconfig_text
from situate.server.identity.secret_files import IdentityError, write_private
from situate.server.identity.users import UserCredential, UserDirectory

DEFAULT_DAYS: Final = 365
MAX_DAYS: Final = 3_650
HEADINGS: Final = ("NAME", "GROUPS", "CREDENTIAL", "ID", "EXPIRES", "STATE")
WHERE: Final = "Where the cluster keeps its keys."


@click.group(cls=CommandGroup)
def user() -> None:
    """Give people access to a cluster, and take it back. Works on the cluster's directory, running or not."""


@user.command("add")
@click.argument("name", metavar="NAME")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of the user; repeatable.")
@click.option(
    "--days", type=click.IntRange(1, MAX_DAYS), default=DEFAULT_DAYS, show_default=True, help="Days until it expires."
)
@click.option("--kubeconfig", metavar="FILE", help="Where to write it, or - to print it; default: NAME.kubeconfig.")
@server_option
@own_cluster_option(WHERE)
def user_add(
    name: str, groups: tuple[str, ...], days: int, kubeconfig: str | None, server: str | None, directory: Path
) -> None:
    """Make a certificate for NAME, in a kubeconfig. RBAC says what the user and the groups may do."""
    if kubeconfig is None and ("/" in name or name.startswith((".", "-"))):
        raise click.ClickException(f"{name} cannot be a file name: name the file with --kubeconfig")
    path = Path(kubeconfig or f"{name}.kubeconfig")
    if kubeconfig != "-" and path.exists():
        raise click.ClickException(f"{path} exists; move it away, or name another file with --kubeconfig")
    now = datetime.now(UTC)
    try:
        people = UserDirectory(directory)
        made = people.add_certificate(name, groups, timedelta(days=days), now)
        text = kubeconfig_text(server or server_address(directory), people.authority_bundle(now), made)
        if kubeconfig == "-":
            sys.stdout.write(text)
            return
        write_private(path, text.encode())
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{path} is the kubeconfig of {name}, valid for {plural(days, 'day')}.")


@user.command("list")
@output_option()
@own_cluster_option(WHERE)
def user_list(output: str, directory: Path) -> None:
    """Show the users of a cluster and their credentials."""
    try:
        found = UserDirectory(directory).credentials()
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    echo_credentials(found, output)


@user.command("remove")
@click.argument("name", metavar="NAME")
@own_cluster_option(WHERE)
def user_remove(name: str, directory: Path) -> None:
    """Revoke all certificates and tokens of NAME. A running server refuses them from the next request on."""
    try:
        people = UserDirectory(directory)
        if not any(one.user == name for one in people.credentials()):
            raise click.ClickException(f"there is no user {name}; `situate user list` shows all")
        count = people.remove(name, datetime.now(UTC))
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    settle(directory)
    click.echo(f"{name} no longer has access: {plural(count, 'credential')} revoked.")


def echo_credentials(found: list[UserCredential], output: str) -> None:
    now = datetime.now(UTC)
    values = [
        {
            "name": one.user,
            "groups": list(one.groups),
            "credential": one.kind,
            "id": one.id,
            "expires": _time(one.expires),
            "state": _state(one, now),
        }
        for one in found
    ]
    rows = [
        (one.user, ",".join(one.groups), one.kind, one.id[:12], _time(one.expires) or "never", _state(one, now))
        for one in found
    ]
    show(columns(HEADINGS, rows), values, [], output, list(dict.fromkeys(one.user for one in found)))


def _state(one: UserCredential, now: datetime) -> str:
    if one.revoked:
        return "revoked"
    return "expired" if one.expires is not None and one.expires <= now else "valid"


def _time(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if at is not None else ""
