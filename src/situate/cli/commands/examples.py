"""`situate examples`: copies the examples of the documentation to a directory, so that its commands work there."""

import shutil
from pathlib import Path
from typing import Final

import click

from situate.cli import BadInput
from situate.cli.output.text import plural

PACKAGED: Final = Path(__file__).parents[2] / "examples"
"""Where the wheel has them."""
IN_A_CHECKOUT: Final = Path(__file__).parents[4] / "examples"


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default="examples")
def examples(directory: Path) -> None:
    """Copy the examples of the documentation to DIRECTORY (default: examples).

    The pages show commands such as `situate plan fit web-6d4f-0 -f examples/plan/cluster.yaml`: run them from the
    directory that contains it.
    """
    source = PACKAGED if PACKAGED.is_dir() else IN_A_CHECKOUT
    if not source.is_dir():
        raise BadInput("this installation has no examples")
    if directory.exists():
        raise BadInput(f"{directory} exists: name another directory")
    shutil.copytree(source, directory, ignore=shutil.ignore_patterns("__pycache__"))
    files = sum(path.is_file() for path in directory.rglob("*"))
    click.echo(f"copied {plural(files, 'file')} to {directory}")
