"""Three schedulers share the work; one after the other is killed. fleet.py is the same for sizes of your own."""

from dataclasses import replace
from pathlib import Path

import pytest

from kubernetes import fleet
from kubernetes.cluster import Cluster
from kubernetes.fleet import POOL, Plan

PLAN = Plan(nodes=40, rate=60, calm_s=5.0, disturbed_s=12.0, kill_every_s=6.0)


@pytest.mark.parametrize("flags", [[], ["--pool-label", POOL]], ids=["all see all nodes", "nodes divided by pool"])
def test_a_fleet_goes_on_at_half_its_pace_at_least_while_members_are_killed(
    control_plane: Cluster, tmp_path: Path, flags: list[str]
) -> None:
    told = fleet.run(tmp_path / "own", replace(PLAN, flags=flags))
    print(told.text())
    assert told.kills >= 2
    assert told.outcome.moved == []
    assert told.outcome.overfull == []
    assert told.outcome.bound == told.made, "a pod was left to nobody"
    assert told.worst_rate >= told.calm_rate / 2


def test_the_share_of_a_member_that_stays_away_is_taken_over_within_its_lease(
    control_plane: Cluster, tmp_path: Path
) -> None:
    """Nobody comes back here; so whatever is bound after the kill is bound by the others."""
    plan = replace(PLAN, calm_s=3.0, disturbed_s=8.0, kill_every_s=8.0, down_s=60.0, lease="2s")
    told = fleet.run(tmp_path / "own", plan)
    print(told.text())
    assert told.outcome.bound == told.made
    assert told.outcome.overfull == []
    # The lease, what it takes to bind what has waited, and one second because times are whole seconds.
    assert told.longest_wait_s <= 2 + 3
