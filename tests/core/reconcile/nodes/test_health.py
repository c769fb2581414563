"""One node: when its state is unknown, and which taints it has."""

from __future__ import annotations

import pytest

from core.reconcile.nodes.cases import NOT_READY, T0, UNREACHABLE, gone, node, patched, seen, taint
from situate.core.model.managed_node import ManagedNode, TimedTaint
from situate.core.reconcile.api_values import SECOND, format_time, parse_time
from situate.core.reconcile.effects import PatchStatus, RecordEvent, UpdateObject
from situate.core.reconcile.nodes.fencing import FAST, NodeProfile
from situate.core.reconcile.nodes.health import reconcile_node as look
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import wanted_taints, zone_of

NO_SCHEDULE = "NoSchedule"


def key(name: str) -> str:
    return f"node.kubernetes.io/{name}"


def test_a_node_is_left_alone_while_its_grace_lasts_and_looked_at_when_it_ends() -> None:
    one = node()
    outcome = look(one, seen(one), T0 + 50 * SECOND)
    assert outcome.effects == ()
    assert outcome.requeue_at == T0 + 50 * SECOND + 1


def test_a_node_that_fell_silent_is_unknown_in_kubernetes_words() -> None:
    one = node("n", "True", MemoryPressure="False", NetworkUnavailable="True")
    now = T0 + 51 * SECOND
    status, event = look(one, seen(one), now).effects
    assert isinstance(status, PatchStatus)
    assert status.resource_version == "7"
    found = {each["type"]: each for each in status.patch["conditions"]}
    stopped = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    times = {"lastHeartbeatTime": format_time(0), "lastTransitionTime": format_time(now)}
    assert found["Ready"] == {"type": "Ready", "status": "Unknown", **stopped, **times}
    assert found["MemoryPressure"]["reason"] == "NodeStatusUnknown"
    assert found["DiskPressure"]["reason"] == "NodeStatusNeverUpdated"
    assert found["PIDPressure"]["message"] == "Kubelet never posted node status."
    assert found["NetworkUnavailable"]["status"] == "True"
    assert isinstance(event, RecordEvent)
    assert (event.reason, event.message) == ("NodeNotReady", "Node n status is now: NodeNotReady")


def test_a_node_that_never_said_anything_has_longer() -> None:
    one = node("n", "")
    assert look(one, seen(one), T0 + 59 * SECOND).effects == ()
    assert patched(look(one, seen(one), T0 + 61 * SECOND).effects) == ["PatchStatus n"]


@pytest.mark.parametrize(
    "profile_ms, profile", [(50_000, None), (18_000, FAST)], ids=["kubernetes", "the fast profile"]
)
def test_the_grace_is_the_profiles(profile_ms: int, profile: NodeProfile | None) -> None:
    one = node()
    heartbeats = seen(one) if profile is None else seen(one, profile=profile)
    assert look(one, heartbeats, T0 + profile_ms).effects == ()
    assert look(one, heartbeats, T0 + profile_ms + 1).effects != ()


def test_a_renewal_counts_from_when_it_was_seen_whatever_it_says() -> None:
    one = node()
    heartbeats = seen(one)
    heartbeats.lease_seen("n", "u", "1970-01-01T00:00:00Z", "1", T0 + 40 * SECOND)
    assert look(one, heartbeats, T0 + 90 * SECOND).requeue_at == T0 + 90 * SECOND + 1
    heartbeats.lease_seen("n", "u", "1970-01-01T00:00:00Z", "2", T0 + 80 * SECOND)
    assert patched(look(one, heartbeats, T0 + 91 * SECOND).effects) == ["PatchStatus n", "RecordEvent n"]


def test_a_report_counts_as_a_renewal_and_our_own_word_does_not() -> None:
    one = node()
    heartbeats = seen(one)
    heartbeats.node_seen(one, node("n", "Unknown"), T0 + 30 * SECOND)
    assert heartbeats.last("n") == T0
    said = node("n", "Unknown")
    newer = ManagedNode(metadata=said.metadata, status=type(said.status)(conditions=()))
    heartbeats.node_seen(said, newer, T0 + 40 * SECOND)
    assert heartbeats.last("n") == T0 + 40 * SECOND


def test_nobody_is_silent_until_a_whole_grace_after_a_beginning() -> None:
    one = node()
    heartbeats = seen(one, since=T0 + 500 * SECOND)
    assert look(one, heartbeats, T0 + 550 * SECOND).effects == ()
    assert look(one, heartbeats, T0 + 551 * SECOND).effects != ()


def test_nobody_is_judged_by_who_does_not_see_leases() -> None:
    one = node("n", "True", cordoned=True)
    heartbeats = seen(one)
    heartbeats.end()
    outcome = look(one, heartbeats, T0 + 900 * SECOND)
    assert patched(outcome.effects) == ["UpdateObject n"]  # its cordon is stored, and nothing to judge
    assert outcome.requeue_at is None


