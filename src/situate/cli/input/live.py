"""A live cluster, read through its API server. Needs no more than the right to list."""

import gc
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

import msgspec

from situate.cli.cluster.connection import Client
from situate.cli.cluster.objects import PAGE, get_object, list_objects, next_page
from situate.cli.input.cluster import ClusterObjects
from situate.cli.input.devices import GROUP, also_devices, device_problem
from situate.core.model.policy import PriorityClass
from situate.kube.discovery import served_version
from situate.kube.errors import ApiError
from situate.kube.kinds import WatchedKind
from situate.wire.objects import decode_checked
from situate.wire.watch import Reader

NEEDED: Final = ("pods", "nodes")
"""Without these there is no answer."""
TEMPLATES: Final = f"resourceclaimtemplates.{GROUP}"
PRIORITY_CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def read_live(client: Client, kinds: Sequence[WatchedKind], *, priority_classes: bool = False) -> ClusterObjects:
    """All objects of these kinds that we may list. Raises ApiError if we may not list pods or nodes.

    Pods of the cluster have their priority; only pods still to come need the classes.
    """
    import asyncio  # slow to import, and not needed for files

    found = ClusterObjects()
    served: list[str] = []
    refused: list[tuple[str, str]] = []
    reads = [_list(client, kind, found, served, refused) for kind in also_devices(kinds)]
    gc.disable()
    try:
        await asyncio.gather(*reads, *([_list_classes(client, found)] if priority_classes else []))
    finally:
        gc.enable()
        gc.freeze()
    found.device_problem = device_problem(served, sorted(refused))
    return found


async def _list(
    client: Client, kind: WatchedKind, found: ClusterObjects, served: list[str], refused: list[tuple[str, str]]
) -> None:
    """`served` and `refused` are filled with what the server has, and with what it does not show us of devices."""
    try:
        version = await served_version(client, kind) if kind.optional else kind.versions[0]
        if version is not None:
            items = await _pages(client, kind, version)
            found.kinds[kind.model.__name__] = None
            served.append(kind.name)
            into: dict[str, list[Any]] = {
                "pods": found.pods,
                "nodes": found.nodes,
                TEMPLATES: found.claim_templates,
            }
            into.get(kind.name, found.named).extend(items)
    except ApiError as error:
        if kind.name in NEEDED or not (error.forbidden or error.not_found):
            raise
        if kind.group == GROUP:
            refused.append((kind.resource, error.message))
        elif not kind.optional:
            found.refused[kind.name] = error.message


async def _list_classes(client: Client, found: ClusterObjects) -> None:
    def decoded(item: Mapping[str, Any]) -> PriorityClass:
        return decode_checked(PriorityClass, msgspec.json.encode(item), file=client.access.server)

    try:
        found.priority_classes = [decoded(item) for item in await list_objects(client, PRIORITY_CLASSES)]
    except ApiError as error:
        if not (error.forbidden or error.not_found):
            raise
        found.refused["priorityclasses"] = error.message


async def _pages(client: Client, kind: WatchedKind, version: str) -> list[Any]:
    """All pages; the request for the next one is under way while one is decoded."""
    import asyncio

    params = {**kind.params, "limit": str(PAGE)}
    found: list[Any] = []
    reader = None
    asked = asyncio.create_task(client.request("GET", kind.path(version), params=params))
    try:
        while True:
            data = await asked
            more = next_page(data)
            if more:
                following = {**params, "continue": more}
                asked = asyncio.create_task(client.request("GET", kind.path(version), params=following))
                await asyncio.sleep(0)  # so that it is sent before we decode
            reader = reader or Reader(kind.model)
            found.extend(item.object for item in reader.page(data).items if item.object is not None)
            if not more:
                return found
    finally:
        asked.cancel()


async def read_pod_records(client: Client, namespace: str, name: str) -> list[Mapping[str, Any]]:
    """The pod as it is stored, its events, and its PlacementDecision, if the server has one. Raises ApiError."""
    space, quoted = quote(namespace, safe=""), quote(name, safe="")
    pod = await get_object(client, f"/api/v1/namespaces/{space}/pods/{quoted}")
    found: list[Mapping[str, Any]] = [{**pod, "kind": "Pod"}]
    events = f"/api/v1/namespaces/{space}/events"
    selector = f"involvedObject.name={name},involvedObject.kind=Pod"
    decision = f"/apis/situate.dev/v1alpha1/namespaces/{space}/placementdecisions/{quoted}"
    with suppress(ApiError):  # not everybody may read events
        found += [{**one, "kind": "Event"} for one in await list_objects(client, events, {"fieldSelector": selector})]
    with suppress(ApiError):  # only situate's own server has decisions
        found.append({**await get_object(client, decision), "kind": "PlacementDecision"})
    return found
