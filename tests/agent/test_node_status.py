"""When a node says how it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.timed import TimedAgent
from agent.world import NODE
from situate.agent import host
from situate.agent.control_plane import ControlPlaneError
from situate.agent.node_status import LOOK_S, SMALL_S, STATUS_S, is_ready, next_due


def status(ready: str = "True", reason: str = "KubeletReady", **rest: Any) -> dict[str, Any]:
    beat = rest.pop("beat", "now")
    return {"conditions": [{"type": "Ready", "status": ready, "reason": reason, "lastHeartbeatTime": beat}], **rest}


def test_what_was_never_said_is_said_at_once() -> None:
    assert next_due(None, status(), 100.0) < 0


def test_a_condition_that_changes_is_said_at_once() -> None:
    assert next_due(status(), status("False", "KubeletNotReady"), 100.0) < 0


def test_a_small_change_waits_for_others() -> None:
    assert next_due(status(), status(images=[{"names": ["a"]}]), 100.0) == 100.0 + SMALL_S


def test_a_heartbeat_is_no_change() -> None:
    assert next_due(status(beat="then"), status(), 100.0) == 100.0 + STATUS_S


def test_a_reason_that_changes_is_said_at_once() -> None:
    assert next_due(status(reason="KubeletReady"), status(reason="Other"), 100.0) < 0


@pytest.mark.parametrize(
    "conditions, ready",
    [
        ([], False),
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "DiskPressure", "status": "True"}], False),
    ],
)
def test_a_node_is_ready_if_its_condition_says_so(conditions: list[dict[str, str]], ready: bool) -> None:
    assert is_ready({"status": {"conditions": conditions}}) == ready


# -- in virtual time ---------------------------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TimedAgent]:
    monkeypatch.setattr(host, "pressure", lambda _: host.Pressure(memory=False, disk=False, pids=False))
    made = TimedAgent(tmp_path)
    yield made
    made.loop.close()


def near(*times: float) -> list[Any]:
    return [pytest.approx(at, abs=0.21) for at in times]


def test_a_node_that_cannot_register_tries_again_every_second(here: TimedAgent) -> None:
    here.plane.refused["register"] = ControlPlaneError("busy")
    here.play(6, (2.5, here.plane.refused.clear))
    assert here.plane.times("register", NODE) == near(0, 1, 2, 3)


def test_a_status_that_stays_the_same_is_reported_every_five_minutes(here: TimedAgent) -> None:
    here.play(2 * STATUS_S + LOOK_S + 5)
    assert here.plane.times("register", NODE) == near(0, STATUS_S, 2 * STATUS_S)


def test_a_node_that_is_deleted_or_held_to_be_lost_reports_at_once(here: TimedAgent) -> None:
    here.play(30, (3, lambda: here.plane.think("Unknown")), (15, lambda: here.plane.think("True")))
    assert here.plane.times("register", NODE) == near(0, 3)


def test_a_watch_of_the_node_that_breaks_begins_again(here: TimedAgent) -> None:
    def come_back() -> None:
        here.plane.away = False

    here.play(30, (3, here.plane.cut), (5.5, come_back), (15, lambda: here.plane.think("Unknown")))
    assert here.plane.times("register", NODE) == near(0, 15)


def test_a_version_of_the_node_that_was_overtaken_is_ignored(here: TimedAgent) -> None:
    def say(version: int, ready: str) -> None:
        here.plane.nodes_held[NODE]["metadata"]["resourceVersion"] = str(version)
        here.plane.think(ready)

    here.play(30, (3, lambda: say(7, "True")), (5, lambda: say(6, "Unknown")), (9, lambda: say(7, "Unknown")))
    assert here.plane.times("register", NODE) == near(0, 9)
