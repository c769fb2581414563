"""Whether a node takes a pod that was bound to it."""

from typing import Any

import pytest

from situate.agent.admission import rejection

ROOM = {"cpu": "2", "memory": "1Gi", "pods": "2"}


def pod(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [container], **spec}}


def node(*taints: dict[str, str], **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": "n", "labels": labels}, "spec": {"taints": list(taints)}}


OUT = {"key": "k", "effect": "NoExecute"}


@pytest.mark.parametrize(
    "given, others, held, reason",
    [
        pytest.param(pod(), [], node(), None, id="there is room"),
        pytest.param(pod("3"), [], node(), "OutOfcpu", id="it is larger than the node"),
        pytest.param(pod("1500m"), [pod()], node(), "OutOfcpu", id="others are there"),
        pytest.param(pod("0"), [pod(), pod()], node(), "OutOfpods", id="too many are there"),
        pytest.param(pod(), [], node(OUT), "TaintToleration", id="a taint is not tolerated"),
        pytest.param(pod(tolerations=[{"operator": "Exists"}]), [], node(OUT), None, id="it is tolerated"),
        pytest.param(
            pod(), [], node({"key": "k", "effect": "NoSchedule"}), None, id="a taint that is for schedulers only"
        ),
        pytest.param(pod(nodeSelector={"disk": "fast"}), [], node(), "NodeAffinity", id="a label is missing"),
        pytest.param(pod(nodeSelector={"disk": "fast"}), [], None, None, id="the node could not be read"),
    ],
)
def test_refusals(given: dict[str, Any], others: list[dict[str, Any]], held: Any, reason: str | None) -> None:
    found = rejection(given, others, ROOM, held)
    assert (found.reason if found else None) == reason


def test_what_is_short_is_said_as_a_kubelet_does() -> None:
    found = rejection(pod("1500m"), [pod()], ROOM, None)
    assert found is not None
    text = "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000"
    assert found.message == f"Pod was rejected: {text}"
