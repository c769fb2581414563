"""`situate backup`: writes a whole cluster at one revision to one file, while it runs."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from situate.cli.commands.server import etcd_flags, etcd_options
from situate.cli.options import own_cluster_option
from situate.wire.errors import InputError

if TYPE_CHECKING:
    from situate.store.backup import BackupEnd, BackupHeader


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@own_cluster_option("Where the cluster keeps its state.")
@click.option(
    "--store", "where", default="", metavar="WHERE", help="The store, if it is in etcd: etcd://host:port/prefix."
)
@etcd_options
@click.option("--verify", is_flag=True, help="Write nothing: check that FILE is a whole backup.")
def backup(file: Path, directory: Path, where: str, verify: bool, **etcd: Path | None) -> None:
    """Back up a whole cluster to FILE: objects at one revision, keys, users. The cluster may be running.

    FILE has secrets and keys; only its owner can read it.
    """
    from situate.store.backup import verify_backup
    from situate.store.errors import StoreError

    try:
        header, end = verify_backup(file) if verify else _backed_up(directory, where, file, etcd)
    except StoreError as error:
        raise InputError(str(error)) from None
    click.echo(
        f"{file} has {end.entries} objects at revision {header.revision} and {end.files} files,"
        f" of {header.created}; it is verified."
    )


def _backed_up(
    directory: Path, where: str, file: Path, etcd: dict[str, Path | None]
) -> "tuple[BackupHeader, BackupEnd]":
    from situate.cli.control_plane.backups import back_up_directory, files_of, new_header
    from situate.store.backup import write_backup
    from situate.store.open import etcd_settings

    if not where:
        return back_up_directory(directory, file)
    from situate.store.etcd.snapshot import etcd_snapshot

    marker, revision, entries = asyncio.run(etcd_snapshot(etcd_settings(where, etcd_flags({**etcd, "store": where}))))
    header = new_header(marker.format, marker.identity, revision)
    return header, write_backup(file, header, entries, files_of(directory))
