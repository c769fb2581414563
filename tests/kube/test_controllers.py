"""Whether an owner is gone, as an API server answers: only 404 and another uid mean that it is."""

import asyncio
from typing import Any

import msgspec
import pytest

from situate.core.reconcile.effects import ObjectRef
from situate.kube.controllers import ApiPort
from situate.kube.errors import ApiError
from situate.loop.controllers.cache import ServedKind
from situate.loop.controllers.port import RefusedError

KINDS = [
    (ServedKind("apps/v1", "Deployment", "deployments"), True),
    (ServedKind("v1", "Node", "nodes"), False),
]
OWNER = ObjectRef("apps/v1", "Deployment", "default", "web", "u")


class Answers:
    """A client of a server that always gives the same answer."""

    def __init__(self, answer: bytes | ApiError) -> None:
        self.paths: list[str] = []
        self._answer = answer

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        self.paths.append(f"{method} {path}")
        if isinstance(self._answer, ApiError):
            raise self._answer
        return self._answer


def body(uid: str) -> bytes:
    return msgspec.json.encode({"metadata": {"name": "web", "uid": uid}})


@pytest.mark.parametrize(
    "answer, gone",
    [
        pytest.param(body("u"), False, id="it is there"),
        pytest.param(body("other"), True, id="another of its name is there"),
        pytest.param(ApiError(404, "NotFound", "not found"), True, id="it is not there"),
    ],
)
def test_an_owner_is_gone_if_the_server_says_so(answer: bytes | ApiError, gone: bool) -> None:
    client: Any = Answers(answer)
    port = ApiPort(client, KINDS)
    assert [asyncio.run(port.is_gone(OWNER)) for _ in range(2)] == [gone, gone]
    asked = ["GET /apis/apps/v1/namespaces/default/deployments/web"]
    assert client.paths == (asked if gone else asked * 2), "what is gone stays gone"


def test_an_owner_that_the_server_cannot_read_is_not_gone() -> None:
    client: Any = Answers(ApiError(500, "StorageReadError", "it cannot be read"))
    with pytest.raises(RefusedError, match="it cannot be read"):
        asyncio.run(ApiPort(client, KINDS).is_gone(OWNER))


def test_an_owner_without_a_namespace_is_asked_for_without_one() -> None:
    client: Any = Answers(body("u"))
    asyncio.run(ApiPort(client, KINDS).is_gone(ObjectRef("v1", "Node", "default", "n", "u")))
    assert client.paths == ["GET /api/v1/nodes/n"]
