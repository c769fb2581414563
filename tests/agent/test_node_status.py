"""When a node says how it is."""

from typing import Any

from situate.agent.node_status import SMALL_S, STATUS_S, next_due


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
