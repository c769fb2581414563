"""What must hold some time after all faults are over: the actual state is the desired one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from situate.agent.node_status import is_ready
from situate.sim.nodes.checkers import ENDED, NodeCheckers
from situate.sim.nodes.control_plane import SimulatedControlPlane
from situate.sim.nodes.machine import Machine
from situate.sim.nodes.workload import RESOURCES, SPACE, DesiredWorkload, Users


def unsettled(
    checkers: NodeCheckers, machines: Sequence[Machine], users: Users, control_plane: SimulatedControlPlane
) -> list[str]:
    """The differences from the desired state."""
    return [
        *_servers(control_plane),
        *_nodes(checkers, machines),
        *_pods(checkers),
        *_running(checkers),
        *checkers.claims.left({pod.uid for pod in checkers.pods.values() if pod.phase not in ENDED}),
        *_workloads(checkers, users, control_plane),
    ]


def _servers(control_plane: SimulatedControlPlane) -> Iterator[str]:
    for one in control_plane.servers:
        if one.process is None or not one.process.ready:
            yield f"{one.name} is not ready"
        elif problem := one.process.registry.cache.problem:
            yield f"{one.name} does not serve: {problem}"
        elif control_plane.is_behind(one.process):
            yield f"{one.name} does not follow the store"


def _nodes(checkers: NodeCheckers, machines: Sequence[Machine]) -> Iterator[str]:
    for one in machines:
        node = checkers.nodes.get(one.name)
        if node is None:
            yield f"{one.name} is not registered"
        elif not node.up:
            yield f"{one.name} is not ready"
        elif node.given_up is not None:
            yield f"{one.name} is still given up"


def _pods(checkers: NodeCheckers) -> Iterator[str]:
    for key, pod in checkers.pods.items():
        on = list(checkers.running.get(pod.uid, ()))
        if pod.leaves:
            yield f"{key} is still being deleted from {pod.node or 'no node'}"
        elif pod.phase in ENDED:
            continue
        elif not pod.node:
            yield f"{key} is not bound"
        elif pod.phase != "Running" or not is_ready(pod.body):
            yield f"{key} on {pod.node} is {pod.phase}{'' if pod.phase != 'Running' else ', and not ready'}"
        elif on != [pod.node]:
            yield f"{key} is bound to {pod.node} and runs on {on or 'none'}"


def _running(checkers: NodeCheckers) -> Iterator[str]:
    by_uid = {pod.uid: pod for pod in checkers.pods.values()}
    for uid, places in checkers.running.items():
        pod = by_uid.get(uid)
        if pod is None:
            yield f"{', '.join(places)} runs {uid[:8]}, which is gone"
        elif pod.phase in ENDED:
            yield f"{', '.join(places)} runs {pod.key}, which has {pod.phase}"


def _workloads(checkers: NodeCheckers, users: Users, control_plane: SimulatedControlPlane) -> Iterator[str]:
    for one in users.workloads.values():
        pods = [pod for pod in checkers.pods.values() if pod.body["metadata"].get("labels", {}).get("app") == one.name]
        if one.kind == "Job":
            yield from _job(one, control_plane)
        elif one.moves:
            active = [pod for pod in pods if not pod.leaves and pod.phase not in ENDED]
            if len(active) != one.replicas:
                yield f"{one.name} has {len(active)} pods of {one.replicas}"
            if one.kind in ("Deployment", "StatefulSet"):
                # A rolling update waits for pods to be ready: all may be, and the next one is still to be replaced.
                updated = _status(one, control_plane).get("updatedReplicas", 0)
                if updated != one.replicas:
                    yield f"{one.name} has {updated} pods of {one.replicas} updated"


def _job(one: DesiredWorkload, control_plane: SimulatedControlPlane) -> Iterator[str]:
    done = _status(one, control_plane).get("succeeded", 0)
    if done != one.replicas:
        yield f"{one.name} has {done} of {one.replicas} done"


def _status(one: DesiredWorkload, control_plane: SimulatedControlPlane) -> Mapping[str, Any]:
    process, resource = control_plane.reached(), RESOURCES[one.kind]
    held = None if process is None else process.registry.cache.get(resource, SPACE, one.name)
    found: Mapping[str, Any] = {} if held is None else held.object(resource).get("status", {})
    return found
