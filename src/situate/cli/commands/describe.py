"""`situate describe`: an object in words: what it is, how it stands, why it is where it is, what happened to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from situate.cli.cluster.connection import cluster_options, with_client
from situate.cli.commands.get import columns

if TYPE_CHECKING:
    from situate.cli.cluster.discovery import Catalogue, Entry
    from situate.kube.client import Client

INDENT: Final = "  "
HIDDEN: Final = ("managedFields", "name", "namespace", "labels", "annotations", "creationTimestamp", "resourceVersion")
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@click.command()
@click.argument("resource")
@click.argument("names", nargs=-1)
@click.option("-n", "--namespace", metavar="NAME", help="In this namespace; default: that of the kubeconfig.")
@cluster_options
def describe(
    resource: str, names: tuple[str, ...], namespace: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """Describe objects: RESOURCE NAME..., or RESOURCE/NAME; without a name, all in the namespace."""
    said, _, name = resource.partition("/")

    async def work(client: Client) -> None:
        from situate.cli.cluster.discovery import read_catalogue

        catalogue = await read_catalogue(client)
        entry = catalogue.find(said)
        space = namespace or client.access.namespace
        asked = [*([name] if name else []), *names]
        if not asked:
            listed = msgspec.json.decode(await client.request("GET", entry.path(space)))
            asked = [item["metadata"]["name"] for item in listed.get("items") or ()]
        for number, one in enumerate(asked):
            if number:
                click.echo("\n")
            click.echo("\n".join([line async for line in _described(client, catalogue, entry, space, one)]))

    with_client(kubeconfig, context, work)


async def _described(client: Client, catalogue: Catalogue, entry: Entry, space: str, name: str) -> Any:
    found = msgspec.json.decode(await client.request("GET", entry.path(space, name)))
    for line in _object_lines(found, entry):
        yield line
    if entry.kind == "Pod":
        decision = await _maybe(client, catalogue, "placementdecisions.situate.dev", space, name)
        if decision is not None:
            yield "Placement:"
            for line in _lines({**decision.get("spec", {}), **decision.get("status", {})}, 1):
                yield line
    for line in await _events(client, found):
        yield line


async def _maybe(client: Client, catalogue: Catalogue, said: str, space: str, name: str) -> dict[str, Any] | None:
    from situate.kube.errors import ApiError
    from situate.wire.errors import InputError

    try:
        found: dict[str, Any] = msgspec.json.decode(await client.request("GET", catalogue.find(said).path(space, name)))
    except InputError:
        return None
    except ApiError as error:
        if error.not_found or error.forbidden:
            return None
        raise
    return found


def _object_lines(found: Mapping[str, Any], entry: Entry) -> Iterator[str]:
    meta = found["metadata"]
    yield f"Name:         {meta['name']}"
    if entry.namespaced:
        yield f"Namespace:    {meta.get('namespace', '')}"
    yield f"Kind:         {entry.kind} ({entry.api_version})"
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
    """`podIPs` reads Pod IPs."""
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


async def _events(client: Client, found: Mapping[str, Any]) -> Sequence[str]:
    meta = found["metadata"]
    selector = f"involvedObject.name={meta['name']},involvedObject.uid={meta.get('uid', '')}"
    space = meta.get("namespace")
    path = f"/api/v1/namespaces/{space}/events" if space else "/api/v1/events"
    listed = msgspec.json.decode(await client.request("GET", path, params={"fieldSelector": selector}))
    items = sorted(listed.get("items") or (), key=_when)
    if not items:
        return ["Events: <none>"]
    rows = [[_when(one), one.get("type", ""), one.get("reason", ""), _who(one), _message(one)] for one in items]
    return [
        "Events:",
        *(f"{INDENT}{line}" for line in columns(["LAST SEEN", "TYPE", "REASON", "FROM", "MESSAGE"], rows).split("\n")),
    ]


def _when(event: Mapping[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def _who(event: Mapping[str, Any]) -> str:
    return str(event.get("reportingComponent") or event.get("source", {}).get("component", ""))


def _message(event: Mapping[str, Any]) -> str:
    count = event.get("count") or event.get("series", {}).get("count") or 1
    text = str(event.get("message", ""))
    return f"{text} (x{count})" if count > 1 else text
