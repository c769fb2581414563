"""`situate get`: show objects of a cluster, as `kubectl get` does, where kubectl is not installed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click
import msgspec

from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.discovery import ApiResource, ApiResources, read_resources, split_names
from situate.cli.cluster.objects import get_object, list_objects
from situate.cli.options import cluster_options, namespace_option, output_option
from situate.cli.output.formats import NAME, PREFIX, WIDE, dump, for_people
from situate.cli.output.text import columns, show

AS_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
GAP: Final = 3
WATCH_IDLE_S: Final = 3_900.0
"""A watch is silent while nothing happens; the server ends it within an hour."""


@click.command()
@click.argument("resource", required=False)
@click.argument("names", nargs=-1)
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-l", "--selector", metavar="LABELS", help="Only objects with these labels: app=web,tier!=db.")
@click.option("--field-selector", metavar="FIELDS", help="Only objects with these fields: spec.nodeName=node-1.")
@output_option()
@click.option("-w", "--watch", is_flag=True, help="Keep watching, and show what changes.")
@cluster_options
def get(
    resource: str | None,
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None,
    field_selector: str | None,
    output: str,
    watch: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Show objects. RESOURCE is pods, deploy, all, pod/NAME and the like; without it, list the resources."""
    params = {key: value for key, value in (("labelSelector", selector), ("fieldSelector", field_selector)) if value}
    if watch and (not for_people(output) or names):
        raise click.UsageError("--watch shows a table of one resource")

    async def work(client: Client) -> None:
        resources = await read_resources(client)
        if resource is None:
            _show_resources(resources, output)
            return
        word, named = split_names(resource, names)
        space = "" if all_namespaces else namespace or client.access.namespace
        kinds = resources.find_all(word)
        if watch:
            await _watch(client, kinds, space, params, wide=output == WIDE)
        elif not for_people(output):
            found = await _objects(client, kinds, space, named, params)
            show_objects(found, resources, output, single=len(named) == 1)
        else:
            await _show_tables(client, kinds, space, named, params, wide=output == WIDE)

    with_client(kubeconfig, context, work)


def _show_resources(resources: ApiResources, output: str) -> None:
    listed = [one for one in resources.all if "list" in one.verbs]
    rows = [
        [one.plural, ",".join(one.short_names), one.api_version, str(one.namespaced).lower(), one.kind]
        for one in listed
    ]
    values = [
        {
            "name": one.plural,
            "shortNames": list(one.short_names),
            "apiVersion": one.api_version,
            "namespaced": one.namespaced,
            "kind": one.kind,
        }
        for one in listed
    ]
    lines = columns(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"], rows, gap=GAP)
    show(lines, values, [], output, [one.plural for one in listed])


async def _show_tables(
    client: Client,
    kinds: Sequence[ApiResource],
    space: str,
    names: Sequence[str],
    params: Mapping[str, str],
    *,
    wide: bool,
) -> None:
    shown = 0
    for kind in kinds:
        if "list" not in kind.verbs:
            continue
        paths = [kind.path(space, name) for name in names] or [kind.path(space)]
        tables = [
            msgspec.json.decode(await client.request("GET", path, params=params, accept=AS_TABLE)) for path in paths
        ]
        rows = [row for table in tables for row in table.get("rows") or ()]
        if not rows:
            continue
        if shown:
            click.echo()
        shown += len(rows)
        click.echo("\n".join(_table(tables[0], rows, kind, space, wide=wide, prefixed=len(kinds) > 1)))
    if not shown:
        where = f" in {space} namespace" if space and any(kind.namespaced for kind in kinds) else ""
        click.echo(f"No resources found{where}.", err=True)


def _table(
    table: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    kind: ApiResource,
    space: str,
    *,
    wide: bool,
    prefixed: bool,
) -> list[str]:
    definitions = table["columnDefinitions"]
    kept = [number for number, one in enumerate(definitions) if wide or not one.get("priority")]
    headings = [definitions[number]["name"].upper() for number in kept]
    lines = [[_text(row["cells"][number]) for number in kept] for row in rows]
    if prefixed:
        lines = [[kind.named(name), *rest] for name, *rest in lines]
    if kind.namespaced and not space:
        headings.insert(0, "NAMESPACE")
        for line, row in zip(lines, rows, strict=True):
            line.insert(0, row["object"]["metadata"]["namespace"])
    return columns(headings, lines, gap=GAP)


def _text(cell: object) -> str:
    if cell is None:
        return "<none>"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


async def _watch(
    client: Client, kinds: Sequence[ApiResource], space: str, params: Mapping[str, str], *, wide: bool
) -> None:
    if len(kinds) != 1:
        raise click.UsageError("--watch is for one resource")
    kind, asked = kinds[0], {**params, "watch": "true"}
    definitions: list[Mapping[str, Any]] = []
    async with client.stream(kind.path(space), params=asked, accept=AS_TABLE, idle_s=WATCH_IDLE_S) as lines:
        async for line in lines:
            event = msgspec.json.decode(line)
            if event["type"] == "ERROR":
                raise click.ClickException(event["object"].get("message", "the watch failed"))
            if event["type"] == "BOOKMARK":
                continue
            table = event["object"]
            begins = not definitions
            definitions = table.get("columnDefinitions") or definitions
            whole = {"columnDefinitions": definitions}
            shown = _table(whole, table["rows"], kind, space, wide=wide, prefixed=False)
            click.echo("\n".join(shown if begins else shown[1:]))


async def _objects(
    client: Client, kinds: Sequence[ApiResource], space: str, names: Sequence[str], params: Mapping[str, str]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for kind in kinds:
        if names:
            found += [await get_object(client, kind.path(space, name), params) for name in names]
        elif "list" in kind.verbs:
            items = await list_objects(client, kind.path(space), params)
            found += [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in items]
    return found


def show_objects(found: Sequence[dict[str, Any]], resources: ApiResources, output: str, *, single: bool) -> None:
    """Objects of an API server as names, JSON, YAML or by a template. `single`: one object, not a list."""
    if output == NAME:
        for one in found:
            click.echo(resources.of_object(one).named(one["metadata"]["name"]))
        return
    together = {"apiVersion": "v1", "kind": "List", "items": list(found), "metadata": {}}
    shown = found[0] if single and found else together
    if output.startswith(PREFIX):
        click.echo(dump(_without_managers(shown), output), nl=False)
    else:
        click.echo(_as_text(shown, output))


def _as_text(shown: object, output: str) -> str:
    """JSON or YAML as kubectl writes it: keys in order, managed fields left out."""
    plain = _without_managers(shown)
    if output == "json":
        import json

        return json.dumps(plain, indent=4, sort_keys=True)
    import yaml

    return str(yaml.safe_dump(plain, sort_keys=True, default_flow_style=False, allow_unicode=True)).rstrip("\n")


def _without_managers(shown: object) -> object:
    if isinstance(shown, dict) and "items" in shown:
        return {**shown, "items": [_without_managers(item) for item in shown["items"]]}
    if isinstance(shown, dict) and isinstance(shown.get("metadata"), dict):
        meta = {key: value for key, value in shown["metadata"].items() if key != "managedFields"}
        return {**shown, "metadata": meta}
    return shown
