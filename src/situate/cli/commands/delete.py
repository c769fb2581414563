"""`situate delete`: have objects of a cluster deleted, and wait until they are gone."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from situate.cli.cluster.connection import cluster_options, with_client

if TYPE_CHECKING:
    from situate.cli.cluster.discovery import Entry
    from situate.kube.client import Client

POLL_S: Final = 0.2
WAIT_S: Final = 120.0


@click.command()
@click.argument("resource", required=False)
@click.argument("names", nargs=-1)
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE", help="The objects of a file, a directory, or -."
)
@click.option("-n", "--namespace", metavar="NAME", help="In this namespace; default: that of the kubeconfig.")
@click.option("-l", "--selector", metavar="LABELS", help="All objects of RESOURCE with these labels.")
@click.option("--all", "everything", is_flag=True, help="All objects of RESOURCE in the namespace.")
@click.option("--grace-period", type=click.IntRange(0), metavar="SECONDS", help="Instead of the objects' own.")
@click.option("--ignore-not-found", is_flag=True, help="What is not there is no error.")
@click.option("--wait/--no-wait", default=True, help="Come back when they are gone (for at most two minutes).")
@cluster_options
def delete(
    resource: str | None,
    names: tuple[str, ...],
    files: tuple[str, ...],
    namespace: str | None,
    selector: str | None,
    everything: bool,
    grace_period: int | None,
    ignore_not_found: bool,
    wait: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Delete objects: RESOURCE NAME..., RESOURCE/NAME, or those of FILEs."""
    said, _, name = (resource or "").partition("/")
    asked = [*([name] if name else []), *names]
    if bool(files) == bool(resource) or (resource and sum((bool(asked), bool(selector), everything)) != 1):
        raise click.UsageError("say what to delete: RESOURCE and names, RESOURCE with -l or --all, or -f FILE")

    async def work(client: Client) -> None:
        from situate.cli.cluster.discovery import read_catalogue

        catalogue = await read_catalogue(client)
        space = namespace or client.access.namespace
        if files:
            from situate.cli.input.manifests import read_manifests

            found = [
                (catalogue.of_object(body, file), body["metadata"].get("namespace") or space, body["metadata"]["name"])
                for file, body in reversed(read_manifests(files))
            ]
        else:
            entry = catalogue.find(said)
            wanted = asked or await _listed(client, entry, space, selector)
            found = [(entry, space, one) for one in wanted]
        deleted = [one for one in found if await _delete(client, *one, grace_period, ignore_not_found=ignore_not_found)]
        if wait:
            await _until_gone(client, deleted)

    with_client(kubeconfig, context, work)


async def _listed(client: Client, entry: Entry, space: str, selector: str | None) -> list[str]:
    params = {"labelSelector": selector} if selector else {}
    listed = msgspec.json.decode(await client.request("GET", entry.path(space), params=params))
    return [item["metadata"]["name"] for item in listed.get("items") or ()]


async def _delete(
    client: Client, entry: Entry, space: str, name: str, grace_period: int | None, *, ignore_not_found: bool
) -> bool:
    from situate.kube.errors import ApiError

    options: dict[str, Any] = {"propagationPolicy": "Background"}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    try:
        await client.request("DELETE", entry.path(space, name), body=msgspec.json.encode(options))
    except ApiError as error:
        if not (error.not_found and ignore_not_found):
            raise
        return False
    kind, _, rest = entry.named(name).partition("/")
    click.echo(f'{kind} "{rest}" deleted')
    return True


async def _until_gone(client: Client, deleted: list[tuple[Entry, str, str]]) -> None:
    from situate.kube.errors import ApiError

    deadline = time.monotonic() + WAIT_S
    for entry, space, name in deleted:
        while time.monotonic() < deadline:
            try:
                await client.request("GET", entry.path(space, name))
            except ApiError as error:
                if error.not_found:
                    break
                raise
            await asyncio.sleep(POLL_S)
        else:
            raise click.ClickException(
                f"{entry.named(name)} is still there after {WAIT_S:.0f} s; it may have finalizers"
            )
