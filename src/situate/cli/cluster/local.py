"""The clusters of `situate up` on this machine: what each is called, and where it keeps its files.

A cluster without a name lives in `.situate` of the directory in which it was started. A cluster with a name lives below
the user's data directory, and is found from everywhere.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from situate.cli.control_plane.state import read_state

HERE: Final = Path(".situate")
"""Where `situate up` keeps a cluster without a name."""
KUBECONFIG: Final = "kubeconfig"
CONTEXT: Final = "situate"
OWN_FILES: Final = ("store.db", "pki", KUBECONFIG, "server.log")
"""A directory without any of these has no cluster."""
PODS: Final = "-pods"
"""The files of a cluster's containers are beside it, in a directory whose name ends like this."""
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """A cluster on this machine, running or stopped."""

    directory: Path
    state: dict[str, Any] | None
    """What its server wrote about itself; None: it does not run."""

    @property
    def name(self) -> str:
        """Empty for a cluster that is known by its directory."""
        return self.directory.name if is_named(self.directory) else ""

    @property
    def kubeconfig(self) -> Path:
        return self.directory / KUBECONFIG

    @property
    def option(self) -> str:
        """What chooses it: `--cluster dev`."""
        return f"--cluster {self.name or self.directory}"


def clusters_home() -> Path:
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "situate" / "clusters"


def is_named(directory: Path) -> bool:
    return directory.absolute().parent == clusters_home()


def named_directory(name: str) -> Path:
    """Raises BadParameter."""
    if _NAME.fullmatch(name) is None or name.endswith(PODS):
        raise click.BadParameter(
            f"{name[:60]!r} is not a name: up to 40 lowercase letters, digits and dashes, not ending in {PODS}"
        )
    return clusters_home() / name


def find_directory(word: str) -> Path:
    """The directory of `dev`, or of `./path`. Raises BadParameter."""
    return Path(word) if os.sep in word or word.startswith(".") else named_directory(word)


def context_name(directory: Path) -> str:
    """`situate-dev`, or `situate` for a cluster without a name."""
    return f"{CONTEXT}-{directory.name}" if is_named(directory) else CONTEXT


def local_clusters() -> list[LocalCluster]:
    """The one in this directory, and all that have a name."""
    home = clusters_home()
    named = sorted(home.iterdir()) if home.is_dir() else []
    found = [HERE, *(path for path in named if not path.name.endswith(PODS))]
    return [LocalCluster(path, read_state(path)) for path in found if has_cluster(path)]


def has_cluster(directory: Path) -> bool:
    return any((directory / name).exists() for name in OWN_FILES)


def running_clusters() -> list[LocalCluster]:
    return [one for one in local_clusters() if one.state is not None]


def require_running(directory: Path) -> LocalCluster:
    """Raises ClickException."""
    state = read_state(directory)
    if state is None:
        word = f"cluster {directory.name} is not up" if is_named(directory) else f"no cluster is up in {directory}"
        start = f"--name {directory.name}" if is_named(directory) else f"--dir {directory}"
        raise click.ClickException(f"{word}; `situate up{'' if directory == HERE else f' {start}'}` starts it")
    return LocalCluster(directory, state)
