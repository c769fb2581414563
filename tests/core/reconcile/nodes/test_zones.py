"""How fast lost nodes are given up."""

from __future__ import annotations

import pytest

from core.reconcile.nodes.cases import NOT_READY, T0, UNREACHABLE, gone, node, patched, seen
from situate.core.model.managed_node import ManagedNode
from situate.core.reconcile.api_values import SECOND, format_time
from situate.core.reconcile.effects import UpdateObject
from situate.core.reconcile.nodes.fencing import KUBERNETES
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.zones import LOOK_MS, Zone, spacing, taint_lost_nodes
from situate.core.reconcile.objects import ObjectIndex

LATE = T0 + 200 * SECOND


def zone(name: str, up: int, down: int, ready: str = "Unknown") -> list[ManagedNode]:
    return [node(f"{name}-{at:03}", "True" if at < up else ready, zone=name) for at in range(up + down)]


def up_and_heard(nodes: list[ManagedNode], now: int = LATE, since: int | None = None) -> Heartbeats:
    """Those that are ready have just renewed; the others were heard of long ago."""
    heartbeats = seen(*nodes, since=since)
    for one in nodes:
        heartbeats.node_seen(one, one, now)
        if one.status.conditions and one.status.conditions[-1].status == "True":
            heartbeats.lease_seen(one.metadata.name, "u", "x", "1", now)
    return heartbeats


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
        pytest.param(4, 2, 2, None, id="one of the silent ones may be lost, and not the other"),
    ],
)
def test_how_far_apart_nodes_of_a_zone_are_given_up(nodes: int, down: int, silent: int, apart: int | None) -> None:
    assert spacing(Zone(nodes, down, silent), KUBERNETES) == apart


def test_of_each_zone_one_is_given_up_at_a_time_the_longest_lost_first() -> None:
    nodes = [*zone("a", 6, 2), *zone("b", 6, 2, "False"), *zone("c", 6, 0)]
    outcome = taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes), LATE)
    assert patched(outcome.effects) == ["UpdateObject a-006", "UpdateObject b-006"]
    first, second = outcome.effects
    assert isinstance(first, UpdateObject)
    assert isinstance(second, UpdateObject)
    assert first.patch["spec"]["taints"] == [
        {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": format_time(LATE)}
    ]
    assert second.patch["spec"]["taints"][0]["key"] == NOT_READY


def test_the_next_is_given_up_when_the_rate_allows_by_the_time_on_the_last_ones_taint() -> None:
    nodes = [*zone("a", 6, 2), node("a-given", "Unknown", gone(LATE - 5 * SECOND), zone="a")]
    outcome = taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes), LATE)
    assert outcome.effects == ()
    assert outcome.requeue_at == LATE + LOOK_MS
    later = LATE + 6 * SECOND
    assert patched(taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes, later), later).effects) == [
        "UpdateObject a-006"
    ]


def test_a_node_that_was_given_up_and_is_back_or_gone_still_counts() -> None:
    nodes = zone("a", 6, 1)
    given = node("a-given", "Unknown", gone(LATE - 5 * SECOND), zone="a")
    heartbeats = up_and_heard([*nodes, given])
    heartbeats.node_seen(given, node("a-given", "True", zone="a"), LATE)
    assert taint_lost_nodes(ObjectIndex(nodes), heartbeats, LATE).effects == ()
    heartbeats.node_gone(node("a-given", "True", zone="a"), LATE)
    assert taint_lost_nodes(ObjectIndex(nodes), heartbeats, LATE).effects == ()


def test_a_taint_of_the_future_does_not_stop_a_zone() -> None:
    nodes = [*zone("a", 6, 1), node("a-given", "Unknown", gone(LATE + 10**9), zone="a")]
    heartbeats = up_and_heard(nodes)
    assert taint_lost_nodes(ObjectIndex(nodes), heartbeats, LATE).effects == ()
    later = LATE + 11 * SECOND
    assert patched(taint_lost_nodes(ObjectIndex(nodes), heartbeats, later).effects) == ["UpdateObject a-006"]


def test_none_is_given_up_in_the_first_whole_grace_after_a_beginning() -> None:
    nodes = zone("a", 6, 1, "False")
    outcome = taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes, since=LATE - 49 * SECOND), LATE)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + SECOND)
    assert taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes, since=LATE - 50 * SECOND), LATE).effects != ()


def test_a_large_zone_of_which_most_is_lost_waits_for_a_whole_turn_after_a_beginning() -> None:
    nodes = zone("a", 10, 50, "False")
    assert taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes, since=LATE - 99 * SECOND), LATE).effects == ()
    assert len(taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes, since=LATE - 100 * SECOND), LATE).effects) == 1


def test_none_is_given_up_by_who_sees_no_leases() -> None:
    nodes = zone("a", 6, 1)
    heartbeats = up_and_heard(nodes)
    heartbeats.end()
    assert taint_lost_nodes(ObjectIndex(nodes), heartbeats, LATE).effects == ()


def test_when_everything_is_lost_none_is_given_up_and_those_that_were_are_taken_back() -> None:
    nodes = [*zone("a", 0, 3), *zone("b", 0, 2), node("b-given", "Unknown", gone(), zone="b")]
    outcome = taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes), LATE)
    (effect,) = outcome.effects
    assert isinstance(effect, UpdateObject)
    assert (effect.ref.name, effect.patch) == ("b-given", {"spec": {"taints": None}})


def test_a_zone_that_is_lost_whole_is_given_up_at_the_usual_rate_while_another_is_not() -> None:
    nodes = [*zone("a", 0, 3), *zone("b", 2, 0)]
    assert patched(taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes), LATE).effects) == ["UpdateObject a-000"]


def test_if_all_fall_silent_at_once_the_first_is_not_given_up_for_being_the_first() -> None:
    nodes = [*zone("a", 5, 1), *zone("b", 3, 0)]
    heartbeats = up_and_heard(nodes, LATE - 31 * SECOND)
    outcome = taint_lost_nodes(ObjectIndex(nodes), heartbeats, LATE)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + LOOK_MS)


def test_a_node_that_is_heard_of_again_is_not_given_up_before_it_says_how_it_is() -> None:
    nodes = zone("a", 6, 1)
    heartbeats = up_and_heard(nodes)
    heartbeats.lease_seen("a-006", "u", "y", "2", LATE - SECOND)
    assert taint_lost_nodes(ObjectIndex(nodes), heartbeats, LATE).effects == ()


def test_nodes_that_are_excluded_do_not_count_and_are_given_up_all_the_same() -> None:
    labels = {"node.kubernetes.io/exclude-disruption": ""}
    nodes = [*zone("a", 3, 0), *(node(f"x{at}", "False", zone="a", labels=labels) for at in range(9))]
    assert patched(taint_lost_nodes(ObjectIndex(nodes), up_and_heard(nodes), LATE).effects) == ["UpdateObject x0"]


def test_the_first_node_that_is_back_after_all_were_lost_gives_the_others_a_grace() -> None:
    nodes = zone("a", 0, 4)
    heartbeats = up_and_heard(nodes)
    back = node("a-000", "True", zone="a")
    heartbeats.node_seen(nodes[0], back, LATE)
    objects = ObjectIndex([back, *nodes[1:]])
    assert taint_lost_nodes(objects, heartbeats, LATE).requeue_at == LATE + 50 * SECOND + 1
    later = LATE + 51 * SECOND
    heartbeats.lease_seen("a-000", "u", "x", "1", later)
    assert taint_lost_nodes(objects, heartbeats, later).effects == ()  # three of four: rather our fault than theirs