def test_what_is_unknown_already_is_not_written_again() -> None:
    kinds = dict.fromkeys(("MemoryPressure", "DiskPressure", "PIDPressure"), "Unknown")
    one = node("n", "Unknown", taint(UNREACHABLE, NO_SCHEDULE), **kinds)  # type: ignore[arg-type]
    assert look(one, seen(one), T0 + 900 * SECOND).effects == ()


@pytest.mark.parametrize(
    "one, wanted",
    [
        pytest.param(node("n", "Unknown"), [(UNREACHABLE, NO_SCHEDULE)], id="not reached"),
        pytest.param(node("n", "False"), [(NOT_READY, NO_SCHEDULE)], id="not ready"),
        pytest.param(node("n", ""), [], id="nothing said yet"),
        pytest.param(node(cordoned=True), [(key("unschedulable"), NO_SCHEDULE)], id="cordoned"),
        pytest.param(
            node(
                "n", "True", MemoryPressure="True", DiskPressure="True", PIDPressure="True", NetworkUnavailable="True"
            ),
            [
                (key(name), NO_SCHEDULE)
                for name in ("memory-pressure", "disk-pressure", "pid-pressure", "network-unavailable")
            ],
            id="every pressure",
        ),
        pytest.param(node("n", "True", MemoryPressure="Unknown"), [], id="a pressure of which nothing is known"),
        pytest.param(
            node("n", "True", taint(UNREACHABLE, NO_SCHEDULE), gone(), taint("mine", NO_SCHEDULE)),
            [("mine", NO_SCHEDULE)],
            id="back, with a taint that is somebody's own",
        ),
        pytest.param(
            node("n", "False", taint(UNREACHABLE, NO_SCHEDULE), gone()),
            [(NOT_READY, "NoExecute"), (NOT_READY, NO_SCHEDULE)],
            id="reached again and not ready",
        ),
        pytest.param(
            node("n", "Unknown", taint(NOT_READY), gone()),
            [(UNREACHABLE, "NoExecute"), (UNREACHABLE, NO_SCHEDULE)],
            id="given up twice over",
        ),
        pytest.param(node("n", "", gone()), [(UNREACHABLE, "NoExecute")], id="nothing said, and given up"),
    ],
)
def test_taints_follow_the_state(one: ManagedNode, wanted: list[tuple[str, str]]) -> None:
    taints = wanted_taints(one, T0 + SECOND)
    assert [(each.key, each.effect) for each in taints] == wanted
    again = ManagedNode(metadata=one.metadata, spec=type(one.spec)(taints=taints, unschedulable=one.spec.unschedulable))
    again = ManagedNode(metadata=one.metadata, spec=again.spec, status=one.status)
    assert wanted_taints(again, T0 + 9 * SECOND) == taints


def test_lost_in_another_way_is_lost_since_then_already() -> None:
    (taint_, _) = wanted_taints(node("n", "False", gone(T0)), T0 + 100 * SECOND)
    assert (taint_.key, parse_time(taint_.time_added)) == (NOT_READY, T0)


def test_a_taint_that_makes_pods_leave_and_has_no_time_gets_one() -> None:
    (found,) = wanted_taints(node("n", "True", taint("mine", at=None)), T0)
    assert found == TimedTaint(key="mine", effect="NoExecute", time_added=format_time(T0))


def test_taints_are_written_whole_and_on_the_version_that_was_read() -> None:
    one = node("n", "True", taint("mine", NO_SCHEDULE), taint(NOT_READY, NO_SCHEDULE))
    (effect,) = look(one, seen(one), T0).effects
    assert isinstance(effect, UpdateObject)
    assert effect.resource_version == "7"
    assert effect.patch == {"spec": {"taints": [{"key": "mine", "effect": NO_SCHEDULE, "timeAdded": format_time(T0)}]}}


@pytest.mark.parametrize(
    "labels, zone",
    [
        ({}, ""),
        ({"topology.kubernetes.io/zone": "a"}, ":\0:a"),
        ({"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}, "r:\0:a"),
        ({"topology.kubernetes.io/zone": "a", "failure-domain.beta.kubernetes.io/zone": "b"}, ":\0:b"),
    ],
    ids=["none", "a zone", "a zone of a region", "the old label goes first"],
)
def test_the_zone_of_a_node(labels: dict[str, str], zone: str) -> None:
    assert zone_of(node(labels=labels)) == zone


def test_a_node_is_not_judged_before_its_own_lease_says_that_it_has_stopped() -> None:
    heartbeats = Heartbeats(FAST)
    heartbeats.begin(T0)
    heartbeats.lease_seen("n", "u", "x", "1", T0, 40 * SECOND)
    assert heartbeats.silent_at("n", FAST.grace_ms) == T0 + 48 * SECOND + 1
    heartbeats.lease_seen("n", "u", "y", "2", T0 + SECOND, 15 * SECOND)
    assert heartbeats.silent_at("n", FAST.grace_ms) == T0 + SECOND + FAST.grace_ms + 1
