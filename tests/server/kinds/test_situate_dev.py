import pytest

from server.kinds.checking import found_by
from server.kinds.group_writes import strategy_of
from situate.server.requests import Object
from situate.server.resources import BY_KIND

DECISIONS = strategy_of(BY_KIND["situate.dev/v1alpha1", "PlacementDecision"])
SNAPSHOTS = strategy_of(BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"])


def test_a_decision_is_about_a_pod_and_in_a_known_phase() -> None:
    assert (
        found_by(DECISIONS.validate, {"spec": {"podUID": "u", "bindingVersion": 1}, "status": {"phase": "bound"}}) == []
    )
    wrong: Object = {"spec": {"bindingVersion": -1}, "status": {"phase": "lost"}}
    assert [cause.field for cause in found_by(DECISIONS.validate_update, wrong, {})] == [
        "spec.podUID",
        "spec.bindingVersion",
        "status.phase",
    ]


@pytest.mark.parametrize("missing", ["namespace", "name", "uid"])
def test_a_snapshot_says_all_of_each_pod(missing: str) -> None:
    pod = {"namespace": "default", "name": "p", "uid": "u"}
    assert found_by(SNAPSHOTS.validate, {"spec": {"pods": [pod]}}) == []
    del pod[missing]
    assert [cause.field for cause in found_by(SNAPSHOTS.validate_update, {"spec": {"pods": [pod]}}, {})] == [
        f"spec.pods[0].{missing}"
    ]
