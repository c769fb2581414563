"""`situate restore`: restores a cluster from a backup, whole or not at all."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from situate.cli.commands.server import etcd_flags, etcd_options
from situate.cli.options import own_cluster_option
from situate.wire.errors import InputError


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@own_cluster_option("Where the cluster keeps its state.")
@click.option("--store", "where", default="", metavar="WHERE", help="An empty prefix of etcd: etcd://host:port/prefix.")
@etcd_options
@click.option(
    "--force", is_flag=True, help="Replace newer data, or another cluster. The old files are kept in the directory."
)
def restore(file: Path, directory: Path, where: str, force: bool, **etcd: Path | None) -> None:
    """Restore a cluster from FILE, which `situate backup` wrote. No server may be running there.

    It refuses to replace newer data, or another cluster. Every object gets a new version, so that clients list again.
    """
    from situate.store.errors import StoreError

    try:
        text = _into_etcd(file, where, etcd) if where else _into_directory(file, directory, force=force)
    except StoreError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{error.filename or directory} cannot be written: {error.strerror}") from None
    click.echo(text)


def _into_directory(file: Path, directory: Path, *, force: bool) -> str:
    from situate.cli.control_plane.backups import restore_directory

    header, end, revision = restore_directory(directory, file, force=force)
    return (
        f"{directory} has the {end.entries} objects of revision {header.revision}, at revision {revision};"
        " `situate up` starts it."
    )


def _into_etcd(file: Path, where: str, etcd: dict[str, Path | None]) -> str:
    from situate.store.backup import BackupEntry, open_backup, verify_backup
    from situate.store.etcd.snapshot import fill_etcd
    from situate.store.open import etcd_settings

    settings = etcd_settings(where, etcd_flags({**etcd, "store": where}))
    header, end = verify_backup(file)
    with open_backup(file) as (_, parts):

        def entries() -> Iterator[BackupEntry]:
            yield from (part for part in parts if isinstance(part, BackupEntry))

        revision = asyncio.run(fill_etcd(settings, header.identity, entries()))
    return f"{where} has the {end.entries} objects of revision {header.revision}, at revision {revision} of etcd."
