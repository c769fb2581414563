"""`situate apply`: create or update the objects in files, by server-side apply."""

from typing import Any, Final

import click
import msgspec

from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.discovery import read_resources
from situate.cli.cluster.objects import get_object, unless_refused
from situate.cli.commands.get import show_objects
from situate.cli.input.manifests import read_manifests
from situate.cli.options import cluster_options, output_option
from situate.cli.output.formats import WIDE, for_people

APPLY: Final = "application/apply-patch+yaml"
MANAGER: Final = "situate"


@click.command()
@click.option(
    "-f", "--filename", "files", multiple=True, required=True, metavar="FILE", help="A file, a directory, or -."
)
@click.option("-n", "--namespace", metavar="NAME", help="For objects without one; default: the kubeconfig's.")
@click.option("--force-conflicts", is_flag=True, help="Take over fields that others manage.")
@click.option("--dry-run", is_flag=True, help="Let the server check everything, and change nothing.")
@output_option(without=(WIDE,))
@cluster_options
def apply(
    files: tuple[str, ...],
    namespace: str | None,
    force_conflicts: bool,
    dry_run: bool,
    output: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Create or update the objects in FILEs. All files are read before anything is changed."""
    manifests = read_manifests(files)
    params = {
        "fieldManager": MANAGER,
        "fieldValidation": "Strict",
        "force": str(force_conflicts).lower(),
        **({"dryRun": "All"} if dry_run else {}),
    }

    async def work(client: Client) -> None:
        resources = await read_resources(client)
        applied: list[dict[str, Any]] = []
        targets = [(resources.of_object(one.body, one.file), one) for one in manifests]
        for resource, manifest in targets:
            name = manifest.required_name()
            path = resource.path(manifest.namespace or namespace or client.access.namespace, name)
            before = await unless_refused(get_object(client, path), {}, forbidden=False)
            body = msgspec.json.encode(manifest.body)
            response = await client.request("PATCH", path, params=params, body=body, content_type=APPLY)
            after = msgspec.json.decode(response)
            applied.append(after)
            same = before and before["metadata"]["resourceVersion"] == after["metadata"].get("resourceVersion")
            what = "created" if not before else "unchanged" if same else "configured"
            if for_people(output):
                click.echo(f"{resource.named(name)} {what}{' (server dry run)' if dry_run else ''}")
        if not for_people(output):
            show_objects(applied, resources, output, single=len(targets) == 1)

    with_client(kubeconfig, context, work, changes=not dry_run)
