"""The subresource log: which container is meant, and what it wrote, from whoever can reach it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError, bad_request
from situate.server.http import query
from situate.server.http.ports import LogSource
from situate.server.http.request import ApiRequest
from situate.server.http.responses import TEXT, Response
from situate.server.http.settings import Limits
from situate.server.http.streams import ChunkedStream
from situate.server.registry.registry import Registry
from situate.server.requests import Object, Target

__all__ = ["PodLogHandler", "container_of"]

NO_SOURCE: Final = "no node of this cluster keeps logs"


def container_of(pod: Object, container: str) -> str:
    """The container whose log it is. Raises StatusError if the pod has several, or not that one."""
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    lists = [spec.get(key) or [] for key in ("initContainers", "containers", "ephemeralContainers")]
    names = [one.get("name", "") for some in lists for one in some]
    if container:
        if container not in names:
            raise bad_request(f"container {container} is not valid for pod {name}")
        return container
    if len(lists[1]) == 1:
        return str(lists[1][0].get("name", ""))
    if not lists[1]:
        raise bad_request(f"a container name must be specified for pod {name}")
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")


class PodLogHandler:
    def __init__(self, registry: Registry, source: LogSource | None, limits: Limits) -> None:
        self._registry = registry
        self._source = source
        self._limits = limits
        self._open: dict[ChunkedStream, None] = {}

    def stop(self) -> None:
        for stream in list(self._open):
            stream.stop()

    async def handle(self, request: ApiRequest, headers: str) -> Response:
        options = query.log_options(request.query)
        target = request.target
        stored = await self._registry.get(Target(target.resource, target.namespace, target.name))
        pod = stored.object(target.resource)
        container = container_of(pod, request.query.get("container", ""))
        if not (pod.get("spec") or {}).get("nodeName"):
            return Response(HTTPStatus.OK, b"", TEXT)
        if self._source is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "NotFound", NO_SOURCE)
        pieces = await self._source.open(target.namespace, target.name, container, options)
        stream = ChunkedStream(request.http, self._limits.slow_s)
        self._open[stream] = None
        try:
            stream.start(TEXT, headers)
            async for piece in pieces:
                await stream.send((piece,))
        except asyncio.CancelledError:
            if not stream.cancelled():
                raise
        except ConnectionError:
            pass
        finally:
            self._open.pop(stream, None)
            stream.detach()
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()
        return stream.finish()
