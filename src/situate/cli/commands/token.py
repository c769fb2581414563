"""`situate token`: bearer tokens of users and service accounts, and the tokens with which nodes join."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import click
import msgspec
from cryptography import x509

from situate.cli import CommandGroup
from situate.cli.cluster.connection import Client
from situate.cli.cluster.directory import Duration, server_address, server_option, settle, with_running
from situate.cli.commands.user import WHERE
from situate.cli.control_plane.state import read_state
from situate.cli.options import output_option, own_cluster_option
from situate.cli.output.text import columns, echo_notes, show
from situate.server.identity.joining.bootstrap_tokens import (
    DEFAULT_LIFE,
    MAX_LIFE,
    NAMESPACE,
    PREFIX,
    TYPE,
    BootstrapToken,
    new_token,
    read_token,
    token_secret,
)
from situate.server.identity.network import is_loopback
from situate.server.identity.pki.certificates import key_hash
from situate.server.identity.pki.kubeconfig import kubeconfig_text
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.users import UserDirectory

SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"
DAY: Final = timedelta(days=1)
MAX_USER_LIFE: Final = timedelta(days=365)
LEAST_ACCOUNT_LIFE: Final = timedelta(minutes=10)
"""The API's limit."""
ANY: Final = "*"
HEADINGS: Final = ("ID", "FOR", "GROUPS", "EXPIRES", "STATE")
LOCAL: Final = (
    "the server listens on this machine only; for nodes on others, start it with `--address 0.0.0.0 --tls-san HOST`"
)


@click.group(cls=CommandGroup)
def token() -> None:
    """Make, list and revoke tokens: of users, of service accounts, and of nodes that are to join."""


@token.command("create")
@click.option("--user", metavar="NAME", help="A token of this user.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of the user; repeatable.")
@click.option("--service-account", "account", metavar="NAMESPACE/NAME", help="A token of this service account.")
@click.option(
    "--node", is_flag=False, flag_value=ANY, metavar="[NAME]", help="A one-time token to join as NAME, or as any node."
)
@click.option("--name", "kubelet", metavar="NODE", default="", help="For kubelets: let only this node join.")
@click.option(
    "--ttl",
    type=Duration(MAX_USER_LIFE),
    metavar="DURATION",
    help="How long it is valid: 30m, 12h, 7d; default: 1d for users, else 1h.",
)
@server_option
@own_cluster_option(WHERE)
def token_create(
    user: str | None,
    groups: tuple[str, ...],
    account: str | None,
    node: str | None,
    kubelet: str,
    ttl: timedelta | None,
    server: str | None,
    directory: Path,
) -> None:
    """Print a new token, which is shown once: only a hash is stored.

    Without --user, --service-account and --node, print a kubeconfig with which kubelets join (kubelet
    --bootstrap-kubeconfig)."""
    if [user, account, node].count(None) < 2:
        raise click.UsageError("at most one of --user, --service-account and --node can be given")
    if kubelet and [user, account, node].count(None) < 3:
        raise click.UsageError("--name is for kubelets: it goes with none of --user, --service-account and --node")
    if groups and not user:
        raise click.UsageError("--group needs --user")
    now = datetime.now(UTC)
    try:
        if user is not None:
            click.echo(UserDirectory(directory).add_token(user, groups, ttl or DAY, now))
        elif account is not None:
            click.echo(_account_token(directory, account, ttl or DEFAULT_LIFE))
        elif node is not None:
            name = "" if node == ANY else node
            made = _create_node_token(directory, name, ttl or DEFAULT_LIFE, now)
            arguments = f"--token {made}" + (f" --name {name}" if name else "")
            _say_join(server or server_address(directory), arguments, directory, now)
        else:
            made = _create_node_token(directory, kubelet, ttl or DEFAULT_LIFE, now, kubelet=True)
            _say_bootstrap(server or server_address(directory), made, directory, now)
    except IdentityError as error:
        raise click.ClickException(str(error)) from None


