"""Logs of pods for the server, from agents that live in its process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Final

from situate.agent.agent import NodeAgent
from situate.agent.reading import pieces, wanted_of
from situate.server.http.contracts import LogOptions
from situate.server.problems import StatusError, bad_request
from situate.server.registry.registry import Registry
from situate.server.resources import BY_KIND

__all__ = ["AgentLogs"]

PODS: Final = BY_KIND["v1", "Pod"]
NODES: Final = BY_KIND["v1", "Node"]
HOLLOW: Final = "hollow://"
ELSEWHERE: Final = "node {0} runs in a process of its own, and its logs are on its machine, in the agent's directory"


class AgentLogs:
    """A situate.server.http.contracts.LogSource. Agents are added as they begin."""

    def __init__(self, registry: Registry) -> None:
        self.agents: dict[str, NodeAgent] = {}
        self._registry = registry

    async def open(self, namespace: str, pod: str, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        held = self._registry.cache.get(PODS, namespace, pod)
        found = {} if held is None else held.object(PODS)
        node = found.get("spec", {}).get("nodeName", "")
        agent = self.agents.get(node)
        if agent is None:
            if self._is_hollow(node):
                return _nothing()
            raise StatusError(HTTPStatus.NOT_IMPLEMENTED, "NotImplemented", ELSEWHERE.format(node))
        runs = agent.runtime.runs(found["metadata"]["uid"]).get(container, ())
        if options.previous:
            if len(runs) < 2:
                text = f'previous terminated container "{container}" in pod "{pod}" not found'
                raise bad_request(text)
            run = runs[-2]
        elif runs:
            run = runs[-1]
        else:
            raise bad_request(f'container "{container}" in pod "{pod}" is waiting to start: ContainerCreating')
        uid, attempt = found["metadata"]["uid"], run.attempt
        path = agent.runtime.log(uid, container, attempt)

        def over() -> bool:
            runs = agent.runtime.runs(uid).get(container, ())
            return not any(one.attempt == attempt and not one.is_over for one in runs)

        return pieces(path, wanted_of(options, time.time()), over)

    def _is_hollow(self, node: str) -> bool:
        held = self._registry.cache.get(NODES, "", node)
        info = {} if held is None else held.object(NODES).get("status", {}).get("nodeInfo", {})
        return str(info.get("containerRuntimeVersion", "")).startswith(HOLLOW)


async def _nothing() -> AsyncIterator[bytes]:
    """What runs on paper writes nothing."""
    nothing: tuple[bytes, ...] = ()
    for piece in nothing:
        yield piece
