"""`situate delete`: delete objects of a cluster, and wait until they are gone."""

import asyncio
import time
from typing import Any, Final

import click
import msgspec

from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.discovery import ApiResource, read_resources, split_names
from situate.cli.cluster.objects import list_objects
from situate.cli.input.manifests import read_manifests
from situate.cli.options import cluster_options, namespace_option, output_option
from situate.cli.output.formats import JSONPATH, NAME, WIDE
from situate.kube.errors import ApiError

POLL_S: Final = 0.2
WAIT_S: Final = 120.0


@click.command()
@click.argument("resource", required=False)
@click.argument("names", nargs=-1)
@click.option(
    "-f", "--filename", "files", multiple=True, metavar="FILE", help="The objects of a file, a directory, or -."
)
@namespace_option
@click.option("-l", "--selector", metavar="LABELS", help="All objects of RESOURCE with these labels.")
@click.option("--all", "everything", is_flag=True, help="All objects of RESOURCE in the namespace.")
@click.option(
    "--grace-period",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="How long pods may take to terminate; default: their own grace periods.",
)
@click.option("--ignore-not-found", is_flag=True, help="Do not fail on objects that do not exist.")
@click.option("--wait/--no-wait", default=True, help="Wait until they are gone, for two minutes at most.")
@output_option(without=(WIDE, "json", "yaml", JSONPATH))
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
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Delete objects: RESOURCE NAME..., RESOURCE/NAME, or those of FILEs."""
    word, named = split_names(resource or "", names)
    if bool(files) == bool(resource) or (resource and sum((bool(named), bool(selector), everything)) != 1):
        raise click.UsageError("say what to delete: RESOURCE and names, RESOURCE with -l or --all, or -f FILE")

    async def work(client: Client) -> None:
        resources = await read_resources(client)
        space = namespace or client.access.namespace
        if files:
            found = [
                (resources.of_object(one.body, one.file), one.namespace or space, one.required_name())
                for one in reversed(read_manifests(files))
            ]
        else:
            kind = resources.find(word)
            if not named:
                params = {"labelSelector": selector} if selector else None
                named.extend(item["metadata"]["name"] for item in await list_objects(client, kind.path(space), params))
            found = [(kind, space, name) for name in named]
        deleted = []
        for one in found:
            if await _delete(client, *one, grace_period, ignore_not_found=ignore_not_found):
                deleted.append(one)
                click.echo(_said(one[0].named(one[2]), output))
        if wait:
            await _until_gone(client, deleted)

    with_client(kubeconfig, context, work, changes=True)


def _said(named: str, output: str) -> str:
    """Of an object named as `pod/web-0`."""
    kind, _, name = named.partition("/")
    return named if output == NAME else f'{kind} "{name}" deleted'


async def _delete(
    client: Client, resource: ApiResource, space: str, name: str, grace_period: int | None, *, ignore_not_found: bool
) -> bool:
    options: dict[str, Any] = {"propagationPolicy": "Background"}
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    try:
        await client.request("DELETE", resource.path(space, name), body=msgspec.json.encode(options))
    except ApiError as error:
        if not (error.not_found and ignore_not_found):
            raise
        return False
    return True


async def _until_gone(client: Client, deleted: list[tuple[ApiResource, str, str]]) -> None:
    deadline = time.monotonic() + WAIT_S
    for resource, space, name in deleted:
        while time.monotonic() < deadline:
            try:
                await client.request("GET", resource.path(space, name))
            except ApiError as error:
                if error.not_found:
                    break
                raise
            await asyncio.sleep(POLL_S)
        else:
            raise click.ClickException(
                f"{resource.named(name)} still exists after {WAIT_S:.0f} s; it may have finalizers"
            )
