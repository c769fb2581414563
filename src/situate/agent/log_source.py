"""Logs of pods for the server: of agents in its own process, and of those elsewhere, which it asks."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import msgspec

from situate.agent.agent import NodeAgent
from situate.agent.log_reader import open_log
from situate.agent.log_server import CERTIFICATE, log_path
from situate.server.errors import StatusError
from situate.server.http.ports import LogOptions
from situate.server.registry.registry import Registry
from situate.server.resources import BY_KIND

__all__ = ["AgentLogs"]

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
HOLLOW: Final = "hollow://"
CONNECT_S: Final = 5.0
LONGEST: Final = 1_000
ELSEWHERE: Final = "node {0} runs in a process of its own, and does not say where its logs can be asked for"
UNREACHED: Final = "the agent of node {0} cannot be asked for its logs at {1}: {2}"

_encode: Final = msgspec.json.Encoder().encode


class AgentLogs:
    """A situate.server.http.ports.LogSource. Agents of this process are added as they begin."""

    def __init__(self, registry: Registry, tls: ssl.SSLContext | None = None) -> None:
        """`tls`: with the certificate that agents elsewhere know this server by; None: they are not asked."""
        self.agents: dict[str, NodeAgent] = {}
        self._registry = registry
        self._tls = tls

    async def open(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        held = self._registry.cache.get(PODS, namespace, pod)
        found = {} if held is None else held.object(PODS)
        name = found.get("spec", {}).get("nodeName", "")
        agent = self.agents.get(name)
        if agent is not None:
            return open_log(agent.runtime, found["metadata"]["uid"], container, pod, options)
        node = self._registry.cache.get(NODES, "", name)
        said = {} if node is None else node.object(NODES)
        if str(said.get("status", {}).get("nodeInfo", {}).get("containerRuntimeVersion", "")).startswith(HOLLOW):
            return _nothing()
        return await self._asked(name, said, found["metadata"]["uid"], container, pod, options)

    async def _asked(
        self, name: str, node: dict[str, Any], uid: str, container: str, pod: str, options: LogOptions
    ) -> AsyncIterator[bytes]:
        fingerprint = node.get("metadata", {}).get("annotations", {}).get(CERTIFICATE, "")
        address, port = _address(node)
        if self._tls is None or not fingerprint or not address or not port:
            raise StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", ELSEWHERE.format(name))
        url = f"https://{f'[{address}]' if ':' in address else address}:{port}{log_path(uid, container)}"
        # By the very certificate that the node has said is its agent's: nobody has signed its name.
        connector = aiohttp.TCPConnector(ssl=_pin(fingerprint))
        session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        )
        try:
            query = {"options": _encode(options).decode(), "pod": pod}
            answer = await session.get(url, params=query, ssl=self._tls, allow_redirects=False)
            if answer.status != HTTPStatus.OK:
                raise StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", (await answer.text())[:LONGEST])
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await session.close()
            where, why = f"{address}:{port}", str(error) or type(error).__name__
            text = UNREACHED.format(name, where, why)
            raise StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text) from None
        except BaseException:
            await session.close()
            raise
        return _pieces(session, answer)


def _pin(fingerprint: str) -> aiohttp.Fingerprint:
    try:
        return aiohttp.Fingerprint(bytes.fromhex(fingerprint))
    except ValueError:
        text = f"its annotation {CERTIFICATE} is no SHA-256 of a certificate"
        raise StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", text) from None


def _address(node: dict[str, Any]) -> tuple[str, int]:
    status = node.get("status", {})
    addresses = [one["address"] for one in status.get("addresses", ()) if one["type"] == "InternalIP"]
    port: int = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port", 0)
    return addresses[0] if addresses else "", port


async def _pieces(session: aiohttp.ClientSession, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in answer.content.iter_any():
            yield piece
    except aiohttp.ClientError:
        return  # the agent has gone; what it said is told
    finally:
        await session.close()


async def _nothing() -> AsyncIterator[bytes]:
    """What runs on paper writes nothing."""
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
