"""`situate status`: the state of a cluster: its server, its nodes and their load, its pods and why some wait."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.local import running_clusters
from situate.cli.commands.status.text import status_lines
from situate.cli.control_plane.state import read_state
from situate.cli.options import cluster_options, output_option
from situate.cli.output.formats import for_people
from situate.cli.output.text import show

RESOURCES: Final = ("cpu", "memory", "pods")
SNAPSHOTS: Final = "/apis/situate.dev/v1alpha1/nodesnapshots"
WORKLOADS: Final = "/apis/situate.dev/v1alpha1/workloadviews"
NAMESPACES: Final = "/apis/situate.dev/v1alpha1/namespaceviews"
COUNTS: Final = ("running", "readyPods", "waiting", "failed")
FINISHED: Final = ("Succeeded", "Failed")


@click.command()
@output_option()
@cluster_options
def status(output: str, kubeconfig: str | None, context: str | None) -> None:
    """Show the state of a cluster, the worst first. Exits with 1 if it is not up.

    `-o wide` shows all nodes, workloads and waiting pods, however many there are.
    """

    async def work(client: Client) -> dict[str, Any]:
        from situate.cli.cluster.objects import list_objects, unless_refused

        async def views(path: str) -> list[dict[str, Any]]:
            """What only situate's own server has."""
            return await unless_refused(list_objects(client, path), [])

        nodes = await list_objects(client, "/api/v1/nodes")
        pods = await list_objects(client, "/api/v1/pods")
        allocated = _allocated(await views(SNAPSHOTS)) or _requested(pods)
        summary = _summary(_own_state(client.access.server, kubeconfig), nodes, pods, allocated)
        summary["workloads"] = [_workload(one) for one in await views(WORKLOADS)]
        summary["namespaces"] = [_namespace(one) for one in await views(NAMESPACES)]
        return summary

    summary = with_client(kubeconfig, context, work)
    names = [f"node/{one['name']}" for one in summary["nodes"]["held"]]
    lines = status_lines(summary, whole=output == "wide") if for_people(output) else []
    show(lines, summary, [], output, names)


def _own_state(server: str, kubeconfig: str | None) -> Mapping[str, Any] | None:
    """What the server of this address wrote about itself, if it runs on this machine."""
    beside = [] if kubeconfig is None else [read_state(Path(kubeconfig).parent)]
    found = [*beside, *(one.state for one in running_clusters())]
    return next((one for one in found if one is not None and one["url"] == server), None)


def _allocated(snapshots: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """What is requested on each node, from the ledgers of situate's own server."""
    return {
        one["metadata"]["name"]: {
            name: _amount(name, text) for name, text in one.get("status", {}).get("allocated", {}).items()
        }
        for one in snapshots
    }


def _requested(pods: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """The same, from the pods."""
    import msgspec

    from situate.core.model.ledger import amounts_of
    from situate.core.model.pod import Pod

    found: dict[str, Counter[str]] = {}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and pod.get("status", {}).get("phase") not in FINISHED:
            found.setdefault(node, Counter()).update(amounts_of(msgspec.convert(pod, Pod)))
    return {node: dict(amounts) for node, amounts in found.items()}


def _amount(resource: str, text: str) -> int:
    """In millicores, bytes or pieces; what cannot be read is nothing."""
    from situate.core.model.quantity import QuantityError, milli_value, value

    try:
        return milli_value(text) if resource == "cpu" else value(text)
    except QuantityError:
        return 0


def _summary(
    state: Mapping[str, Any] | None,
    nodes: Sequence[Mapping[str, Any]],
    pods: Sequence[Mapping[str, Any]],
    allocated: Mapping[str, Mapping[str, int]],
) -> dict[str, Any]:
    phases = Counter(one.get("status", {}).get("phase", "Unknown") for one in pods)
    pending = [one for one in pods if one.get("status", {}).get("phase") == "Pending"]
    held = [_node(one, allocated.get(one["metadata"]["name"], {})) for one in nodes]
    return {
        "server": None
        if state is None
        else {
            "url": state["url"],
            "pid": state["pid"],
            "version": state["version"],
            "upS": round(time.time() - state["started"]),
        },
        "nodes": {
            "total": len(nodes),
            "ready": sum(one["ready"] for one in held),
            "cordoned": sum(one["cordoned"] for one in held),
            "requested": _totals(nodes, allocated),
            "held": sorted(held, key=lambda one: (one["ready"], -one["percent"])),
        },
        "pods": {"total": len(pods), "byPhase": dict(sorted(phases.items()))},
        "waiting": [_waiting(one) for one in pending if not one["spec"].get("nodeName")],
    }


def _totals(
    nodes: Sequence[Mapping[str, Any]], allocated: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, Any]]:
    from situate.core.explain.formatting import roughly

    found = {}
    for resource in RESOURCES:
        room = sum(_amount(resource, _allocatable(one).get(resource, "0")) for one in nodes)
        asked = sum(one.get(resource, 0) for one in allocated.values())
        text = _cores if resource == "cpu" else partial(roughly, resource)
        found[resource] = {"requested": text(asked), "allocatable": text(room), "percent": _percent(asked, room)}
    return found


def _cores(millis: int) -> str:
    """For a total, in which thousandths are noise."""
    return f"{millis / 1000:.1f}".removesuffix(".0")


def _allocatable(node: Mapping[str, Any]) -> Mapping[str, str]:
    found: Mapping[str, str] = node.get("status", {}).get("allocatable") or {}
    return found


def _percent(asked: int, room: int) -> int:
    """Rounded up: a node with something on it is not empty, and one with room left is not full."""
    return -(-100 * asked // room) - (room - asked > 0 and 100 * asked > 99 * room) if room > 0 else 0


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _node(node: Mapping[str, Any], held: Mapping[str, int]) -> dict[str, Any]:
    from situate.core.explain.formatting import roughly

    room = _allocatable(node)
    shares = {name: _percent(held.get(name, 0), _amount(name, text)) for name, text in room.items()}
    scarcest = max(shares, key=lambda name: shares[name], default="")
    return {
        "name": node["metadata"]["name"],
        "ready": _is_ready(node),
        "cordoned": bool(node.get("spec", {}).get("unschedulable")),
        "percent": shares.get(scarcest, 0),
        "scarcest": scarcest,
        **{name: f"{roughly(name, held.get(name, 0))} of {room.get(name, '0')}" for name in RESOURCES},
    }


def _waiting(pod: Mapping[str, Any]) -> dict[str, str]:
    conditions = pod.get("status", {}).get("conditions", ())
    why = next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "not tried yet")
    meta = pod["metadata"]
    return {"pod": f"{meta['namespace']}/{meta['name']}", "why": why}


def _workload(view: Mapping[str, Any]) -> dict[str, Any]:
    status, meta = view["status"], view["metadata"]
    return {
        "workload": f"{meta['namespace']}/{status['kind'].lower()}/{status['name']}",
        "desired": status.get("desired", 0),
        **{count: status.get(count, 0) for count in COUNTS},
        "nodes": status.get("nodes", 0),
        "reason": status.get("reason", ""),
    }


def _namespace(view: Mapping[str, Any]) -> dict[str, Any]:
    from situate.core.explain.formatting import roughly

    status = view["status"]
    requested = status.get("requested", {})
    return {
        "namespace": view["metadata"]["name"],
        "workloads": status.get("workloads", 0),
        "pods": status.get("pods", 0),
        **{count: status.get(count, 0) for count in COUNTS},
        **{name: roughly(name, _amount(name, requested.get(name, "0"))) for name in ("cpu", "memory")},
    }
