"""What was decided is in the log at -v=2, and not below."""

import logging

import pytest

from builders import node, pod
from situate.core.changes import BindDone, BindFailed, Change, NodeSeen, PodRef, PodSeen
from situate.core.config.defaults import default_configuration
from situate.core.engine.engine import Engine
from situate.loop.decisions import DecisionLog
from situate.loop.logs import KEYS

WEB = PodRef("default", "web", "u1")
NODE = NodeSeen(node("n1", cpu="4", pods=10))


def said(caplog: pytest.LogCaptureFixture, verbosity: int, *steps: list[Change]) -> list[tuple[str, dict[str, object]]]:
    engine, log = Engine(default_configuration()), DecisionLog()
    with caplog.at_level(logging.INFO - verbosity, logger="situate"):
        for now, changes in enumerate(steps):
            log.before(engine, now, changes)
            log.after(engine, now, engine.step(now, changes), 0.0)
    return [(record.getMessage(), getattr(record, KEYS)) for record in caplog.records]


def test_a_pod_that_was_bound_is_named_with_its_node(caplog: pytest.LogCaptureFixture) -> None:
    steps: list[list[Change]] = [[NODE, PodSeen(pod("web", uid="u1", cpu="1"))], [BindDone(WEB, 1)]]
    keys = {"pod": "default/web", "node": "n1", "evaluatedNodes": 1}
    assert said(caplog, 2, *steps) == [("Successfully bound pod to node", keys)]


def test_a_bind_that_failed_is_named_with_what_went_wrong(caplog: pytest.LogCaptureFixture) -> None:
    steps: list[list[Change]] = [[NODE, PodSeen(pod("web", uid="u1", cpu="1"))], [BindFailed(WEB, 1, "no answer")]]
    assert said(caplog, 2, *steps) == [("Failed to bind pod", {"pod": "default/web", "err": "no answer"})]


def test_a_pod_that_fits_nowhere_is_named_with_why(caplog: pytest.LogCaptureFixture) -> None:
    ((message, keys),) = said(caplog, 2, [NODE, PodSeen(pod("web", uid="u1", cpu="9"))])
    assert message == "Unable to schedule pod"
    assert keys["reason"] == "Unschedulable"
    assert str(keys["err"]).startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_victims_are_named_with_whom_they_make_room_for(caplog: pytest.LogCaptureFixture) -> None:
    low = PodSeen(pod("low", uid="u0", cpu="4", node_name="n1", priority=0))
    found = said(caplog, 2, [NODE, low, PodSeen(pod("web", uid="u1", cpu="4", priority=9))])
    assert ("Preempting pod", {"victim": "default/low", "node": "n1", "preemptor": "default/web"}) in found


def test_nothing_is_said_at_a_lower_level(caplog: pytest.LogCaptureFixture) -> None:
    assert said(caplog, 1, [NODE, PodSeen(pod("web", uid="u1", cpu="9"))], [BindFailed(WEB, 1, "no")]) == []
