"""The parts that run beside the API in one process: nodes, and the renewal of certificates."""

import asyncio
import ssl
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from situate.agent.agent import NodeAgent
from situate.agent.control_plane_local import LocalControlPlane
from situate.agent.desired_state import NodeConfiguration
from situate.agent.hollow_nodes import HollowNodes
from situate.agent.host import node_name, own_address
from situate.agent.node_devices import DevicePublisher
from situate.agent.node_objects import hollow_shapes
from situate.agent.settings import NodeSettings
from situate.cli.control_plane.cluster_copy import hollow_copies
from situate.cli.control_plane.process_agent import process_agent
from situate.cli.control_plane.settings import ControlPlaneSettings
from situate.core.reconcile.nodes.fencing import NodeProfile
from situate.loop.logs import Log
from situate.server.aggregation.apis import AggregatedApis
from situate.server.aggregation.connector import CLIENT_NAME as FRONT_PROXY
from situate.server.aggregation.connector import ApiServerConnector
from situate.server.errors import StatusError
from situate.server.identity.file_names import SERVER
from situate.server.identity.pki.authority_files import CERTIFICATE, NEXT
from situate.server.identity.secret_files import IdentityError, SecretFile
from situate.server.identity.setup import IdentityParts
from situate.server.identity.tokens.token_requests import TokenRequests
from situate.server.kubelet.connector import CLIENT_NAME, KubeletConnector, KubeletTls
from situate.server.own_service import OwnService
from situate.server.registry.cache import Cache
from situate.server.registry.registry import Registry
from situate.store.errors import StoreError

NODE: Final = "node"
"""Below the control plane's directory: that of this machine as a node."""
RENEW_CERTIFICATE_S: Final = 24 * 3_600.0
RETRY_CERTIFICATE_S: Final = 60.0
"""The first wait after a renewal that failed."""
_IN_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - our own file there has a random name and is private
NOTICE_CERTIFICATES_S: Final = 1.0
"""How often a server checks for replaced keys and certificates."""

_log = Log(__name__)


def now() -> datetime:
    return datetime.now(UTC)


def own_service(settings: ControlPlaneSettings, registry: Registry, port: int, *, shared: bool) -> OwnService:
    """If the server listens on this machine only, its endpoint is the machine's own address, as kube-apiserver's is."""
    try:
        given = ip_address(settings.address)
        address = own_address() if given.is_loopback or given.is_unspecified else settings.address
    except ValueError:  # a name
        address = own_address()
    return OwnService(registry, address, port, settings.lease_identity(), shared=shared)


def hollow_fleet(settings: ControlPlaneSettings, registry: Registry, registered: asyncio.Event) -> HollowNodes:
    """`registered` is set when all nodes are."""
    copies = hollow_copies(registry)
    own = hollow_shapes(settings.nodes, settings.zones, settings.shape, "added" if copies else "node")
    shapes = [*own, *copies]
    plane = LocalControlPlane(registry)
    publish = DevicePublisher(plane, settings.node_devices).publish if settings.node_devices else None
    return HollowNodes(
        plane, shapes, _configuration(settings.profile), ready=registered, publish=publish, batching=plane
    )


def machine_agent(
    settings: ControlPlaneSettings, registry: Registry, nodes: KubeletConnector, tokens: TokenRequests
) -> NodeAgent:
    """The agent of this machine. Its pods end with the control plane: `situate down` stops all of a cluster."""
    directory = settings.directory.absolute() / NODE
    own = NodeSettings(
        node_name(),
        directory,
        configuration=_configuration(settings.profile),
        ends_pods=True,
        security=settings.security,
    )
    agent = process_agent(LocalControlPlane(registry, tokens), own, settings.directory)
    nodes.local[own.name] = agent.server.connect
    return agent


def _configuration(profile: NodeProfile) -> NodeConfiguration:
    """What nodes use until they read their snapshots."""
    return NodeConfiguration(profile.lease_ms // 1_000, profile.renew_ms // 1_000)


def kubelet_tls(directory: Path, identity: IdentityParts) -> KubeletTls:
    """With the client certificate that the server shows to kubelets and agents."""
    tls = KubeletTls()
    _load_certificate(directory, identity, tls)
    return tls


def _load_certificate(directory: Path, identity: IdentityParts, tls: KubeletTls) -> None:
    with _client_certificate(directory, identity, CLIENT_NAME) as file:
        tls.load(file, identity.authority.bundle.decode())


def aggregation(directory: Path, identity: IdentityParts, cache: Cache) -> tuple[AggregatedApis, ApiServerConnector]:
    """What other API servers serve, and how to reach them."""

    def authenticate(context: ssl.SSLContext) -> None:
        with _client_certificate(directory, identity, FRONT_PROXY) as file:
            context.load_cert_chain(file)

    return AggregatedApis(cache), ApiServerConnector(cache, authenticate)


@contextmanager
def _client_certificate(directory: Path, identity: IdentityParts, name: str) -> Iterator[str]:
    """A file with a new certificate of the server, and its key."""
    credential = identity.authority.server_client(name, now())
    memory = _IN_MEMORY if _IN_MEMORY.is_dir() else directory  # a full disk must not keep a server from starting
    with tempfile.NamedTemporaryFile(dir=memory) as file:  # ssl reads nothing but files, and this one only we can read
        file.write(credential.certificate + credential.key)
        file.flush()
        yield file.name


async def renew_certificates(
    settings: ControlPlaneSettings,
    identity: IdentityParts,
    tls: ssl.SSLContext,
    to_kubelets: KubeletTls,
    renewed: Callable[[], Awaitable[None]],
) -> None:
    """Until cancelled. A server may run for longer than a certificate is valid, and somebody may replace its keys
    meanwhile. If the disk is full, the old certificate stays: it has a third of its life left. The next attempt comes
    after a growing wait."""
    authority, wait_s = identity.authority, RETRY_CERTIFICATE_S
    files = [SecretFile(authority.folder / name) for name in (CERTIFICATE, SERVER, NEXT)]
    next_check = time.monotonic()
    while True:
        changed = [file.changed() for file in files]
        ended = authority.previous is not None and now() >= authority.previous_until
        if any(changed) or ended or time.monotonic() >= next_check:
            try:
                authority.reload(now())
                if authority.previous is not None and now() >= authority.previous_until:
                    authority.drop_previous(now())
                authority.load(tls, settings.host_names(), now())
                _load_certificate(settings.directory, identity, to_kubelets)
                await renewed()
            except (OSError, IdentityError, StatusError, StoreError) as error:
                _log.error(
                    "The server's certificate could not be renewed; the old one stays", err=error, retry_s=wait_s
                )
                next_check = time.monotonic() + wait_s
                wait_s = min(2 * wait_s, RENEW_CERTIFICATE_S)
            else:
                wait_s = RETRY_CERTIFICATE_S
                next_check = time.monotonic() + RENEW_CERTIFICATE_S
        await asyncio.sleep(NOTICE_CERTIFICATES_S)
