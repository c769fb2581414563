"""How fast lost nodes are given up."""

from __future__ import annotations

import pytest

from core.reconcile.nodes.cases import NOT_READY, T0, UNREACHABLE, gone, node, patched, seen
from situate.core.model.managed_node import ManagedNode
from situate.core.reconcile.effects import UpdateObject
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.core.reconcile.nodes.sightings import Sightings
from situate.core.reconcile.nodes.zones import LOOK_MS, Zone, spacing, survey
from situate.core.reconcile.objects import Held
from situate.core.reconcile.reckon import SECOND, stamp

LATE = T0 + 200 * SECOND


def zone(name: str, up: int, down: int, ready: str = "Unknown") -> list[ManagedNode]:
    return [node(f"{name}-{at:03}", "True" if at < up else ready, zone=name) for at in range(up + down)]


def up_and_heard(nodes: list[ManagedNode], now: int = LATE, since: int | None = None) -> Sightings:
    """Those that are ready have just renewed; the others were heard of long ago."""
    sightings = seen(*nodes, since=since)
    for one in nodes:
        sightings.node_seen(one, one, now)
        if one.status.conditions and one.status.conditions[-1].status == "True":
            sightings.lease_seen(one.metadata.name, "u", "x", "1", now)
    return sightings


@pytest.mark.parametrize(
    "nodes, down, silent, apart",
    [
        pytest.param(10, 1, 0, 10_000, id="one of ten"),
        pytest.param(10, 5, 0, 10_000, id="half"),
        pytest.param(3, 2, 0, 10_000, id="two of three are not many"),
        pytest.param(4, 3, 0, None, id="three of four in a small zone"),
        pytest.param(20, 11, 0, None, id="55 % of a small zone"),
        pytest.param(50, 28, 0, None, id="fifty are not a large zone"),
        pytest.param(60, 32, 0, 10_000, id="less than 55 % of a large zone"),
        pytest.param(60, 33, 0, 100_000, id="55 % of a large zone"),
        pytest.param(60, 60, 0, 10_000, id="all of it"),
        pytest.param(4, 1, 2, None, id="silent ones hold others up"),
        pytest.param(4, 3, 1, None, id="silent ones do not make a zone lost"),
    ],
)
def test_how_far_apart_nodes_of_a_zone_are_given_up(nodes: int, down: int, silent: int, apart: int | None) -> None:
    assert spacing(Zone(nodes, down, silent), KUBERNETES) == apart


def test_of_each_zone_one_is_given_up_at_a_time_the_longest_lost_first() -> None:
    nodes = [*zone("a", 6, 2), *zone("b", 6, 2, "False"), *zone("c", 6, 0)]
    outcome = survey(Held(nodes), up_and_heard(nodes), LATE)
    assert patched(outcome.effects) == ["UpdateObject a-006", "UpdateObject b-006"]
    first, second = outcome.effects
    assert isinstance(first, UpdateObject)
    assert isinstance(second, UpdateObject)
    assert first.patch["spec"]["taints"] == [{"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": stamp(LATE)}]
    assert second.patch["spec"]["taints"][0]["key"] == NOT_READY


def test_the_next_is_given_up_when_the_rate_allows_by_the_time_on_the_last_ones_taint() -> None:
    nodes = [*zone("a", 6, 2), node("a-given", "Unknown", gone(LATE - 5 * SECOND), zone="a")]
    outcome = survey(Held(nodes), up_and_heard(nodes), LATE)
    assert outcome.effects == ()
    assert outcome.again_at == LATE + LOOK_MS
    later = LATE + 6 * SECOND
    assert patched(survey(Held(nodes), up_and_heard(nodes, later), later).effects) == ["UpdateObject a-006"]


def test_a_node_that_was_given_up_and_is_back_or_gone_still_counts() -> None:
    nodes = zone("a", 6, 1)
    given = node("a-given", "Unknown", gone(LATE - 5 * SECOND), zone="a")
    sightings = up_and_heard([*nodes, given])
    sightings.node_seen(given, node("a-given", "True", zone="a"), LATE)
    assert survey(Held(nodes), sightings, LATE).effects == ()
    sightings.node_gone(node("a-given", "True", zone="a"), LATE)
    assert survey(Held(nodes), sightings, LATE).effects == ()


