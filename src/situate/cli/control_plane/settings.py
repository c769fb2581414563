"""What the flags of `situate up` and `situate server` amount to."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from situate.agent.host_security import own_security
from situate.agent.node_devices import DeviceSet
from situate.agent.node_objects import NodeShape
from situate.agent.security import NodeSecurity
from situate.cli.control_plane.lease_identity import lease_identity
from situate.core.config.types import KubeSchedulerConfiguration
from situate.core.reconcile.nodes.fencing import KUBERNETES, NodeProfile
from situate.core.versions import DEFAULT, KubernetesRules
from situate.loop.logs import Logging
from situate.server.http.settings import Limits
from situate.server.identity.pki.authority import NOTHING_GIVEN, GivenCertificates
from situate.server.identity.tokens.service_account_tokens import ISSUER
from situate.server.kinds.core.service.prepare import ADDRESSES
from situate.server.placing.snapshot_lag import BOUND_S
from situate.store.etcd.settings import EtcdSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneSettings:
    directory: Path
    store: str = ""
    """Empty: a file in the directory."""
    etcd: EtcdSettings | None = None
    """Certificates and credentials for etcd."""
    address: str = "127.0.0.1"
    port: int = 0
    names: tuple[str, ...] = ()
    """Other names of this server: in its certificate, and allowed in Host."""
    web_port: int | None = None
    """The port of the page; 0: any free one; None: there is no page."""
    scheduler: bool = True
    controllers: bool = True
    config: KubeSchedulerConfiguration | None = None
    plugins: Mapping[str, type] = field(default_factory=dict)
    rules: KubernetesRules = DEFAULT
    nodes: int = 0
    copied_from: Path | None = None
    """A dump of another cluster, to fill this one with."""
    zones: int = 1
    shape: NodeShape = field(default_factory=NodeShape)
    node_devices: tuple[DeviceSet, ...] = ()
    """The devices of the hollow nodes."""
    process_node: bool = False
    """Make this machine a node, too."""
    security: NodeSecurity = field(default_factory=own_security)
    """Who its containers run as."""
    profile: NodeProfile = KUBERNETES
    """When a silent node is given up: agents, controllers and the pods' tolerations follow it."""
    moves_drifted: bool = False
    """Evict pods that no longer fit or match their node."""
    snapshot_lag_s: float = BOUND_S
    """How far a node may fall behind its snapshot before its condition says so."""
    kubelet_insecure_tls: bool = False
    """Accept kubelets whose certificates this cluster has not signed."""
    limit_bytes: int = 0
    """Limit of the store's file; 0: none."""
    encryption: Path | None = None
    """An EncryptionConfiguration."""
    audit_policy: Path | None = None
    """None: all writes and all refusals, without bodies."""
    given: GivenCertificates = NOTHING_GIVEN
    """Certificates that others made."""
    account_issuer: str = ISSUER
    """Who signs the tokens of service accounts."""
    allows_all: bool = False
    """Authorize every request."""
    fails_stray_binds: bool = False
    """Bind pods to nodes that do not exist, too: they have failed then."""
    without_admission: frozenset[str] = frozenset()
    """Admission plugins that are left out, by the names of their classes."""
    limits: Limits = field(default_factory=Limits)
    """What clients of the API may use."""
    logging: Logging = field(default_factory=Logging)

    def host_names(self) -> list[str]:
        """The names that the server's certificate is valid for."""
        own = ["localhost", "127.0.0.1", "::1", socket.gethostname()]
        name = "kubernetes.default.svc"
        inside = ["kubernetes", "kubernetes.default", name, f"{name}.cluster.local", str(ADDRESSES[1])]
        return list(dict.fromkeys([*own, *inside, self.address, *self.names]))

    def lease_identity(self) -> str:
        """Our name among the servers of one store. Nobody else uses a file while we run, so a lease in it was our own,
        and we need not wait until it expires."""
        if self.store.startswith("etcd"):
            return lease_identity(self.directory)
        return f"{socket.gethostname()}_alone"
