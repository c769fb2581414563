"""Carrying a plan out on a cluster that has a mind of its own: it stops in one line, and leaves no cordon."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from builders import manifest
from situate.cli.commands.plan.apply import PlanExecution, StoppedError
from situate.cli.commands.plan.input import PlanInput, PlanOptions, read_live_input
from situate.core.plan.defrag import DefragPlan, defrag
from situate.core.plan.eviction_rules import DrainRules
from situate.core.plan.goals import NodeGoal
from situate.kube.access import Access
from situate.kube.errors import ApiError

ASKED = PlanOptions((), None, False, None, None, "table", None, None)
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Server:
    """An API server of a few nodes and pods, whose controller and scheduler are one function."""

    def __init__(self, again: Callable[["Server", dict[str, Any]], str]) -> None:
        self.access = Access(server="http://nowhere")
        self.nodes = {name: _node(name) for name in ("n1", "n2", "n3")}
        self.pods: dict[str, dict[str, Any]] = {}
        self.again = again
        """Where the pod that replaces an evicted one comes to; empty: nowhere yet. It may do other things, too."""
        self.patches: list[tuple[str, bool | None]] = []

    def add(self, name: str, node: str, cpu: str = "1") -> None:
        self.pods[name] = _pod(name, node, cpu)

    async def request(self, method: str, path: str, **said: Any) -> bytes:
        if method == "PATCH":
            name = path.rpartition("/")[2]
            wanted = json.loads(said["body"])["spec"]["unschedulable"]
            self.patches.append((name, wanted))
            self.nodes[name]["spec"]["unschedulable"] = bool(wanted)
        elif method == "POST":
            evicted = self.pods[path.split("/")[-2]]
            node = self.again(self, evicted)
            del self.pods[evicted["metadata"]["name"]]
            self.add(f"{evicted['metadata']['name']}-again", node, cpu="2")
            if not node:
                self.pods[f"{evicted['metadata']['name']}-again"]["status"] = {}
        elif path == "/api/v1/nodes":
            return _listed(self.nodes)
        elif path.endswith("/pods"):
            return _listed(self.pods)
        return b'{"items": [], "metadata": {"resourceVersion": "1"}}'

    @property
    def cordoned(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node["spec"].get("unschedulable")]


def _listed(objects: Mapping[str, Any]) -> bytes:
    return json.dumps({"metadata": {"resourceVersion": "1"}, "items": list(objects.values())}).encode()


def _node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "16Gi", "pods": "10"}
    return manifest("Node", name, metadata={"uid": name, "resourceVersion": "1"}, spec={}, status={"allocatable": room})


def _pod(name: str, node: str, cpu: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    meta = {"namespace": "default", "uid": name, "resourceVersion": "1", "ownerReferences": [owner]}
    containers = [{"name": "c", "image": "c:1", "resources": {"requests": {"cpu": cpu}}}]
    return manifest("Pod", name, metadata=meta, spec={"containers": containers, "nodeName": node}, status=READY)


def carried_out(server: Server, timeout_s: int = 5) -> DefragPlan:
    """Free n1; what was planned."""

    async def work() -> DefragPlan:
        read: PlanInput = await read_live_input(server, ASKED)  # type: ignore[arg-type]
        goal = NodeGoal("n1")
        plan = defrag(read.sandbox(), goal, DrainRules())
        await PlanExecution(server, ASKED, read, plan, goal, DrainRules(), timeout_s).run()  # type: ignore[arg-type]
        return plan

    return asyncio.run(work())


def two_on_n1(again: Callable[[Server, dict[str, Any]], str]) -> Server:
    server = Server(again)
    server.add("a", "n1", cpu="2")
    server.add("b", "n1", cpu="2")
    server.add("c", "n2", cpu="2")
    server.add("d", "n3", cpu="2")
    return server


def test_every_step_is_taken_and_the_freed_node_stays_cordoned(capsys: pytest.CaptureFixture[str]) -> None:
    server = two_on_n1(lambda server, pod: "n2" if pod["metadata"]["name"] == "a" else "n3")
    plan = carried_out(server)
    assert [move.key for move in plan.moves] == ["default/a", "default/b"]
    assert server.cordoned == ["n1"]
    assert capsys.readouterr().out.splitlines()[-1].startswith("n1 is free, and stays cordoned")


def test_a_pod_that_comes_elsewhere_than_planned_is_told_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = two_on_n1(lambda server, pod: "n3" if pod["metadata"]["name"] == "a" else "n2")
    carried_out(server)
    told = capsys.readouterr().out
    assert " instead of n2" in told
    assert "the cluster has changed; 1 other step will free it" in told
    assert {pod["spec"]["nodeName"] for pod in server.pods.values()} == {"n2", "n3"}


def crowds(server: Server, pod: dict[str, Any]) -> str:
    """Somebody else takes the room that the other step needs."""
    server.add("stranger", "n3", cpu="2")
    return "n2"


def loses(server: Server, pod: dict[str, Any]) -> str:
    """The other pod is gone, too."""
    del server.pods["b"]
    return "n2"


def test_a_pod_that_is_gone_needs_no_step() -> None:
    server = two_on_n1(loses)
    carried_out(server)
    assert server.cordoned == ["n1"]


def refuses(server: Server, pod: dict[str, Any]) -> str:
    raise ApiError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")


def forbids(server: Server, pod: dict[str, Any]) -> str:
    raise ApiError(403, "Forbidden", "you may not")


@pytest.mark.parametrize(
    "again, line",
    [
        pytest.param(
            crowds, "after 1 of 2 steps: the cluster has changed, and the remaining steps", id="others have come"
        ),
        pytest.param(
            refuses, "after 0 of 2 steps: default/a cannot be evicted: Cannot evict pod", id="a budget says no"
        ),
        pytest.param(forbids, "after 0 of 2 steps: default/a cannot be evicted: you may not", id="we may not evict"),
        pytest.param(
            lambda server, pod: "",
            "after 0 of 2 steps: default/a was evicted, but after 1 s default/a-again is not ready",
            id="the new pod does not come to be",
        ),
    ],
)
def test_it_stops_in_one_line_and_leaves_no_cordon(again: Callable[[Server, dict[str, Any]], str], line: str) -> None:
    server = two_on_n1(again)
    with pytest.raises(StoppedError) as stopped:
        carried_out(server, timeout_s=1)
    assert str(stopped.value).startswith(f"stopped {line}")
    assert server.cordoned == []
    assert server.patches[0] == ("n1", True)
