"""The version of an API server decides whose rules are followed."""

import asyncio
import json

import pytest

from situate.core.versions import V1_36, V1_37, KubernetesRules
from situate.kube.discovery import server_rules
from situate.kube.errors import ApiError


class Server:
    """An API server that answers one path, or refuses to."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer

    async def request(self, method: str, path: str) -> bytes:
        assert (method, path) == ("GET", "/version")
        if self._answer is None:
            raise ApiError(403, "Forbidden", "no")
        return self._answer


@pytest.mark.parametrize(
    "answer, rules",
    [
        pytest.param(json.dumps({"gitVersion": "v1.37.1"}).encode(), V1_37, id="a server of 1.37"),
        pytest.param(json.dumps({"gitVersion": "v1.33.0"}).encode(), V1_36, id="an older server"),
        pytest.param(json.dumps({"gitVersion": "none"}).encode(), V1_36, id="a version that says nothing"),
        pytest.param(b"<html>", V1_36, id="an answer that is not JSON"),
        pytest.param(None, V1_36, id="a server that keeps its version secret"),
    ],
)
def test_the_rules_of_a_server(answer: bytes | None, rules: KubernetesRules) -> None:
    assert asyncio.run(server_rules(Server(answer))) is rules
