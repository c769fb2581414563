"""Requests that nobody should send, by the thousand: each is answered with a Status in time, and none is our fault."""

import json
import random
from typing import Any

import pytest

from server.http.world import PODS, deployment, pod, told, world

WEB = "/apis/apps/v1/namespaces/default/deployments"
ODD: list[Any] = [
    None, 0, -1, 1.5, 1e308, 2**70, True, "", "x" * 300, "\ud800", "日本", "\u0000",
    [], {}, [[]], [None], [1], {"a": None}, {"": ""},
]  # fmt: skip
SCALE = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "web"}, "spec": {"replicas": 1}}
OPTIONS = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}, "dryRun": ["All"]}
LABELS = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "z"}]}}
REQUESTS: list[tuple[str, str, Any]] = [
    ("POST", PODS, pod()),
    ("PUT", f"{PODS}/p0", pod("p0")),
    ("POST", WEB, deployment()),
    ("PUT", f"{WEB}/web/scale", SCALE),
    ("DELETE", f"{PODS}/p0", OPTIONS),
    ("POST", "/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "zz"}}),
    ("PATCH", f"{PODS}/p0", LABELS),
    ("PATCH", f"{WEB}/web/scale", {"spec": {"replicas": 2}}),
    ("PATCH", f"{WEB}/web/status", {"status": {"replicas": 2}}),
]
OPERATIONS = [
    {"op": "replace", "path": "/metadata/labels", "value": {}},
    {"op": "add", "path": "/spec/x", "value": 1},
    {"op": "test", "path": "/a~1b", "value": 1},
    {"op": "move", "from": "/spec", "path": "/metadata"},
]
PATCHES = ["merge-patch+json", "json-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]
QUERIES = ["", "?dryRun=All", "?fieldValidation=Strict", "?fieldManager=m&force=true", "?limit=%00", "?fieldManager=m"]
CASES = 300


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found += places(inner, (*path, key))
    return found


def spoiled(value: Any, dice: random.Random) -> Any:
    """The value with something odd in one place or a few."""
    value = json.loads(json.dumps(value))
    for _ in range(dice.randint(1, 3)):
        *way, last = dice.choice(places(value)) or (None,)
        odd = json.loads(json.dumps(dice.choice(ODD)))
        if last is None:
            return odd if dice.random() < 0.2 else value
        at = value
        for key in way:
            at = at[key]
        if isinstance(at, dict) and dice.random() < 0.3:
            last = dice.choice(["foo", "metadata", "spec", "name", ""])
        at[last] = odd
        if not isinstance(value, dict | list):
            return value
    return value


def request(dice: random.Random) -> tuple[str, str, bytes, dict[str, str]]:
    method, path, body = dice.choice(REQUESTS)
    headers = {}
    if method == "PATCH":
        headers["Content-Type"] = f"application/{dice.choice(PATCHES)}"
        if "json-patch" in headers["Content-Type"]:
            body = [dice.choice(OPERATIONS) for _ in range(dice.randint(1, 3))]
    data = json.dumps(spoiled(body, dice) if dice.random() < 0.85 else body).encode()
    kind = dice.random()
    if kind < 0.1:
        data = data[: dice.randint(0, len(data))]
    elif kind < 0.15:
        data = dice.randbytes(dice.randint(0, 200))
    elif kind < 0.2 and method != "PATCH":
        headers["Content-Type"] = "application/yaml"
    elif kind < 0.25 and method != "PATCH":
        headers["Content-Type"] = "application/vnd.kubernetes.protobuf"
        data = b"k8s\x00" + dice.randbytes(dice.randint(0, 80))
    return method, path + dice.choice(QUERIES), data, headers


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_sent_is_answered_and_never_a_fault_of_ours(seed: int) -> None:
    dice = random.Random(seed)

    async def story() -> None:
        async with world() as here:
            await here.ask("POST", PODS, pod("p0"))
            await here.ask("POST", WEB, deployment())
            for _ in range(CASES):
                method, path, data, headers = request(dice)
                reply = await here.ask(method, path, data, headers)
                assert reply.code < 500, (method, path, headers, data)
                if reply.code >= 400:
                    assert reply.message
            assert here.server.metrics.panics == 0

    told(story)


ODD_METADATA: list[tuple[str, Any]] = [
    ("merge-patch", {"metadata": 1.5}),
    ("merge-patch", {"metadata": {"annotations": 5}}),
    ("merge-patch", {"metadata": None}),
    ("strategic-merge-patch", {"metadata": []}),
    ("strategic-merge-patch", {"metadata": {"annotations": "x"}}),
    ("json-patch", [{"op": "replace", "path": "/metadata", "value": 1}]),
    ("json-patch", [{"op": "add", "path": "/metadata/annotations", "value": [1]}]),
    ("json-patch", [{"op": "replace", "path": "/metadata", "value": {"annotations": 1}}]),
]


@pytest.mark.parametrize("kind, patch", ODD_METADATA)
def test_odd_metadata_in_a_patch_of_a_subresource_is_refused_or_ignored(kind: str, patch: Any) -> None:
    async def story() -> None:
        async with world() as here:
            await here.ask("POST", PODS, pod("p0"))
            headers = {"Content-Type": f"application/{kind}+json"}
            reply = await here.ask("PATCH", f"{PODS}/p0/status", json.dumps(patch).encode(), headers)
            assert reply.code < 500

    told(story)
