"""A node's own certificate: how a machine gets it, where it keeps it, and how it renews it.

kubeconfig   the address of the server; names the other two
client.pem   the certificate and its key, which never leaves the machine
ca.crt       the authorities of the cluster
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click
import msgspec
import yaml
from cryptography import x509
from cryptography.x509.oid import NameOID

from situate.agent.control_plane_http import cluster_of
from situate.kube.access import Access, Fixed
from situate.kube.client import Client
from situate.kube.credentials import bearer
from situate.kube.errors import ApiError
from situate.kube.tls import client_context
from situate.loop.logs import Log
from situate.server.identity.joining.node_joins import API_VERSION, KIND
from situate.server.identity.pki import certificates
from situate.server.identity.pki.kubeconfig import kubeconfig_text
from situate.server.identity.secret_files import PRIVATE_FOLDER, IdentityError, read_private, write_private

KUBECONFIG: Final = "kubeconfig"
CLIENT: Final = "client.pem"
AUTHORITIES: Final = "ca.crt"
CLUSTER: Final = "cluster"
READABLE: Final = 0o644
USER_AGENT: Final = "situate-node"
USER: Final = "system:node:"
CHECK_S: Final = 3_600.0
"""How often a node checks whether its certificate is due for renewal."""
REQUEST_S: Final = 20.0
JOINS: Final = "/apis/situate.dev/v1alpha1/nodejoins"
CLUSTER_INFO: Final = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
NOT_JOINED: Final = (
    "this machine has not joined a cluster: "
    "`situate token create --node` on the server prints the command that joins it"
)

_log = Log(__name__)


def is_joined(directory: Path) -> bool:
    return (directory / KUBECONFIG).is_file()


def joined_name(directory: Path) -> str:
    """The name of the node that this directory belongs to. Raises IdentityError."""
    subject = _own(directory).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(subject[0].value).removeprefix(USER) if subject else ""


async def join(server: str, token: str, hashes: tuple[str, ...], name: str, directory: Path) -> None:
    """Get a certificate with a one-time token. Raises ApiError and ClickException."""
    address = urlsplit(server)
    if address.scheme != "https" or not address.netloc:
        raise click.ClickException(f"{server} is not the address of a server: it must begin with https://")
    authorities = await _discovered(server, hashes)
    access = Access(server.rstrip("/"), tls=client_context(authorities), credentials=Fixed(bearer(token)))
    async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
        await request_certificate(client, name, directory)


async def request_certificate(client: Client, name: str, directory: Path) -> None:
    """Ask for a certificate of this node with the client's credentials, and keep it."""
    key = certificates.new_key()
    request = certificates.signing_request(key, certificates.subject(USER + name, ("system:nodes",)))
    body = {"apiVersion": API_VERSION, "kind": KIND, "spec": {"nodeName": name, "request": request.decode()}}
    found: Any = msgspec.json.decode(
        await client.request("POST", JOINS, body=msgspec.json.encode(body), timeout_s=REQUEST_S)
    )
    made = found["status"]
    directory.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    _keep_cluster(directory, client, made["certificateAuthority"].encode())
    write_private(directory / AUTHORITIES, made["certificateAuthority"].encode(), READABLE)
    write_private(directory / CLIENT, made["certificate"].encode() + certificates.key_pem(key))
    # Last: the directory counts as joined from now on.
    write_private(directory / KUBECONFIG, _kubeconfig(client.access.server).encode())


def cluster_id(directory: Path, access: Access) -> str:
    """An identity of the cluster, for the agent's checkpoint: it stays when the authority is replaced."""
    path = directory / CLUSTER
    return path.read_text() if path.is_file() else cluster_of(access)


def _keep_cluster(directory: Path, client: Client, authorities: bytes) -> None:
    """Keep the identity of a cluster while one of its authorities is one of those known before."""
    path, known = directory / CLUSTER, directory / AUTHORITIES
    named = set(x509.load_pem_x509_certificates(authorities))
    if path.is_file() and known.is_file() and named & set(x509.load_pem_x509_certificates(known.read_bytes())):
        return
    write_private(path, cluster_of(client.access).encode())


async def renew_when_due(client: Client, directory: Path) -> None:
    """Runs until cancelled. The client reads the new certificate from its file."""
    while True:
        try:
            due = certificates.due(_own(directory), datetime.now(UTC))
            if due or await _authorities(client) != (directory / AUTHORITIES).read_bytes():
                await request_certificate(client, joined_name(directory), directory)
                _log.info("The node's certificate was renewed", until=str(_own(directory).not_valid_after_utc))
        except (ApiError, IdentityError, OSError) as error:
            _log.warning("The node's certificate could not be renewed; trying again", err=str(error))
        await asyncio.sleep(CHECK_S)


async def _discovered(server: str, hashes: tuple[str, ...]) -> bytes:
    """The authorities of the cluster, of those that the server names, whose keys have one of the hashes."""
    access = Access(server.rstrip("/"), tls=client_context(b"", verify=False))
    async with Client(access, qps=-1, user_agent=USER_AGENT) as client:
        try:
            named = x509.load_pem_x509_certificates(await _authorities(client))
        except (IdentityError, ValueError):
            raise click.ClickException(f"{server} is not a situate server: its cluster-info has no authority") from None
    wanted = {one.lower() for one in hashes}
    trusted = [one for one in named if certificates.key_hash(one) in wanted]
    if not trusted:
        raise click.ClickException(
            f"{server} does not match --ca-hash: the hash of its authority is "
            f"{certificates.key_hash(named[0]) if named else 'missing'}; nothing was sent to it"
        )
    return b"".join(map(certificates.pem, trusted))


async def _authorities(client: Client) -> bytes:
    """The authorities that the server names, in PEM. Raises IdentityError."""
    found: Any = msgspec.json.decode(await client.request("GET", CLUSTER_INFO, timeout_s=REQUEST_S))
    try:
        info = yaml.safe_load(found["data"]["kubeconfig"])
        return base64.b64decode(info["clusters"][0]["cluster"]["certificate-authority-data"], validate=True)
    except (KeyError, IndexError, TypeError, ValueError, binascii.Error, yaml.YAMLError):
        raise IdentityError("the server's cluster-info has no authority") from None


def _own(directory: Path) -> x509.Certificate:
    path = directory / CLIENT
    try:
        return x509.load_pem_x509_certificate(read_private(path).encode())
    except ValueError:
        raise IdentityError(f"{path} is damaged: it has no certificate; join again") from None


def _kubeconfig(server: str) -> str:
    return kubeconfig_text(
        {"server": server, "certificate-authority": AUTHORITIES},
        {"client-certificate": CLIENT, "client-key": CLIENT},
        user="node",
    )