def test_a_taint_of_the_future_does_not_stop_a_zone() -> None:
    nodes = [*zone("a", 6, 1), node("a-given", "Unknown", gone(LATE + 10**9), zone="a")]
    sightings = up_and_heard(nodes)
    assert survey(Held(nodes), sightings, LATE).effects == ()
    later = LATE + 11 * SECOND
    assert patched(survey(Held(nodes), sightings, later).effects) == ["UpdateObject a-006"]


def test_none_is_given_up_in_the_first_whole_grace_after_a_beginning() -> None:
    nodes = zone("a", 6, 1, "False")
    outcome = survey(Held(nodes), up_and_heard(nodes, since=LATE - 49 * SECOND), LATE)
    assert (outcome.effects, outcome.again_at) == ((), LATE + SECOND)
    assert survey(Held(nodes), up_and_heard(nodes, since=LATE - 50 * SECOND), LATE).effects != ()


def test_a_large_zone_of_which_most_is_lost_waits_for_a_whole_turn_after_a_beginning() -> None:
    nodes = zone("a", 10, 50, "False")
    assert survey(Held(nodes), up_and_heard(nodes, since=LATE - 99 * SECOND), LATE).effects == ()
    assert len(survey(Held(nodes), up_and_heard(nodes, since=LATE - 100 * SECOND), LATE).effects) == 1


def test_none_is_given_up_by_who_sees_no_leases() -> None:
    nodes = zone("a", 6, 1)
    sightings = up_and_heard(nodes)
    sightings.end()
    assert survey(Held(nodes), sightings, LATE).effects == ()


def test_when_everything_is_lost_none_is_given_up_and_those_that_were_are_taken_back() -> None:
    nodes = [*zone("a", 0, 3), *zone("b", 0, 2), node("b-given", "Unknown", gone(), zone="b")]
    outcome = survey(Held(nodes), up_and_heard(nodes), LATE)
    (effect,) = outcome.effects
    assert isinstance(effect, UpdateObject)
    assert (effect.ref.name, effect.patch) == ("b-given", {"spec": {"taints": None}})


def test_a_zone_that_is_lost_whole_is_given_up_at_the_usual_rate_while_another_is_not() -> None:
    nodes = [*zone("a", 0, 3), *zone("b", 2, 0)]
    assert patched(survey(Held(nodes), up_and_heard(nodes), LATE).effects) == ["UpdateObject a-000"]


def test_if_all_fall_silent_at_once_the_first_is_not_given_up_for_being_the_first() -> None:
    nodes = [*zone("a", 5, 1), *zone("b", 3, 0)]
    sightings = up_and_heard(nodes, LATE - 31 * SECOND)
    outcome = survey(Held(nodes), sightings, LATE)
    assert (outcome.effects, outcome.again_at) == ((), LATE + LOOK_MS)


def test_a_node_that_is_heard_of_again_is_not_given_up_before_it_says_how_it_is() -> None:
    nodes = zone("a", 6, 1)
    sightings = up_and_heard(nodes)
    sightings.lease_seen("a-006", "u", "y", "2", LATE - SECOND)
    assert survey(Held(nodes), sightings, LATE).effects == ()


def test_nodes_that_are_excluded_do_not_count_and_are_given_up_all_the_same() -> None:
    labels = {"node.kubernetes.io/exclude-disruption": ""}
    nodes = [*zone("a", 3, 0), *(node(f"x{at}", "False", zone="a", labels=labels) for at in range(9))]
    assert patched(survey(Held(nodes), up_and_heard(nodes), LATE).effects) == ["UpdateObject x0"]


def test_the_first_node_that_is_back_after_all_were_lost_gives_the_others_a_grace() -> None:
    nodes = zone("a", 0, 4)
    sightings = up_and_heard(nodes)
    back = node("a-000", "True", zone="a")
    sightings.node_seen(nodes[0], back, LATE)
    objects = Held([back, *nodes[1:]])
    assert survey(objects, sightings, LATE).again_at == LATE + 50 * SECOND + 1
    later = LATE + 51 * SECOND
    sightings.lease_seen("a-000", "u", "x", "1", later)
    assert survey(objects, sightings, later).effects == ()  # three of four: rather our fault than theirs
