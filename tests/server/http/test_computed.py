"""Resources that are worked out: read like any other, in every form, and neither written nor kept."""

import json
from typing import Any

import pytest

from server.http.world import PODS, Line, deployment, pod, told, world
from situate.server.placing.decisions import PLACEMENT_DECISIONS, decided, encoded, moved
from situate.server.placing.phases import Phase
from situate.server.registry.keys import key_of
from situate.store.entries import Revision
from situate.store.memory import MemoryStore
from situate.store.transactions import Committed, Put

OURS = "/apis/situate.dev/v1alpha1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def test_a_view_is_listed_and_got_as_json_and_as_a_table() -> None:
    async def story() -> None:
        async with world() as here:
            await here.ask("POST", PODS, pod("a"))
            await here.ask("POST", "/apis/apps/v1/namespaces/default/deployments", deployment())
            listed = (await here.get(f"{OURS}/workloadviews")).json
            assert (listed["kind"], listed["apiVersion"]) == ("WorkloadViewList", "situate.dev/v1alpha1")
            assert [one["metadata"]["name"] for one in listed["items"]] == ["deployment.web", "pod.a"]
            one = (await here.get(f"{OURS}/namespaces/default/workloadviews/pod.a")).json
            assert (one["kind"], one["status"]["waiting"]) == ("WorkloadView", 1)
            assert one["metadata"]["resourceVersion"] == listed["metadata"]["resourceVersion"]
            table = (await here.get(f"{OURS}/namespaceviews", TABLE)).json
            assert [column["name"] for column in table["columnDefinitions"]][:4] == [
                "Name",
                "Phase",
                "Workloads",
                "Pods",
            ]
            assert table["rows"][0]["cells"][0] == "default"
            assert (await here.get(f"{OURS}/nodeviews")).json["items"] == []

    told(story)


@pytest.mark.parametrize(
    "method, path, code",
    [
        ("GET", "/workloadviews?watch=1", 405),
        ("POST", "/namespaces/default/workloadviews", 405),
        ("DELETE", "/nodeviews/n1", 405),
        ("PUT", "/nodeviews/n1", 405),
        ("GET", "/nodeviews/n1", 404),
        ("GET", "/namespaces/default/workloadviews/pod.b", 404),
        ("GET", "/namespaces/default/placementevents/x", 405),
        ("DELETE", "/namespaces/default/placementevents", 405),
        ("GET", "/placementevents?watch=1&resourceVersion=99999999", 504),
        ("GET", "/placementevents?watch=1&labelSelector=a%3Db", 400),
        ("GET", "/nodeviews?labelSelector=%2C%2C", 400),
    ],
)
def test_what_cannot_be_done_is_a_clear_status(method: str, path: str, code: int) -> None:
    async def story() -> None:
        async with world() as here:
            reply = await here.ask(method, f"{OURS}{path}", {} if method in ("POST", "PUT") else None)
            assert (reply.code, reply.json["kind"]) == (code, "Status"), reply.json

    told(story)


async def put(store: MemoryStore, name: str, phase: Phase) -> int:
    """A decision, as the server would write it."""
    made = decided({"metadata": {"name": name, "namespace": "default", "uid": name}}, None, "u", "2026-01-01T00:00:00Z")
    value = encoded(moved(made, phase, "2026-01-01T00:00:01Z", node="n1", binding_version=1))
    outcome = await store.commit([], [Put(key_of(PLACEMENT_DECISIONS, "default", name), value)])
    assert isinstance(outcome, Committed)
    return outcome.revision


async def events(line: Line, count: int) -> list[Any]:
    text = b""
    while text.count(b"\n") < count:
        text += await line.chunk()
    return [json.loads(one) for one in text.splitlines()]


async def stored() -> MemoryStore:
    """A store in which there is a namespace."""
    store = MemoryStore()
    value = b'{"metadata":{"name":"default","uid":"n"},"status":{"phase":"Active"}}'
    await store.commit([], [Put("/objects/core/namespaces/default", value)])
    return store


def test_placements_are_streamed_from_a_revision_with_a_bookmark_where_the_past_ends() -> None:
    async def story() -> None:
        store = await stored()
        async with world(store=store) as here, here.line() as line:
            first = await put(store, "a", "bound")
            second = await put(store, "b", "bound")
            line.request("GET", f"{OURS}/placementevents?watch=1&resourceVersion={first}&allowWatchBookmarks=true")
            assert (await line.head()).code == 200
            told_, mark = await events(line, 2)
            assert (told_["type"], told_["object"]["kind"], told_["object"]["event"]) == (
                "ADDED",
                "PlacementEvent",
                "bound",
            )
            assert told_["object"]["metadata"]["resourceVersion"] == str(second)
            assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            third = await put(store, "c", "running")
            (last,) = await events(line, 1)
            assert (last["object"]["pod"]["name"], last["object"]["metadata"]["resourceVersion"]) == ("c", str(third))
            listed = (await here.get(f"{OURS}/namespaces/default/placementevents")).json
            assert [one["pod"]["name"] for one in listed["items"]] == ["a", "b", "c"]

    told(story)


def test_a_past_that_is_compacted_away_is_said_in_the_stream() -> None:
    async def story() -> None:
        store = await stored()
        async with world(store=store) as here, here.line() as line:
            first = await put(store, "a", "bound")
            newest = await put(store, "b", "bound")
            await store.compact(Revision(newest))
            line.request("GET", f"{OURS}/placementevents?watch=1&resourceVersion={first}")
            assert (await line.head()).code == 200
            (error,) = await events(line, 1)
            assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")

    told(story)