@token.command("list")
@output_option()
@own_cluster_option(WHERE)
def token_list(output: str, directory: Path) -> None:
    """Show the tokens of users and, if the cluster is up, those of nodes that have not joined yet."""
    now = datetime.now(UTC)
    try:
        found: list[dict[str, Any]] = [
            {"id": one.id, "for": f"user {one.user}", "groups": list(one.groups), "expires": one.expires}
            for one in UserDirectory(directory).credentials()
            if one.kind == "token"
        ]
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    if read_state(directory) is not None:
        found += _node_tokens(directory)
    else:
        echo_notes(["the cluster is down: tokens of nodes are not shown"])
    for one in found:
        ends = one["expires"]
        one["state"] = "expired" if ends is not None and ends <= now else "valid"
        one["expires"] = f"{ends.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if ends is not None else ""
    rows = [(one["id"], one["for"], ",".join(one["groups"]), one["expires"] or "never", one["state"]) for one in found]
    show(columns(HEADINGS, rows), found, [], output, [one["id"] for one in found])


@token.command("revoke")
@click.argument("token_id", metavar="ID")
@own_cluster_option(WHERE)
def token_revoke(token_id: str, directory: Path) -> None:
    """Revoke the token with this ID, as `situate token list` shows it. It is refused from the next request on."""
    if read_state(directory) is not None and any(one["id"] == token_id for one in _node_tokens(directory)):
        with_running(directory, lambda client: client.request("DELETE", f"{SECRETS}/{PREFIX}{quote(token_id, '')}"))
        click.echo(f"Token {token_id} for nodes is revoked.")
        return
    try:
        whose = UserDirectory(directory).revoke_token(token_id)
    except IdentityError as error:
        raise click.ClickException(str(error)) from None
    settle(directory)
    click.echo(f"Token {token_id} of {whose} is revoked.")


def _create_node_token(directory: Path, node: str, life: timedelta, now: datetime, *, kubelet: bool = False) -> str:
    """A new token, for one agent or for kubelets."""
    if life > MAX_LIFE:
        raise click.ClickException(f"a node token is valid for at most {MAX_LIFE.days} days")
    made = new_token()
    body = msgspec.json.encode(token_secret(made, now + life, node, kubelet=kubelet))

    async def create(client: Client) -> None:
        for one in await _listed(client):
            if one.expires <= now:  # nothing else removes expired tokens
                await client.request("DELETE", f"{SECRETS}/{PREFIX}{one.id}")
        await client.request("POST", SECRETS, body=body)

    with_running(directory, create)
    return made


def _say_join(address: str, token: str, directory: Path, now: datetime) -> None:
    click.echo(f"situate node join {address} {token} {_authority_hashes(directory, now)}")
    if is_loopback(urlsplit(address).hostname or ""):
        echo_notes([LOCAL])


def _say_bootstrap(address: str, token: str, directory: Path, now: datetime) -> None:
    authorities = base64.b64encode(UserDirectory(directory).authority_bundle(now)).decode()
    cluster = {"server": address, "certificate-authority-data": authorities}
    click.echo(kubeconfig_text(cluster, {"token": token}, "kubelet-bootstrap"), nl=False)
    if is_loopback(urlsplit(address).hostname or ""):
        echo_notes([LOCAL])


def _authority_hashes(directory: Path, now: datetime) -> str:
    bundle = x509.load_pem_x509_certificates(UserDirectory(directory).authority_bundle(now))
    return " ".join(f"--ca-hash {key_hash(one)}" for one in bundle)


def _account_token(directory: Path, account: str, life: timedelta) -> str:
    namespace, separator, name = account.partition("/")
    if not separator or not namespace or not name:
        raise click.ClickException(f"{account} is not a service account: NAMESPACE/NAME")
    if life < LEAST_ACCOUNT_LIFE:
        raise click.ClickException("a service account token is valid for at least 10 minutes")
    path = f"/api/v1/namespaces/{quote(namespace, '')}/serviceaccounts/{quote(name, '')}/token"
    spec = {"expirationSeconds": int(life.total_seconds())}
    body = msgspec.json.encode({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    found: Any = msgspec.json.decode(with_running(directory, lambda client: client.request("POST", path, body=body)))
    return str(found["status"]["token"])


def _node_tokens(directory: Path) -> list[dict[str, Any]]:
    tokens = with_running(directory, _listed)
    return [{"id": one.id, "for": f"node {one.node or 'any'}", "groups": [], "expires": one.expires} for one in tokens]


async def _listed(client: Client) -> list[BootstrapToken]:
    found: Any = msgspec.json.decode(await client.request("GET", SECRETS, params={"fieldSelector": f"type={TYPE}"}))
    return [token for one in found["items"] if (token := read_token(one)) is not None]
