"""Serves pods/exec, pods/attach and pods/portforward: finds the container's node, and opens a tunnel to its kubelet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import parse_qsl, urlencode

from situate.server.errors import bad_request
from situate.server.http.pod_logs import container_of
from situate.server.http.ports import NodeConnector
from situate.server.http.request import ApiRequest
from situate.server.http.responses import Response
from situate.server.http.settings import Limits
from situate.server.http.streams import OpenStreams
from situate.server.http.tunnels import Tunnel, upgrade_headers, wants_upgrade
from situate.server.http.urls import no_such_path
from situate.server.registry.registry import Registry
from situate.server.requests import Target

STREAMING: Final = ("attach", "exec", "portforward")
"""Subresources of pods that are tunnels."""
UPGRADE: Final = "Upgrade request required"
NO_STREAM: Final = "you must specify at least 1 of stdin, stdout, stderr"
NO_COMMAND: Final = "you must specify at least 1 command for the container"
_PATHS: Final = {"exec": "exec", "attach": "attach", "portforward": "portForward"}
_VERBS: Final = {"exec": "run a command in", "attach": "attach to", "portforward": "forward a port to"}
_STREAMS: Final = (("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty"))
"""The API's names of the options, and the kubelet's."""
Options = Sequence[tuple[str, str]]


class PodStreamHandler:
    def __init__(self, registry: Registry, nodes: NodeConnector | None, streams: OpenStreams, limits: Limits) -> None:
        self._registry = registry
        self._nodes = nodes
        self._streams = streams
        self._limits = limits

    async def handle(self, request: ApiRequest, headers: str) -> Response:
        target, name = request.target, request.url.subresource
        if self._nodes is None:
            raise no_such_path()
        stored = await self._registry.get(Target(target.resource, target.namespace, target.name))
        pod = stored.object(target.resource)
        options = parse_qsl(request.http.raw_path.partition("?")[2], keep_blank_values=True)
        path = f"/{_PATHS[name]}/{target.namespace}/{target.name}"
        if name == "portforward":
            query = [("port", value) for key, value in options if key == "ports"]
        else:
            path += f"/{container_of(pod, request.query.get('container', ''))}"
            query = _stream_options(name, options)
        node = (pod.get("spec") or {}).get("nodeName", "")
        if not node:
            raise bad_request(f"pod {target.name} does not have a host assigned")
        if not wants_upgrade(request.http):
            raise bad_request(UPGRADE)
        connection = await self._nodes.connect(node, _VERBS[name])
        tunnel = Tunnel(request.http, connection, self._limits)
        try:
            with self._streams.tracked(tunnel):
                where = f"{path}?{urlencode(query)}" if query else path
                return await tunnel.run(node, request.http.method, where, upgrade_headers(request.http), headers)
        finally:
            connection.abort()


def _stream_options(name: str, options: Options) -> list[tuple[str, str]]:
    """The kubelet's query for these options. Raises StatusError if they make no sense together."""
    given = dict(reversed(options))
    wanted = {key for key, _ in _STREAMS if key in given and given[key].lower() not in ("false", "0")}
    if name == "attach" and not given.keys() & {"stdin", "stdout", "stderr"}:
        wanted |= {"stdout", "stderr"}  # the API's defaults
    if not wanted & {"stdin", "stdout", "stderr"}:
        raise bad_request(NO_STREAM)
    if "tty" in wanted:
        wanted.discard("stderr")  # a terminal has one output
    query = [(kubelets, "1") for key, kubelets in _STREAMS if key in wanted]
    if name == "exec":
        commands = [value for key, value in options if key == "command"]
        if not commands:
            raise bad_request(NO_COMMAND)
        query += [("command", value) for value in commands]
    return query
