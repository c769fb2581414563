"""DeviceTaintRule: its rules, its times, and which servers have it."""

from __future__ import annotations

from typing import Any

from server.kinds.checking import found_by
from situate.server.discovery import Discovery
from situate.server.kinds.resource import resourceslice
from situate.server.kinds.resource.devicetaintrule import KIND
from situate.server.resources import BY_KIND, served_by
from situate.server.tables.printers import cells_of

NOW, BEFORE = "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"


def rule(effect: str = "NoExecute", time: str = "", **selector: str) -> dict[str, Any]:
    taint = {"key": "example.com/broken", "effect": effect, **({"timeAdded": time} if time else {})}
    return {"metadata": {"name": "r"}, "spec": {"deviceSelector": selector, "taint": taint}}


def problems(obj: dict[str, Any]) -> list[str]:
    return [cause.field for cause in found_by(KIND.strategy.validate, obj)]


def test_what_a_rule_may_say() -> None:
    assert problems(rule(driver="gpu.example.com", pool="rack/n1", device="gpu-0")) == []
    assert problems(rule("None")) == []
    assert problems(rule("Sometimes", driver="", pool="", device="GPU")) == [
        "spec.deviceSelector.driver",
        "spec.deviceSelector.pool",
        "spec.deviceSelector.device",
        "spec.taint.effect",
    ]


def test_a_taint_counts_from_when_it_was_added_or_changed_its_effect() -> None:
    made = rule()
    KIND.strategy.stamp(made, None, NOW)
    assert made["spec"]["taint"]["timeAdded"] == NOW
    same, other = rule(time=BEFORE), rule("NoSchedule", time=BEFORE)
    KIND.strategy.stamp(same, rule(time=BEFORE), NOW)
    KIND.strategy.stamp(other, rule(time=BEFORE), NOW)
    assert (same["spec"]["taint"]["timeAdded"], other["spec"]["taint"]["timeAdded"]) == (BEFORE, NOW)


def test_taints_in_slices_get_a_time_too() -> None:
    made: Any = {"spec": {"devices": [{"name": "a"}, {"name": "b", "taints": [{"key": "k", "effect": "NoExecute"}]}]}}
    resourceslice.KIND.strategy.stamp(made, None, NOW)
    assert made["spec"]["devices"][1]["taints"][0]["timeAdded"] == NOW


def test_kubectl_shows_the_taint() -> None:
    resource = BY_KIND["resource.k8s.io/v1", "DeviceTaintRule"]
    assert cells_of(resource, rule(), 0) == ["r", "example.com/broken", "", "NoExecute", "", "<unknown>"]


def test_it_is_served_from_1_37_on() -> None:
    kinds = [{one.kind for one in served_by(version)} for version in ("v1.36.4", "v1.37.1")]
    assert ["DeviceTaintRule" in each for each in kinds] == [False, True]
    old = Discovery(served_by("1.36")).plain("/apis/resource.k8s.io/v1", "")
    assert old is not None
    assert b"devicetaintrules" not in old.body
