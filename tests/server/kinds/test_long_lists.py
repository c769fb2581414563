"""Lists as long as a body allows: each is validated in a time that grows with its length, not with its square."""

import time
from typing import Any

import pytest

from server.http.world import told, world

MANY = 8_000
WITHIN_S = 1.5
"""Of CPU time; each took longer by twice to ten times, or more memory than there is."""


def deployment(**spec: Any) -> dict[str, Any]:
    pods = {"containers": [{"name": "c", "image": "i"}], **spec}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pods}
    return {
        "metadata": {"name": "long"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }


def ports(*each: dict[str, Any]) -> dict[str, Any]:
    return deployment(containers=[{"name": "c", "image": "i", "ports": list(each)}])


DEPLOYMENTS, QUOTAS = "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/resourcequotas"
SPREAD = [{"maxSkew": 1, "topologyKey": f"k{number}", "whenUnsatisfiable": "ScheduleAnyway"} for number in range(MANY)]
CLAIMS = [{"name": f"c{number}"} for number in range(MANY)]


@pytest.mark.parametrize(
    "path, body, code",
    [
        pytest.param(DEPLOYMENTS, deployment(topologySpreadConstraints=SPREAD), 201, id="constraints"),
        pytest.param(DEPLOYMENTS, ports(*({"containerPort": n + 1} for n in range(MANY))), 201, id="ports"),
        pytest.param(DEPLOYMENTS, ports(*[{"containerPort": 80}] * MANY), 201, id="one port, very often"),
        pytest.param(
            DEPLOYMENTS,
            ports(*({"containerPort": 80, "hostPort": 1 + n, "hostIP": f"10.0.{n % 256}.1"} for n in range(MANY // 2))),
            201,
            id="one port at many addresses",
        ),
        pytest.param(
            DEPLOYMENTS,
            deployment(containers=[{"name": "c", "image": "i", "resources": {"claims": CLAIMS}}]),
            422,
            id="claims",
        ),
        pytest.param(
            QUOTAS,
            {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": [f"s{n}" for n in range(MANY)]}},
            422,
            id="scopes",
        ),
    ],
)
def test_a_long_list_takes_no_long_time(path: str, body: dict[str, Any], code: int) -> None:
    async def story() -> None:
        async with world() as here:
            began = time.process_time()
            reply = await here.ask("POST", f"{path}?dryRun=All", body)
            assert reply.code == code
            assert time.process_time() - began < WITHIN_S
            assert len(reply.body) < 3 << 20

    told(story)
