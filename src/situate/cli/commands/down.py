"""`situate down`: stop the cluster of a directory, and keep or delete what it stored."""

import os
import shutil
import signal
import time
from pathlib import Path
from typing import Final

import click

from situate.cli.cluster.local import context_name, has_cluster
from situate.cli.cluster.merged_kubeconfig import remove_context
from situate.cli.control_plane.homes import homes_beside, shared_homes, volumes_beside
from situate.cli.control_plane.state import read_state, stranger
from situate.cli.options import own_cluster_option

STOP_S: Final = 20.0
POLL_S: Final = 0.05


@click.command()
@own_cluster_option("Where the cluster keeps its state.", "--name")
@click.option("--delete", is_flag=True, help="Delete the directory, too: all objects, keys and logs.")
def down(directory: Path, delete: bool) -> None:
    """Stop the cluster that `situate up` started here. The next `up` finds all objects again."""
    found = read_state(directory)
    if found is None and not (delete and directory.is_dir()):
        click.echo(f"No cluster is up in {directory}{_instead(directory)}.")
        return
    if found is not None:
        _stop(directory, found["pid"])
        click.echo(f"The cluster at {found['url']} is down.")
    if delete:
        if not has_cluster(directory):
            raise click.ClickException(f"{directory} does not contain a cluster; it is not deleted")
        shutil.rmtree(directory)
        for one in (homes_beside(directory), shared_homes(directory)):
            shutil.rmtree(one, ignore_errors=True)
            shutil.rmtree(volumes_beside(one), ignore_errors=True)
        click.echo(f"{directory} is deleted.")
        cleaned = remove_context(context_name(directory), directory)
        if cleaned is not None:
            click.echo(f"The context {context_name(directory)} is removed from {cleaned}.")


def _instead(directory: Path) -> str:
    """Describe the process that now has the pid of a killed server. It is not ours to stop."""
    pid = stranger(directory)
    return "" if pid is None else f": process {pid}, which its server.json names, is another program; it was left alone"


def _stop(directory: Path, pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise click.ClickException(
            f"the cluster's process {pid} belongs to another user; stop it as that user"
        ) from None
    deadline = time.monotonic() + STOP_S
    while time.monotonic() < deadline:
        if _has_ended(pid):
            return
        time.sleep(POLL_S)
    found = read_state(directory)
    if _has_ended(pid) or (found is not None and found["pid"] != pid) or stranger(directory) == pid:
        return
    os.kill(pid, signal.SIGKILL)
    click.echo(
        f"Process {pid} did not stop within {STOP_S:.0f} s, and was killed. Nothing acknowledged is lost.", err=True
    )


def _has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Ended, but not yet reaped by its parent, which under a test is us."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False
