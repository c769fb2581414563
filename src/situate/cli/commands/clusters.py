"""`situate clusters`: the clusters of `situate up` on this machine, running or stopped."""

import time
from typing import Any, Final

import click

from situate.cli.cluster.local import LocalCluster, context_name, local_clusters
from situate.cli.options import output_option
from situate.cli.output.formats import for_people
from situate.cli.output.text import columns, show

GAP: Final = 3
HEADINGS: Final = ("NAME", "STATE", "SERVER", "AGE", "DIRECTORY")


@click.command()
@output_option()
def clusters(output: str) -> None:
    """Show the clusters on this machine: the one in this directory, and all that have a name."""
    found = [_values(one) for one in local_clusters()]
    if not found and for_people(output):
        click.echo("No clusters found. `situate up` starts one.", err=True)
        return
    rows = [
        (one["name"] or "<none>", one["state"], one["server"] or "-", _age(one["upS"]), one["directory"])
        for one in found
    ]
    show(columns(HEADINGS, rows, gap=GAP), found, [], output, [one["name"] or one["context"] for one in found])


def _values(cluster: LocalCluster) -> dict[str, Any]:
    state = cluster.state
    return {
        "name": cluster.name,
        "context": context_name(cluster.directory),
        "state": "stopped" if state is None else "running",
        "server": None if state is None else state["url"],
        "pid": None if state is None else state["pid"],
        "upS": None if state is None else round(time.time() - state["started"]),
        "directory": str(cluster.directory.absolute()),
        "kubeconfig": str(cluster.kubeconfig.absolute()),
    }


def _age(seconds: int | None) -> str:
    from situate.cli.output.text import age

    return "-" if seconds is None else age(seconds)
