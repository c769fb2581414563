"""Serves pods/log: finds the container and streams its log from the node."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from situate.server.errors import StatusError, bad_request
from situate.server.http import query
from situate.server.http.ports import LogSource
from situate.server.http.request import ApiRequest
from situate.server.http.responses import TEXT, Response
from situate.server.http.streams import OpenStreams
from situate.server.registry.registry import Registry
from situate.server.requests import Object, Target

NO_SOURCE: Final = "no node of this cluster serves logs"


def container_of(pod: Object, container: str) -> str:
    """The name of the container. Raises StatusError if the pod has several, or not this one."""
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
    def __init__(self, registry: Registry, source: LogSource | None, streams: OpenStreams) -> None:
        self._registry = registry
        self._source = source
        self._streams = streams

    async def handle(self, request: ApiRequest, headers: str) -> Response:
        options = query.log_options(request.query)
        target = request.target
        stored = await self._registry.get(Target(target.resource, target.namespace, target.name))
        pod = stored.object(target.resource)
        container = container_of(pod, request.query.get("container", ""))
        if not (pod.get("spec") or {}).get("nodeName"):
            return Response(HTTPStatus.NO_CONTENT, b"", TEXT)
        if self._source is None:
            raise StatusError(HTTPStatus.NOT_FOUND, "NotFound", NO_SOURCE)
        pieces = await self._source.open(target.namespace, target.name, container, options)
        try:
            async with self._streams.open(request.http, TEXT, headers) as stream:
                async for piece in pieces:
                    await stream.send((piece,))
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()
        return stream.finish()
