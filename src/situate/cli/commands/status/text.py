"""`situate status` for people: totals first, then the worst of each kind. What is fine is counted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.cli.output.text import age, columns, plural

MOST: Final = 10
"""Rows of each table, if there are more than twice as many: of a cluster of 1,000 nodes people want the worst."""
GAP: Final = 3
BAR: Final = 40
STEPS: Final = ((0, "empty"), (25, "1 to 25 %"), (50, "26 to 50 %"), (75, "51 to 75 %"), (90, "76 to 90 %"))
"""Up to which percentage, and what that is called."""
ALMOST, FULL, NOT_READY = "91 to 99 %", "full", "not ready"
ALL: Final = "`situate status -o wide` shows all"
RESOURCES: Final = ("cpu", "memory", "pods")
COUNTS: Final = ("running", "readyPods", "waiting", "failed")

Summary = Mapping[str, Any]


def status_lines(summary: Summary, *, whole: bool) -> list[str]:
    """`whole`: every row."""
    nodes = summary["nodes"]["held"]
    lines = _heading(summary)
    if _most(nodes, whole) < len(nodes):
        lines += ["", *histogram(nodes)]
    lines += _table(_node_rows, nodes, ["NODE", "READY", "FULL", "CPU", "MEMORY", "PODS"], "node", whole)
    owned = sorted(summary["workloads"], key=_trouble)
    shown = [one for one in owned if one["workload"].split("/")[1] != "pod"]
    headings = ["WORKLOAD", "DESIRED", "RUNNING", "READY", "WAITING", "FAILED", "NODES"]
    if _most(shown, whole) < len(shown):
        shown, fine = [one for one in shown if any(_trouble(one))], len(shown)
        lines += _table(_workload_rows, shown, headings, "workload", whole)
        fine -= len(shown)
        lines += ["", f"{plural(fine, 'workload')} without pods that wait or fail: {ALL}"]
    else:
        lines += _table(_workload_rows, shown, headings, "workload", whole)
    spaces = sorted((one for one in summary["namespaces"] if one["pods"]), key=_trouble)
    headings = ["NAMESPACE", "WORKLOADS", "PODS", "RUNNING", "READY", "WAITING", "FAILED", "CPU", "MEMORY"]
    lines += _table(_namespace_rows, spaces, headings, "namespace", whole)
    return lines + _table(_waiting_rows, summary["waiting"], ["WAITING", "WHY"], "pod", whole)


def _heading(summary: Summary) -> list[str]:
    lines = []
    server, nodes, pods = summary["server"], summary["nodes"], summary["pods"]
    if server is not None:
        lines.append(
            f"Server   {server['url']}, situate {server['version']}, process {server['pid']}, up {age(server['upS'])}"
        )
    cordoned = f", {nodes['cordoned']} cordoned" if nodes["cordoned"] else ""
    lines.append(f"Nodes    {nodes['ready']} of {nodes['total']} ready{cordoned}")
    phases = ", ".join(f"{count} {phase}" for phase, count in pods["byPhase"].items())
    lines.append(f"Pods     {pods['total']}{': ' + phases if phases else ''}")
    for resource in RESOURCES if nodes["total"] else ():
        one = nodes["requested"][resource]
        what = f"{one['requested']} of {one['allocatable']} {'placed' if resource == 'pods' else 'requested'}"
        lines.append(f"{resource:8} {one['percent']:3} %  {what}")
    return lines


def histogram(nodes: Sequence[Summary]) -> list[str]:
    """How many nodes are how full, by their scarcest resource."""
    names = [name for _, name in STEPS] + [ALMOST, FULL, NOT_READY]
    counts = dict.fromkeys(names, 0)
    for node in nodes:
        counts[_step(node)] += 1
    most = max(counts.values())
    rows = [
        (name, count, "█" * -(-BAR * count // most)) for name, count in counts.items() if count or name != NOT_READY
    ]
    return columns(["REQUESTED", "NODES", ""], rows, gap=GAP)


def _step(node: Summary) -> str:
    if not node["ready"]:
        return NOT_READY
    if node["percent"] >= 100:
        return FULL
    return next((name for most, name in STEPS if node["percent"] <= most), ALMOST)


def _most(rows: Sequence[Any], whole: bool) -> int:
    return len(rows) if whole or len(rows) <= 2 * MOST else MOST


def _table(make: Any, found: Sequence[Summary], headings: list[str], noun: str, whole: bool) -> list[str]:
    if not found:
        return []
    most = _most(found, whole)
    lines = ["", *columns(headings, make(found[:most]), gap=GAP)]
    left = len(found) - most
    return [*lines, f"and {plural(left, f'more {noun}')}: {ALL}"] if left else lines


def _trouble(one: Summary) -> tuple[int, int]:
    """Those with pods that fail or wait come first."""
    return -one["failed"], -one["waiting"]


def _node_rows(nodes: Sequence[Summary]) -> list[list[str]]:
    return [
        [
            one["name"],
            ("yes" if one["ready"] else "NO") + (", cordoned" if one["cordoned"] else ""),
            f"{one['percent']:3} % {one['scarcest']}",
            *(one[resource] for resource in RESOURCES),
        ]
        for one in nodes
    ]


def _workload_rows(workloads: Sequence[Summary]) -> list[list[str]]:
    return [[str(one[key]) for key in ("workload", "desired", *COUNTS, "nodes")] for one in workloads]


def _namespace_rows(spaces: Sequence[Summary]) -> list[list[str]]:
    keys = ("namespace", "workloads", "pods", *COUNTS, "cpu", "memory")
    return [[str(one[key]) for key in keys] for one in spaces]


def _waiting_rows(waiting: Sequence[Summary]) -> list[list[str]]:
    return [[one["pod"], one["why"]] for one in waiting]
