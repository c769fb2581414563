"""What nodes use: read from the metrics API where there is one, and shown beside what is requested."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from situate.kube.client import Client
from situate.kube.errors import from_status
from situate.web import usage as usage_module
from situate.web.usage import UsageReader, usage_in
from web.serving import WITHIN_S, PageWorld, page_world

GROUP = "metrics.k8s.io"


def metrics(name: str, cpu: str, memory: str) -> dict[str, Any]:
    meta = {"name": name}
    usage = {"cpu": cpu, "memory": memory}
    return {"apiVersion": f"{GROUP}/v1beta1", "kind": "NodeMetrics", "metadata": meta, "usage": usage}


def listed(*items: Any) -> bytes:
    return msgspec.json.encode({"kind": "NodeMetricsList", "items": items})


def test_figures_are_millicores_and_bytes_and_what_cannot_be_read_is_left_out() -> None:
    odd = [metrics("b", "many", "1Gi"), {"metadata": {"name": "c"}}, 7, {"metadata": 7, "usage": {}}]
    assert usage_in(listed(metrics("a", "1500000001n", "2Gi"), *odd)) == {"a": (1501, 2 << 30)}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"items": 7}', b"{", b'{"kind": "Status"}'])
def test_another_answer_is_no_figures(body: bytes) -> None:
    assert usage_in(body) == {}


class Answers:
    """An API server with one answer after the other."""

    def __init__(self, *answers: bytes | int) -> None:
        self.left = list(answers)

    async def request(self, _method: str, path: str) -> bytes:
        assert path == usage_module.NODE_METRICS
        if not self.left:
            await asyncio.Event().wait()
        answer = self.left.pop(0)
        if isinstance(answer, int):
            raise from_status(answer, b"")
        return answer


@pytest.mark.parametrize(
    "answers, seen",
    [
        pytest.param([404, 404], [], id="a cluster without the API says nothing"),
        pytest.param([403], [], id="somebody who may not read it sees nothing"),
        pytest.param([listed(metrics("a", "1", "1Gi")), 503], [{"a": (1_000, 1 << 30)}], id="a short outage"),
        pytest.param([listed(metrics("a", "1", "1Gi")), 404], [{"a": (1_000, 1 << 30)}, {}], id="it was removed"),
        pytest.param([listed(), listed(metrics("a", "1", "1Gi"))], [{"a": (1_000, 1 << 30)}], id="it comes later"),
    ],
)
def test_what_is_seen(monkeypatch: pytest.MonkeyPatch, answers: list[bytes | int], seen: list[Any]) -> None:
    monkeypatch.setattr(usage_module, "USAGE_S", 0.0)
    monkeypatch.setattr(usage_module, "USAGE_ABSENT_S", 0.0)
    api, found = Answers(*answers), list[Any]()

    async def run() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await UsageReader(cast("Client", api), found.append).run()

    asyncio.run(run())
    assert (found, api.left) == (seen, [])


def busy(cpu: str, memory: str) -> dict[str, Any]:
    """A pod that is played to use this much."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "busy", "annotations": {"situate.dev/usage": f"cpu={cpu},memory={memory}"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def test_use_is_on_the_map_beside_what_is_requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_module, "USAGE_S", 0.1)
    monkeypatch.setattr(usage_module, "USAGE_ABSENT_S", 0.1)

    async def test(world: PageWorld) -> None:
        code, _ = await world.api.send("POST", "/api/v1/namespaces/default/pods", busy("500m", "4Gi"))
        assert code == 201
        async with (
            world.person() as admin,
            aclosing(admin.events("map", ("map",))) as events,
            asyncio.timeout(WITHIN_S),
        ):
            async for _, update in events:
                if update.get("used", [[0]])[0] != [0]:
                    break
            assert update["used"] == [[125], [250]]
            _, node = await admin.get("/api/nodes/node-1")
            assert [one["used"] for one in node["resources"]][:2] == [125, 250]

    async def run() -> None:
        async with page_world(tmp_path, nodes=1, zones=1) as world:
            await test(world)

    asyncio.run(run())
