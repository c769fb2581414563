"""`situate status`: the state of a cluster: its server, its nodes and their load, its pods and why some wait."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.local import running_clusters
from situate.cli.control_plane.state import read_state
from situate.cli.options import cluster_options, output_option
from situate.cli.output.formats import for_people
from situate.cli.output.text import age, columns, show

MOST_WAITING: Final = 10
"""How many waiting pods are shown; the rest are counted."""
MOST_NODES: Final = 20
GAP: Final = 3
MOST_WORKLOADS: Final = 20
RESOURCES: Final = ("cpu", "memory", "pods")
SNAPSHOTS: Final = "/apis/situate.dev/v1alpha1/nodesnapshots"
WORKLOADS: Final = "/apis/situate.dev/v1alpha1/workloadviews"
NAMESPACES: Final = "/apis/situate.dev/v1alpha1/namespaceviews"
COUNTS: Final = ("running", "readyPods", "waiting", "failed")


@click.command()
@output_option()
@cluster_options
def status(output: str, kubeconfig: str | None, context: str | None) -> None:
    """Show the state of a cluster. Exits with 1 if it is not up."""

    async def work(client: Client) -> dict[str, Any]:
        from situate.cli.cluster.objects import list_objects, unless_refused

        async def views(path: str) -> list[dict[str, Any]]:
            """What only situate's own server has."""
            return await unless_refused(list_objects(client, path), [])

        nodes = await list_objects(client, "/api/v1/nodes")
        pods = await list_objects(client, "/api/v1/pods")
        summary = _summary(_own_state(client.access.server, kubeconfig), nodes, pods, await views(SNAPSHOTS))
        summary["workloads"] = [_workload(one) for one in await views(WORKLOADS)]
        summary["namespaces"] = [_namespace(one) for one in await views(NAMESPACES)]
        return summary

    summary = with_client(kubeconfig, context, work)
    names = [f"node/{one['name']}" for one in summary["nodes"]["held"]]
    show(_lines(summary) if for_people(output) else [], summary, [], output, names)


def _own_state(server: str, kubeconfig: str | None) -> Mapping[str, Any] | None:
    """What the server of this address wrote about itself, if it runs on this machine."""
    beside = [] if kubeconfig is None else [read_state(Path(kubeconfig).parent)]
    found = [*beside, *(one.state for one in running_clusters())]
    return next((one for one in found if one is not None and one["url"] == server), None)


def _summary(
    state: Mapping[str, Any] | None,
    nodes: Sequence[Mapping[str, Any]],
    pods: Sequence[Mapping[str, Any]],
    snapshots: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    held = {one["metadata"]["name"]: one.get("status", {}).get("allocated", {}) for one in snapshots}
    phases = Counter(one.get("status", {}).get("phase", "Unknown") for one in pods)
    pending = [one for one in pods if one.get("status", {}).get("phase") == "Pending"]
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
            "ready": sum(_is_ready(one) for one in nodes),
            "held": [_node(one, held.get(one["metadata"]["name"], {})) for one in nodes],
        },
        "pods": {"total": len(pods), "byPhase": dict(sorted(phases.items()))},
        "waiting": [_waiting(one) for one in pending if not one["spec"].get("nodeName")],
    }


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _node(node: Mapping[str, Any], held: Mapping[str, str]) -> dict[str, Any]:
    room = node.get("status", {}).get("allocatable", {})
    return {
        "name": node["metadata"]["name"],
        "ready": _is_ready(node),
        **{resource: f"{_short(held.get(resource, '0'))} of {room.get(resource, '0')}" for resource in RESOURCES},
    }


def _short(amount: str) -> str:
    """`536870912` becomes `512Mi`."""
    number = int(amount) if amount.isdecimal() else 0
    for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return amount


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
    status = view["status"]
    return {
        "namespace": view["metadata"]["name"],
        "workloads": status.get("workloads", 0),
        "pods": status.get("pods", 0),
        **{count: status.get(count, 0) for count in COUNTS},
        **{resource: _short(status.get("requested", {}).get(resource, "0")) for resource in ("cpu", "memory")},
    }


def _views(summary: Mapping[str, Any]) -> list[str]:
    """Workloads, first those with waiting or failed pods; and namespaces that have pods."""
    lines: list[str] = []
    wanting = sorted(summary["workloads"], key=lambda one: not (one["waiting"] or one["failed"]))
    shown = [one for one in wanting if one["workload"].split("/")[1] != "pod"][:MOST_WORKLOADS]
    if shown:
        rows = [[str(one[key]) for key in ("workload", "desired", *COUNTS, "nodes")] for one in shown]
        headings = ["WORKLOAD", "DESIRED", "RUNNING", "READY", "WAITING", "FAILED", "NODES"]
        lines += ["", *columns(headings, rows, gap=GAP)]
    spaces = [one for one in summary["namespaces"] if one["pods"]]
    if spaces:
        keys = ("namespace", "workloads", "pods", *COUNTS, "cpu", "memory")
        rows = [[str(one[key]) for key in keys] for one in spaces[:MOST_WORKLOADS]]
        headings = ["NAMESPACE", "WORKLOADS", "PODS", "RUNNING", "READY", "WAITING", "FAILED", "CPU", "MEMORY"]
        lines += ["", *columns(headings, rows, gap=GAP)]
    return lines


def _lines(summary: Mapping[str, Any]) -> list[str]:
    lines = []
    server, nodes, pods = summary["server"], summary["nodes"], summary["pods"]
    if server is not None:
        lines.append(
            f"Server   {server['url']}, situate {server['version']}, process {server['pid']}, up {age(server['upS'])}"
        )
    lines.append(f"Nodes    {nodes['ready']} of {nodes['total']} ready")
    phases = ", ".join(f"{count} {phase}" for phase, count in pods["byPhase"].items())
    lines.append(f"Pods     {pods['total']}{': ' + phases if phases else ''}")
    shown = nodes["held"][:MOST_NODES]
    if shown:
        rows = [
            [one["name"], "yes" if one["ready"] else "NO", *(one[resource] for resource in RESOURCES)] for one in shown
        ]
        lines += ["", *columns(["NODE", "READY", "CPU", "MEMORY", "PODS"], rows, gap=GAP)]
        if len(nodes["held"]) > len(shown):
            lines.append(f"... and {len(nodes['held']) - len(shown)} more")
    lines += _views(summary)
    waiting = summary["waiting"]
    if waiting:
        rows = [[one["pod"], one["why"]] for one in waiting[:MOST_WAITING]]
        lines += ["", *columns(["WAITING", "WHY"], rows, gap=GAP)]
        if len(waiting) > MOST_WAITING:
            lines.append(f"... and {len(waiting) - MOST_WAITING} more")
    return lines
