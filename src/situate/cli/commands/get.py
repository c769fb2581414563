"""`situate get`: show objects of a cluster, as `kubectl get` does, where kubectl is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from situate.cli.cluster.connection import cluster_options, with_client

if TYPE_CHECKING:
    from situate.cli.cluster.discovery import Catalogue, Entry
    from situate.kube.client import Client

AS_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
GAP: Final = 3
WATCH_IDLE_S: Final = 3_900.0
"""A watch is quiet for as long as nothing happens; the server ends it within an hour."""


@click.command()
@click.argument("resource", required=False)
@click.argument("names", nargs=-1)
@click.option("-n", "--namespace", metavar="NAME", help="In this namespace; default: that of the kubeconfig.")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-l", "--selector", metavar="LABELS", help="Only objects with these labels: app=web,tier!=db.")
@click.option("--field-selector", metavar="FIELDS", help="Only objects with these fields: spec.nodeName=node-1.")
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml", "name"]), help="How to show them.")
@click.option("-w", "--watch", is_flag=True, help="Go on showing what changes.")
@cluster_options
def get(
    resource: str | None,
    names: tuple[str, ...],
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None,
    field_selector: str | None,
    output: str | None,
    watch: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Show objects. RESOURCE is pods, deploy, all, pod/NAME and the like; without it, what there is to ask for."""
    params = {key: value for key, value in (("labelSelector", selector), ("fieldSelector", field_selector)) if value}
    if watch and (output not in (None, "wide") or names):
        raise click.UsageError("--watch shows a table of one resource")

    async def work(client: Client) -> None:
        from situate.cli.cluster.discovery import read_catalogue

        catalogue = await read_catalogue(client)
        if resource is None:
            _show_catalogue(catalogue)
            return
        said, _, name = resource.partition("/")
        asked = [*([name] if name else []), *names]
        space = "" if all_namespaces else namespace or client.access.namespace
        entries = catalogue.find_all(said)
        if watch:
            await _watch(client, entries, space, params, wide=output == "wide")
        elif output in ("json", "yaml", "name"):
            _show_objects(
                await _objects(client, entries, space, asked, params), catalogue, output, single=len(asked) == 1
            )
        else:
            await _show_tables(client, entries, space, asked, params, wide=output == "wide")

    with_client(kubeconfig, context, work)


def _show_catalogue(catalogue: Catalogue) -> None:
    rows = [
        [entry.plural, ",".join(entry.short_names), entry.api_version, str(entry.namespaced).lower(), entry.kind]
        for entry in catalogue.entries
        if "list" in entry.verbs
    ]
    click.echo(columns(["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"], rows))


# -- tables ----------------------------------------------------------------------------------------------------------


async def _show_tables(
    client: Client, entries: Sequence[Entry], space: str, names: Sequence[str], params: Mapping[str, str], *, wide: bool
) -> None:
    shown = 0
    for entry in entries:
        if "list" not in entry.verbs:
            continue
        paths = [entry.path(space, name) for name in names] or [entry.path(space)]
        tables = [
            msgspec.json.decode(await client.request("GET", path, params=params, accept=AS_TABLE)) for path in paths
        ]
        rows = [row for table in tables for row in table.get("rows") or ()]
        if not rows:
            continue
        if shown:
            click.echo()
        shown += len(rows)
        click.echo(_table(tables[0], rows, entry, space, wide=wide, prefixed=len(entries) > 1))
    if not shown:
        where = f" in {space} namespace" if space and any(entry.namespaced for entry in entries) else ""
        click.echo(f"No resources found{where}.", err=True)


def _table(
    table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], entry: Entry, space: str, *, wide: bool, prefixed: bool
) -> str:
    definitions = table["columnDefinitions"]
    kept = [number for number, one in enumerate(definitions) if wide or not one.get("priority")]
    headings = [definitions[number]["name"].upper() for number in kept]
    lines = [_cells(row, kept, entry, prefixed=prefixed) for row in rows]
    if entry.namespaced and not space:
        headings.insert(0, "NAMESPACE")
        for line, row in zip(lines, rows, strict=True):
            line.insert(0, row["object"]["metadata"]["namespace"])
    return columns(headings, lines)


def _cells(row: Mapping[str, Any], kept: Sequence[int], entry: Entry, *, prefixed: bool) -> list[str]:
    cells = [_text(row["cells"][number]) for number in kept]
    if prefixed:
        cells[0] = entry.named(cells[0])
    return cells


def _text(cell: object) -> str:
    if cell is None:
        return "<none>"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text in columns, each as wide as its widest cell."""
    lines = [list(headings), *(list(row) for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(headings))]
    gap = " " * GAP
    return "\n".join(
        gap.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


async def _watch(
    client: Client, entries: Sequence[Entry], space: str, params: Mapping[str, str], *, wide: bool
) -> None:
    if len(entries) != 1:
        raise click.UsageError("--watch is for one resource")
    entry, asked = entries[0], {**params, "watch": "true"}
    definitions: list[Mapping[str, Any]] = []
    async with client.stream(entry.path(space), params=asked, accept=AS_TABLE, idle_s=WATCH_IDLE_S) as lines:
        async for line in lines:
            event = msgspec.json.decode(line)
            if event["type"] == "ERROR":
                raise click.ClickException(event["object"].get("message", "the watch failed"))
            if event["type"] == "BOOKMARK":
                continue
            table = event["object"]
            begins = not definitions
            definitions = table.get("columnDefinitions") or definitions
            text = _table({"columnDefinitions": definitions}, table["rows"], entry, space, wide=wide, prefixed=False)
            click.echo(text if begins else text.split("\n", 1)[1])


# -- objects ---------------------------------------------------------------------------------------------------------


async def _objects(
    client: Client, entries: Sequence[Entry], space: str, names: Sequence[str], params: Mapping[str, str]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for entry in entries:
        if names:
            found += [
                msgspec.json.decode(await client.request("GET", entry.path(space, name), params=params))
                for name in names
            ]
        elif "list" in entry.verbs:
            listed = msgspec.json.decode(await client.request("GET", entry.path(space), params=params))
            for item in listed.get("items") or ():
                found.append({"apiVersion": entry.api_version, "kind": entry.kind, **item})
    return found


def _show_objects(found: Sequence[dict[str, Any]], catalogue: Catalogue, output: str, *, single: bool) -> None:
    if output == "name":
        for one in found:
            click.echo(catalogue.of_object(one).named(one["metadata"]["name"]))
        return
    shown: object = (
        found[0] if single and found else {"apiVersion": "v1", "kind": "List", "items": list(found), "metadata": {}}
    )
    click.echo(as_text(shown, output))


def as_text(shown: object, output: str) -> str:
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
