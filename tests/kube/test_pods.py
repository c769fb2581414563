"""One pod is read as it is now, or found to be none."""

import asyncio

import pytest

from kube.fake_server import FakeServer
from kube.performing import PODS
from situate.core.changes import PodRef
from situate.kube.client import Client
from situate.kube.errors import ApiError
from situate.kube.pods import pod_path, read_pod

WEB = PodRef("prod", "web", "u")


def test_the_path_of_a_pod() -> None:
    assert pod_path(WEB) == "/api/v1/namespaces/prod/pods/web"


@pytest.mark.parametrize(
    "there, name", [pytest.param(True, "web", id="it is there"), pytest.param(False, None, id="it is not")]
)
def test_a_pod_is_read_or_is_none(there: bool, name: str | None) -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client:
            if there:
                server.put(PODS, {"metadata": {"name": "web", "namespace": "prod"}})
            found = await read_pod(client, WEB)
            assert (None if found is None else found.metadata.name) == name

    asyncio.run(run())


def test_what_is_no_pod_is_an_error_of_one_line() -> None:
    async def run() -> None:
        async with FakeServer() as server, Client(server.access(), qps=-1) as client:
            server.put(PODS, {"metadata": {"name": "web", "namespace": "prod"}, "spec": {"containers": 7}})
            with pytest.raises(ApiError, match=r"pod prod/web cannot be read: .*containers"):
                await read_pod(client, WEB)

    asyncio.run(run())
