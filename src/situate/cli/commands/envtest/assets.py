"""`situate envtest assets`: a directory for KUBEBUILDER_ASSETS."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

import click

PROGRAMS: Final = ("kube-apiserver", "etcd")
KUBECTL: Final = "kubectl"
SCRIPT: Final = """#!/bin/sh
# Written by `situate envtest assets`.
exec {python} -m situate envtest {program} "$@"
"""


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def assets(directory: Path) -> None:
    """Write kube-apiserver and etcd into DIRECTORY, and a link to kubectl if there is one on the path.

    They run this installation of situate. What was in their places is replaced.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        _replace(directory / program, SCRIPT.format(python=shlex.quote(sys.executable), program=program))
    kubectl = shutil.which(KUBECTL)
    link = directory / KUBECTL
    if kubectl is not None and not link.exists():
        link.unlink(missing_ok=True)
        link.symlink_to(Path(kubectl).absolute())
    if not link.exists():
        click.echo("There is no kubectl on the path; tests that run it will fail.", err=True)
    click.echo(f"export KUBEBUILDER_ASSETS={shlex.quote(str(directory.absolute()))}")


def _replace(path: Path, text: str) -> None:
    """As a whole: a test may start the program meanwhile."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text)
    new.chmod(0o755)
    new.replace(path)
