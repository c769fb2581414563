"""`situate clusters`: the clusters of `situate up` on this machine, running or stopped."""

import time
from typing import Any, Final

import click

from situate.cli.cluster.local import LocalCluster, context_name, local_clusters
from situate.cli.options import output_option
from situate.cli.output.text import columns, dump, echo_lines

GAP: Final = 3
HEADINGS: Final = ("NAME", "STATE", "SERVER", "AGE", "DIRECTORY")


@click.command()
@output_option("table", "json")
def clusters(output: str) -> None:
    """Show the clusters on this machine: the one in this directory, and all that have a name."""
    found = [_values(one) for one in local_clusters()]
    if output == "json":
        click.echo(dump(found, output), nl=False)
        return
    if not found:
        click.echo("No clusters found. `situate up` starts one.", err=True)
        return
    rows = [
        (one["name"] or "<none>", one["state"], one["server"] or "-", _age(one["upS"]), one["directory"])
        for one in found
    ]
    echo_lines(columns(HEADINGS, rows, gap=GAP))


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
