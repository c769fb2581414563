"""Logs of pods for the API server: from agents in its own process, and over TLS from other agents."""

from __future__ import annotations

import asyncio
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

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
HOLLOW: Final = "hollow://"
CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0
"""For an agent to begin its answer."""
LONGEST: Final = 1_000
"""How many bytes of an agent's refusal to read."""
ELSEWHERE: Final = "node {0} runs in another process and publishes no log endpoint"
UNREACHED: Final = "cannot read logs from the agent of node {0} at {1}: {2}"

_encode: Final = msgspec.json.Encoder().encode


class AgentLogs:
    """The server's LogSource. Agents of this process are added when they start."""

    def __init__(self, registry: Registry, tls: ssl.SSLContext | None = None) -> None:
        """`tls`: has the client certificate for remote agents; None: they are not asked."""
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
        # Pin the certificate that the Node names, because no CA signs it.
        connector = aiohttp.TCPConnector(ssl=_pin(fingerprint))
        session = aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        )
        try:
            query = {"options": _encode(options).decode(), "pod": pod}
            async with asyncio.timeout(ANSWER_S):
                answer = await session.get(url, params=query, ssl=self._tls, allow_redirects=False)
                if answer.status != HTTPStatus.OK:
                    said = (await answer.content.read(LONGEST)).decode(errors="replace")
                    raise StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", said)
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
        text = f"its annotation {CERTIFICATE} is not a SHA-256 fingerprint"
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
        return  # the agent disconnected; end the log here
    finally:
        await session.close()


async def _nothing() -> AsyncIterator[bytes]:
    """Hollow pods write no logs."""
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
