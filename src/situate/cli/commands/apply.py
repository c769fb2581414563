"""`situate apply`: make a cluster's objects as files say, by server-side apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from situate.cli.cluster.connection import cluster_options, with_client

if TYPE_CHECKING:
    from situate.cli.cluster.discovery import Entry
    from situate.kube.client import Client

APPLY: Final = "application/apply-patch+yaml"
MANAGER: Final = "situate"


@click.command()
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, metavar="FILE", help="A file, a directory, or -."
)
@click.option("-n", "--namespace", metavar="NAME", help="For objects that name none; default: that of the kubeconfig.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others manage.")
@click.option("--dry-run", is_flag=True, help="Have the server check everything, and change nothing.")
@cluster_options
def apply(
    files: tuple[str, ...],
    namespace: str | None,
    force_conflicts: bool,
    dry_run: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Create or change objects as FILEs say. All files are read before anything is changed."""
    from situate.cli.input.manifests import read_manifests

    manifests = read_manifests(files)
    params = {
        "fieldManager": MANAGER,
        "fieldValidation": "Strict",
        "force": str(force_conflicts).lower(),
        **({"dryRun": "All"} if dry_run else {}),
    }

    async def work(client: Client) -> None:
        from situate.cli.cluster.discovery import read_catalogue

        catalogue = await read_catalogue(client)
        found = [(catalogue.of_object(body, file), file, body) for file, body in manifests]
        for entry, file, body in found:
            name = _name(body, file)
            space = body.get("metadata", {}).get("namespace") or namespace or client.access.namespace
            before = await _version(client, entry, space, name)
            answer = await client.request(
                "PATCH",
                entry.path(space, name),
                params=params,
                body=msgspec.json.encode(body),
                content_type=APPLY,
            )
            after = msgspec.json.decode(answer)["metadata"].get("resourceVersion")
            what = "created" if before is None else "unchanged" if before == after else "configured"
            click.echo(f"{entry.named(name)} {what}{' (server dry run)' if dry_run else ''}")

    with_client(kubeconfig, context, work)


def _name(body: dict[str, Any], file: str) -> str:
    from situate.wire.errors import InputError

    meta = body.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        raise InputError(
            "metadata.name: an object that is applied needs a name", file=file, subject=str(body.get("kind"))
        )
    return name


async def _version(client: Client, entry: Entry, space: str, name: str) -> str | None:
    from situate.kube.errors import ApiError

    try:
        found = msgspec.json.decode(await client.request("GET", entry.path(space, name)))
    except ApiError as error:
        if error.not_found:
            return None
        raise
    version: str = found["metadata"]["resourceVersion"]
    return version
