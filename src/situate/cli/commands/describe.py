"""`situate describe`: one object in detail: its fields, its placement and its events."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from situate.cli.cluster.connection import Client, with_client
from situate.cli.cluster.discovery import ApiResource, ApiResources, read_resources, split_names
from situate.cli.cluster.objects import get_object, list_objects, unless_refused
from situate.cli.options import cluster_options, namespace_option
from situate.cli.output.text import columns

INDENT: Final = "  "
HIDDEN: Final = ("managedFields", "name", "namespace", "labels", "annotations", "creationTimestamp", "resourceVersion")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@click.command()
@click.argument("resource")
@click.argument("names", nargs=-1)
@namespace_option
@cluster_options
def describe(
    resource: str, names: tuple[str, ...], namespace: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """Describe objects: RESOURCE NAME..., or RESOURCE/NAME; without a name, all in the namespace."""

    async def work(client: Client) -> None:
        word, named = split_names(resource, names)
        resources = await read_resources(client)
        kind = resources.find(word)
        space = namespace or client.access.namespace
        if not named:
            named = [item["metadata"]["name"] for item in await list_objects(client, kind.path(space))]
        for number, name in enumerate(named):
            if number:
                click.echo("\n")
            click.echo("\n".join(await _described(client, resources, kind, space, name)))

    with_client(kubeconfig, context, work)


async def _described(
    client: Client, resources: ApiResources, resource: ApiResource, space: str, name: str
) -> list[str]:
    found = await get_object(client, resource.path(space, name))
    lines = list(_object_lines(found, resource))
    if resource.kind == "Pod":
        lines += await _placement(client, resources, space, name)
    return lines + await _events(client, found)


async def _placement(client: Client, resources: ApiResources, space: str, name: str) -> list[str]:
    """The pod's PlacementDecision, which only situate's own server has."""
    for one in resources.all:
        if (one.group, one.plural) == ("situate.dev", "placementdecisions"):
            decision = await unless_refused(get_object(client, one.path(space, name)), {})
            if decision:
                return ["Placement:", *_lines({**decision.get("spec", {}), **decision.get("status", {})}, 1)]
    return []


def _object_lines(found: Mapping[str, Any], resource: ApiResource) -> Iterator[str]:
    meta = found["metadata"]
    yield f"Name:         {meta['name']}"
    if resource.namespaced:
        yield f"Namespace:    {meta.get('namespace', '')}"
    yield f"Kind:         {resource.kind} ({resource.api_version})"
    yield f"Created:      {meta.get('creationTimestamp', '')}"
    for title, values in (("Labels", meta.get("labels")), ("Annotations", meta.get("annotations"))):
        shown = [f"{key}={value}" for key, value in (values or {}).items() if key != LAST_APPLIED] or ["<none>"]
        yield f"{title + ':':<14}{shown[0]}"
        for more in shown[1:]:
            yield f"{'':<14}{more}"
    rest = {key: value for key, value in meta.items() if key not in HIDDEN}
    if rest:
        yield "Metadata:"
        yield from _lines(rest, 1)
    for key, value in found.items():
        if key in ("apiVersion", "kind", "metadata") or value in ({}, [], None):
            continue
        yield f"{_title(key)}:{'' if isinstance(value, dict | list) else f' {value}'}"
        if isinstance(value, dict | list):
            yield from _lines(value, 1)


def _title(key: str) -> str:
    """`podIPs` becomes `Pod IPs`."""
    words = "".join(
        f" {char}" if char.isupper() and not key[max(0, at - 1)].isupper() else char for at, char in enumerate(key)
    )
    return words[:1].upper() + words[1:]


def _lines(value: Any, depth: int) -> Iterator[str]:
    pad = INDENT * depth
    if isinstance(value, list):
        for item in value:
            if not isinstance(item, dict | list):
                yield f"{pad}- {item}"
                continue
            first = True
            for line in _lines(item, depth + 1):
                yield f"{pad}- {line[len(pad) + len(INDENT) :]}" if first else line
                first = False
        return
    for key, inner in value.items():
        if isinstance(inner, dict | list):
            if inner:
                yield f"{pad}{_title(key)}:"
                yield from _lines(inner, depth + 1)
        else:
            yield f"{pad}{_title(key)}: {inner}"


async def _events(client: Client, found: Mapping[str, Any]) -> list[str]:
    meta = found["metadata"]
    selector = f"involvedObject.name={meta['name']},involvedObject.uid={meta.get('uid', '')}"
    space = meta.get("namespace")
    path = f"/api/v1/namespaces/{space}/events" if space else "/api/v1/events"
    items = sorted(await list_objects(client, path, {"fieldSelector": selector}), key=_when)
    if not items:
        return ["Events: <none>"]
    rows = [[_when(one), one.get("type", ""), one.get("reason", ""), _who(one), _message(one)] for one in items]
    table = columns(["LAST SEEN", "TYPE", "REASON", "FROM", "MESSAGE"], rows, gap=3)
    return ["Events:", *(f"{INDENT}{line}" for line in table)]


def _when(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def _who(event: Mapping[str, Any]) -> str:
    return str(event.get("reportingComponent") or event.get("source", {}).get("component", ""))


def _message(event: Mapping[str, Any]) -> str:
    count = event.get("count") or event.get("series", {}).get("count") or 1
    text = str(event.get("message", ""))
    return f"{text} (x{count})" if count > 1 else text
