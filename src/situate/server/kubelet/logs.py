"""Logs of pods, from the kubelets of their nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final
from urllib.parse import urlencode

from situate.server.errors import StatusError
from situate.server.http.ports import LogOptions
from situate.server.kubelet.connection import AnswerError, AnswerHead, NodeConnection, ask, read_body, refusal
from situate.server.kubelet.connector import KubeletConnector
from situate.server.registry.registry import Registry
from situate.server.resources import BY_KIND

PODS: Final = BY_KIND["v1", "Pod"]
ANSWER_S: Final = 30.0
"""For a kubelet to begin its answer."""
FAILED: Final = "the kubelet of node {0} did not send the log: {1}"


class KubeletLogs:
    """The server's LogSource."""

    def __init__(self, registry: Registry, nodes: KubeletConnector) -> None:
        self._registry = registry
        self._nodes = nodes

    async def open(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        held = self._registry.cache.get(PODS, namespace, pod)
        node = "" if held is None else held.object(PODS).get("spec", {}).get("nodeName", "")
        if self._nodes.is_hollow(node):
            return _nothing()
        connection = await self._nodes.connect(node, "read a log of")
        try:
            target = f"/containerLogs/{namespace}/{pod}/{container}?{urlencode(_parameters(options))}"
            async with asyncio.timeout(ANSWER_S):
                head = await ask(connection, "GET", target, (("Connection", "close"),))
                if head.code != HTTPStatus.OK:
                    raise await refusal(connection.reader, head)
        except (AnswerError, OSError, TimeoutError) as error:
            connection.abort()
            text = FAILED.format(node, str(error) or "no answer in time")
            raise StatusError(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", text) from None
        except BaseException:
            connection.abort()
            raise
        return _pieces(connection, head)


def _parameters(options: LogOptions) -> list[tuple[str, str]]:
    """As the kubelet reads them."""
    flags = ("follow", options.follow), ("previous", options.previous), ("timestamps", options.timestamps)
    found = [(name, "true") for name, given in flags if given]
    numbers = (
        ("sinceSeconds", options.since_s),
        ("tailLines", options.tail_lines),
        ("limitBytes", options.limit_bytes),
    )
    found += [(name, str(number)) for name, number in numbers if number is not None]
    if options.since_time:
        found.append(("sinceTime", options.since_time))
    if options.stream != "All":
        found.append(("stream", options.stream))
    return found


async def _pieces(connection: NodeConnection, head: AnswerHead) -> AsyncIterator[bytes]:
    try:
        async for piece in read_body(connection.reader, head):
            yield piece
    except (AnswerError, OSError):
        return  # the kubelet is gone; end the log here
    finally:
        connection.abort()


async def _nothing() -> AsyncIterator[bytes]:
    """Hollow pods write no logs."""
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
