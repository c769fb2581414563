"""Opens connections to the kubelets of nodes: at the address and port of the Node, over TLS, with our certificate.

Whom the server trusts to be a node's kubelet:

- an agent of situate shows the certificate whose fingerprint is in an annotation of its Node, which only it may write;
- any other kubelet shows a certificate that the cluster's authority has signed for the node's address, as it gets one
  with `serverTLSBootstrap: true`. `insecure` accepts any certificate, as kube-apiserver does by default;
- an agent in this process is asked without a network.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from situate.server.errors import StatusError, not_found
from situate.server.kubelet.connection import HEAD_BYTES, NodeConnection
from situate.server.registry.registry import Registry
from situate.server.resources import BY_KIND

NODES: Final = BY_KIND["v1", "Node"]
CLIENT_NAME: Final = "kube-apiserver-kubelet-client"
"""The common name of the server's client certificate for kubelets, as with kubeadm."""
FINGERPRINT: Final = "situate.dev/agent-certificate"
"""Annotation of a Node: the SHA-256 of its agent's certificate."""
HOLLOW: Final = "hollow://"
CONNECT_S: Final = 5.0
PREFERRED: Final = ("InternalIP", "ExternalIP", "InternalDNS", "Hostname", "ExternalDNS")
"""The types of a node's addresses, the best one first."""
NO_CONTAINERS: Final = "node {0} is hollow: its pods are simulated, so there is no container to {1}"
NO_ENDPOINT: Final = "node {0} does not say where its kubelet can be reached (status.addresses, status.daemonEndpoints)"
UNREACHED: Final = "error dialing backend: the kubelet of node {0} at {1}: {2}"
UNSIGNED: Final = (
    "error dialing backend: the kubelet of node {0} at {1} shows a certificate that this cluster's authority has not "
    "signed for that address ({2}): set serverTLSBootstrap: true in the kubelet's configuration, or start the server "
    "with --kubelet-insecure-tls"
)
PINNED: Final = "error dialing backend: the agent of node {0} at {1} shows another certificate than its Node names"
NO_PIN: Final = f"the annotation {FINGERPRINT} of node {{0}} is not a SHA-256 fingerprint"

LocalAgent = Callable[[], Awaitable[NodeConnection]]


class KubeletTls:
    """The client's side of TLS with kubelets. The contexts stay the same when certificates are renewed."""

    def __init__(self) -> None:
        self.verified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        """Trusts what the cluster's authorities have signed."""
        self.unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        """For certificates that are compared with a fingerprint."""
        self.unverified.check_hostname, self.unverified.verify_mode = False, ssl.CERT_NONE

    def load(self, file: str, authorities: str) -> None:
        """Use the certificate and key in this file, and trust these authorities (PEM), from the next connection on."""
        self.verified.load_cert_chain(file)
        self.unverified.load_cert_chain(file)
        self.verified.load_verify_locations(cadata=authorities)


class KubeletConnector:
    def __init__(self, registry: Registry, tls: KubeletTls | None = None, *, insecure: bool = False) -> None:
        """`tls` None: only agents of this process are reached."""
        self.local: dict[str, LocalAgent] = {}
        """Agents in this process, by node."""
        self._registry = registry
        self._tls = tls
        self._insecure = insecure

    def is_hollow(self, name: str) -> bool:
        held = self._registry.cache.get(NODES, "", name)
        info = {} if held is None else held.object(NODES).get("status", {}).get("nodeInfo", {})
        return str(info.get("containerRuntimeVersion", "")).startswith(HOLLOW)

    async def connect(self, name: str, purpose: str) -> NodeConnection:
        """A connection to the kubelet of this node. `purpose` is a verb for the answer of a hollow node. Raises
        StatusError."""
        local = self.local.get(name)
        if local is not None:
            return await local()
        held = self._registry.cache.get(NODES, "", name)
        if held is None:
            raise not_found("nodes", "", name)
        node = held.object(NODES)
        if self.is_hollow(name):
            raise StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", NO_CONTAINERS.format(name, purpose))
        address, port = address_of(node)
        if self._tls is None or not address or not port:
            raise StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", NO_ENDPOINT.format(name))
        pin = node.get("metadata", {}).get("annotations", {}).get(FINGERPRINT, "")
        return await self._dial(name, address, port, pin, self._tls)

    async def _dial(self, name: str, address: str, port: int, pin: str, tls: KubeletTls) -> NodeConnection:
        host = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        wanted = _fingerprint(name, pin) if pin else b""
        context = tls.unverified if pin or self._insecure else tls.verified
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(
                    address, port, ssl=context, server_hostname=address, limit=HEAD_BYTES
                )
        except ssl.SSLCertVerificationError as error:
            raise _unavailable(UNSIGNED.format(name, host, error.verify_message or "not verified")) from None
        except (OSError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            raise _unavailable(UNREACHED.format(name, host, why)) from None
        if wanted and not _shows(writer, wanted):
            writer.transport.abort()
            raise _unavailable(PINNED.format(name, host))
        return NodeConnection(reader, writer, host)


def address_of(node: dict[str, Any]) -> tuple[str, int]:
    """Where a node's kubelet listens; "" or 0 if the Node does not say."""
    status = node.get("status", {})
    addresses = {one.get("type"): one.get("address", "") for one in reversed(status.get("addresses", ()))}
    found = next((addresses[kind] for kind in PREFERRED if addresses.get(kind)), "")
    port: int = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)
    return found, port


def _fingerprint(name: str, pin: str) -> bytes:
    try:
        found = bytes.fromhex(pin)
    except ValueError:
        found = b""
    if len(found) != hashlib.sha256().digest_size:
        raise StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", NO_PIN.format(name))
    return found


def _shows(writer: asyncio.StreamWriter, fingerprint: bytes) -> bool:
    shown = writer.get_extra_info("ssl_object").getpeercert(True)
    return hmac.compare_digest(hashlib.sha256(shown or b"").digest(), fingerprint)


def _unavailable(text: str) -> StatusError:
    return StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text)
