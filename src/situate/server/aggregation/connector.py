"""Opens connections to the API servers behind APIServices: over TLS, with a certificate that lets this server say for
which user it asks.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from situate.server.admission.webhooks.client import tls_context
from situate.server.admission.webhooks.endpoints import resolve
from situate.server.aggregation.apis import AggregatedApi
from situate.server.kubelet.connection import HEAD_BYTES, Header, NodeConnection
from situate.server.registry.cache import Cache
from situate.server.requests import Caller

CLIENT_NAME: Final = "front-proxy-client"
"""The common name of the server's certificate, as with kubeadm. No one else gets a certificate with this name."""
CONNECT_S: Final = 5.0
MAX_CONTEXTS: Final = 64
"""Sets of authorities that are kept."""


class ApiServerConnector:
    def __init__(self, cache: Cache, authenticate: Callable[[ssl.SSLContext], None]) -> None:
        """`authenticate` loads a client certificate of CLIENT_NAME."""
        self._cache = cache
        self._authenticate = authenticate
        self._contexts: OrderedDict[tuple[str, bool], ssl.SSLContext] = OrderedDict()

    async def connect(self, api: AggregatedApi) -> NodeConnection:
        """To a ready endpoint of its Service. Raises CallError, UnresolvedError, OSError, TimeoutError."""
        endpoint = resolve(api.client, self._cache)
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(
                endpoint.host,
                endpoint.port,
                ssl=self._context(api.client["caBundle"], api.insecure),
                server_hostname=endpoint.server_name,
                limit=HEAD_BYTES,
            )
        return NodeConnection(reader, writer, endpoint.server_name)

    def forget_certificates(self) -> None:
        """Load the client certificate again, for the connections from now on."""
        self._contexts.clear()

    def _context(self, authorities: str, insecure: bool) -> ssl.SSLContext:
        found = self._contexts.get((authorities, insecure))
        if found is None:
            found = tls_context(authorities)
            if insecure:
                found.check_hostname, found.verify_mode = False, ssl.CERT_NONE
            self._authenticate(found)
            self._contexts[authorities, insecure] = found
            if len(self._contexts) > MAX_CONTEXTS:
                self._contexts.popitem(last=False)
        return found


def user_headers(caller: Caller) -> list[Header]:
    """Who asks, as the other server reads it from a request with our certificate."""
    found = [("X-Remote-User", _value(caller.name))]
    if caller.uid:
        found.append(("X-Remote-Uid", _value(caller.uid)))
    found += [("X-Remote-Group", _value(group)) for group in caller.groups]
    for key, values in caller.extra.items():
        found += [(f"X-Remote-Extra-{quote(key, safe='')}", _value(value)) for value in values]
    return found


def _value(text: str) -> str:
    """UTF-8, as headers are written in Latin-1. Raises ValueError for what would be read as another value: what ends
    the header, and spaces around it, without which " system:masters" is another group."""
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError(f"{text!r} has control characters")
    if text != text.strip():
        raise ValueError(f"{text!r} begins or ends with a space")
    return text.encode().decode("latin-1")
