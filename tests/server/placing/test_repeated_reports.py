"""A report that comes twice: the same again is accepted, and the same number with other content is refused."""

from typing import Any, Literal

import pytest

from server.placing.world import World, tell
from situate.agent.control_plane import StaleError, StatusOrigin
from situate.agent.control_plane_local import LocalControlPlane
from situate.core.reconcile.nodes.reports import REPORT, AgentReport
from situate.server.errors import StatusError
from situate.server.placing.bind_transaction import NODES, PODS
from situate.server.requests import SYSTEM, Caller, Object, Target

POD = Target(PODS, "default", "p", "status")
NODE = Target(NODES, "", "n1", "status")
AGENT = Caller("system:node:n1", ("system:nodes",))
OTHER_CONTENT = r"report 1\.5 was taken already, and this one differs from what is stored"


def report(phase: str, number: str = "1.5") -> Object:
    return {"metadata": {"annotations": {REPORT: number}}, "status": {"phase": phase}}


def json_patch(phase: str, *, each: bool) -> list[Object]:
    annotations: list[Object] = [{"op": "add", "path": "/metadata/annotations", "value": {REPORT: "1.5"}}]
    if each:
        annotations.append({"op": "add", "path": "/metadata/annotations/situate.dev~1report", "value": "1.5"})
    return [*annotations[-1 if each else 0 :], {"op": "replace", "path": "/status/phase", "value": phase}]


PATCHES: list[tuple[Literal["merge", "strategic", "json"], Any, Any]] = [
    ("merge", report("Running"), report("Failed")),
    ("strategic", report("Running"), report("Failed")),
    ("json", json_patch("Running", each=False), json_patch("Failed", each=False)),
    ("json", json_patch("Running", each=True), json_patch("Failed", each=True)),
]


def told(story: Any) -> None:
    async def on(world: World) -> None:
        await world.node()
        await world.pod(nodeName="n1")
        await world.registry.patch(POD, "merge", report("Pending", "1.4"), AGENT)
        await story(world)

    tell(on)


@pytest.mark.parametrize("how, first, other", PATCHES)
def test_a_patch_of_equal_number_is_accepted_if_it_is_the_same_and_else_refused(
    how: Literal["merge", "strategic", "json"], first: Any, other: Any
) -> None:
    async def story(world: World) -> None:
        taken = (await world.registry.patch(POD, how, first, AGENT)).stored
        again = (await world.registry.patch(POD, how, first, AGENT)).stored
        assert again.revision == taken.revision, "a repeat writes nothing"
        with pytest.raises(StatusError, match=OTHER_CONTENT) as no:
            await world.registry.patch(POD, how, other, AGENT)
        assert (no.value.code, [cause.reason for cause in no.value.causes]) == (409, ["DuplicateReport"])
        assert world.read("p")["status"]["phase"] == "Running"

    told(story)


def test_a_replacement_by_the_agent_is_a_report_and_one_by_a_controller_is_not() -> None:
    async def story(world: World) -> None:
        await world.registry.patch(POD, "merge", report("Running"), AGENT)
        pod = world.read("p")
        await world.registry.replace(POD, pod, AGENT)
        changed = {**pod, "status": {**pod["status"], "message": "other"}}
        with pytest.raises(StatusError, match=OTHER_CONTENT):
            await world.registry.replace(POD, changed, AGENT)
        await world.registry.replace(POD, changed, SYSTEM)
        assert world.read("p")["status"]["message"] == "other"

    told(story)


def test_a_patch_that_names_no_report_is_none() -> None:
    async def story(world: World) -> None:
        await world.registry.patch(POD, "merge", report("Running"), AGENT)
        for caller in (AGENT, SYSTEM):  # an agent without reports, as a kubelet, may come after one with them
            await world.registry.patch(POD, "merge", {"status": {"message": caller.name}}, caller)
            assert world.read("p")["status"]["message"] == caller.name
        op = {"op": "add", "path": "/status/message", "value": "json"}
        await world.registry.patch(POD, "json", [op], AGENT)
        assert world.read("p")["status"]["message"] == "json"

    told(story)


def test_a_report_of_a_node_repeats_like_one_of_a_pod() -> None:
    async def story(world: World) -> None:
        said = {"metadata": {"annotations": {REPORT: "1.5"}}, "status": {"phase": "Running"}}
        await world.registry.patch(NODE, "strategic", said, AGENT)
        await world.registry.patch(NODE, "strategic", said, AGENT)
        with pytest.raises(StatusError, match=OTHER_CONTENT):
            await world.registry.patch(NODE, "strategic", {**said, "status": {"phase": "Pending"}}, AGENT)

    told(story)


def test_an_agent_in_the_servers_process_is_held_to_the_same() -> None:
    async def story(world: World) -> None:
        plane = LocalControlPlane(world.registry)
        term = (await plane.acquire_lease("n1", 40)).term
        origin, pod, node = StatusOrigin(1, AgentReport(term, 5)), world.read("p"), world.read_node("n1")
        for _ in range(2):
            await plane.report_status(pod, {"phase": "Running"}, origin)
            await plane.register_node(node, AgentReport(term, 5))
        with pytest.raises(StaleError, match="was taken already, and this one differs"):
            await plane.report_status(pod, {"phase": "Failed"}, origin)
        other = {**node, "status": {**node["status"], "phase": "Running"}}
        with pytest.raises(StaleError, match="was taken already, and this one differs"):
            await plane.register_node(other, AgentReport(term, 5))
        assert world.read("p")["status"]["phase"] == "Running"

    told(story)
