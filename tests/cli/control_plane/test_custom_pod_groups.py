"""The kinds of PodGroups that other schedulers define: installed in `situate up`, they make gangs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cli.control_plane.running import Client, running, until
from situate.cli.control_plane.settings import ControlPlaneSettings

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PODS = "/api/v1/namespaces/default/pods"
WITHIN_S = 60.0


def definition(group: str, version: str) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"minMember": {"type": "integer"}, "queue": {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"podgroups.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


def pod(name: str, meta: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "worker", "image": "worker:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **meta},
        "spec": {"containers": containers},
    }


async def created(client: Client, path: str, body: dict[str, Any]) -> None:
    code, answer = await client.send("POST", path, body)
    assert code == 201, answer


@pytest.mark.parametrize(
    "group, version, meta",
    [
        pytest.param(
            "scheduling.x-k8s.io",
            "v1alpha1",
            {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
            id="the coscheduling plugin",
        ),
        pytest.param(
            "scheduling.volcano.sh", "v1beta1", {"annotations": {"scheduling.k8s.io/group-name": "train"}}, id="Volcano"
        ),
        pytest.param("scheduling.run.ai", "v2alpha2", {"annotations": {"pod-group-name": "train"}}, id="KAI"),
    ],
)
def test_none_of_two_pods_is_bound_and_all_three_are(
    tmp_path: Path, group: str, version: str, meta: dict[str, Any]
) -> None:
    async def test() -> None:
        async with running(ControlPlaneSettings(directory=tmp_path, store="memory", nodes=1)) as client:
            groups = f"/apis/{group}/{version}/namespaces/default/podgroups"
            await created(client, DEFINITIONS, definition(group, version))

            async def served() -> bool:
                return (await client.send("GET", groups))[0] == 200

            await until(served, WITHIN_S)
            body = {"apiVersion": f"{group}/{version}", "kind": "PodGroup", "metadata": {"name": "train"}}
            await created(client, groups, {**body, "spec": {"minMember": 3}})

            async def default_account() -> bool:
                return (await client.send("GET", "/api/v1/namespaces/default/serviceaccounts/default"))[0] == 200

            await until(default_account, WITHIN_S)
            for name in ("train-0", "train-1"):
                await created(client, PODS, pod(name, meta))

            async def held() -> bool:
                said = [
                    (one["reason"], one["message"])
                    for item in await client.items(PODS)
                    for one in item["status"].get("conditions", ())
                    if one["type"] == "PodScheduled"
                ]
                text = "waiting for 1 more pod of gang default/train: 2 of 3 are here"
                return ("WaitingForGang", text) in said and len(said) == 2

            await until(held, WITHIN_S)
            assert [item["spec"].get("nodeName") for item in await client.items(PODS)] == [None, None]
            await created(client, PODS, pod("train-2", meta))

            async def bound() -> bool:
                return all(item["spec"].get("nodeName") for item in await client.items(PODS))

            await until(bound, WITHIN_S)
            assert len(await client.items(PODS)) == 3
            _, found = await client.send("GET", f"{groups}/train")
            assert "status" not in found

    asyncio.run(test())
