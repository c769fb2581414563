"""One pod whose node is lost, tainted, out of service, or not there."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from core.reconcile.nodes.cases import NOT_READY, T0, UNREACHABLE, gone, node, patched, pod, seen, taint, tolerates
from situate.core.model.managed import ManagedPod
from situate.core.model.managed_node import ManagedNode
from situate.core.model.stored import Condition, Owner
from situate.core.reconcile.api_values import SECOND, format_time
from situate.core.reconcile.effects import (
    DeleteObject,
    LeaseVersion,
    PatchStatus,
    RebindPod,
    ReconcileResult,
    RecordEvent,
)
from situate.core.reconcile.nodes.eviction import REBIND, is_at_risk, reconcile_pod_on_node
from situate.core.reconcile.nodes.heartbeats import Heartbeats
from situate.core.reconcile.nodes.taints import OUT_OF_SERVICE
from situate.core.reconcile.nodes.zones import LOOK_MS
from situate.core.reconcile.objects import ObjectIndex

LATE = T0 + 100 * SECOND
OTHER = node("other")
EVICTED = ["PatchStatus p", "DeleteObject p", "RecordEvent p"]


def look(
    one: ManagedPod,
    on: ManagedNode | None,
    now: int = LATE,
    at: int = T0,
    since: int | None = None,
    *,
    other_is_heard: bool = True,
) -> ReconcileResult:
    nodes = [OTHER, *([on] if on is not None else [])]
    heartbeats = seen(*nodes, at=at, since=since)
    if other_is_heard:
        heartbeats.lease_seen("other", "u", "just now", "9", now)
    return reconcile_pod_on_node(one, ObjectIndex([*nodes, one]), heartbeats, now)


def test_nobody_leaves_a_lost_node_while_all_others_have_fallen_silent_though_nobody_has_said_so_yet() -> None:
    lost = node("n", "Unknown", gone())
    assert patched(look(pod(), lost).effects) == EVICTED
    outcome = look(pod(), lost, other_is_heard=False)
    assert outcome.effects == ()
    assert outcome.requeue_at == LATE + LOOK_MS


def test_who_does_not_tolerate_a_taint_leaves_at_once_in_kubernetes_words() -> None:
    status, deletion, event = look(pod(), node("n", "True", taint("mine"))).effects
    assert isinstance(status, PatchStatus)
    assert status.resource_version == "3"
    assert status.patch["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "lastTransitionTime": format_time(LATE),
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
    ]
    assert isinstance(deletion, DeleteObject)
    assert deletion.grace_s is None
    assert deletion.ref.uid == "uid-p"
    assert isinstance(event, RecordEvent)
    assert (event.reason, event.message) == ("TaintManagerEviction", "Marking for deletion Pod default/p")


@pytest.mark.parametrize(
    "one, on, leaves_at",
    [
        pytest.param(pod(), node(), None, id="nothing to tolerate"),
        pytest.param(
            pod(), node("n", "True", taint("mine", "NoSchedule")), None, id="a taint that only keeps others away"
        ),
        pytest.param(pod("p", tolerates()), node("n", "True", taint("mine")), None, id="tolerated for ever"),
        pytest.param(pod("p", tolerates("mine", 0)), node("n", "True", taint("mine")), LATE, id="tolerated for 0 s"),
        pytest.param(
            pod("p", tolerates("mine", 300)), node("n", "True", taint("mine")), T0 + 300 * SECOND, id="for a while yet"
        ),
        pytest.param(pod("p", tolerates("mine", 99)), node("n", "True", taint("mine")), LATE, id="for long enough"),
        pytest.param(
            pod("p", tolerates("mine", 5)),
            node("n", "True", taint("mine", at=None)),
            None,
            id="since a time that is not known yet",
        ),
        pytest.param(
            pod("p", tolerates("mine", 300), tolerates(UNREACHABLE, 200)),
            node("n", "Unknown", taint("mine"), gone()),
            T0 + 200 * SECOND,
            id="two taints, of which one is tolerated for less",
        ),
        pytest.param(
            pod("p", tolerates("mine")),
            node("n", "True", taint("mine"), taint("b")),
            LATE,
            id="one of two is not tolerated",
        ),
        pytest.param(pod(on=""), node("n", "True", taint("mine")), None, id="not bound"),
        pytest.param(pod(deleted=True), node("n", "True", taint("mine")), None, id="being deleted already"),
        pytest.param(pod(), node("n", "Unknown", gone()), LATE, id="not reached, and no patience"),
        pytest.param(pod(), node("n", "False", taint(NOT_READY)), LATE, id="not ready, and no patience"),
        pytest.param(pod(), node("n", "True", gone()), None, id="reached again, and about to lose the taint"),
    ],
)
def test_when_a_pod_leaves(one: ManagedPod, on: ManagedNode, leaves_at: int | None) -> None:
    outcome = look(one, on)
    if leaves_at is not None and leaves_at <= LATE:
        assert patched(outcome.effects) == EVICTED
    else:
        assert (outcome.effects, outcome.requeue_at) == ((), leaves_at)


def test_nobody_leaves_a_lost_node_in_the_first_grace_after_a_beginning() -> None:
    outcome = look(pod(), node("n", "Unknown", gone()), since=LATE - 20 * SECOND)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + 30 * SECOND + 1)


def test_a_taint_that_is_not_ours_is_obeyed_at_once_also_after_a_beginning() -> None:
    assert patched(look(pod(), node("n", "True", taint("mine")), since=LATE).effects) == EVICTED


def test_nobody_leaves_a_node_that_is_heard_of_again() -> None:
    outcome = look(pod(), node("n", "Unknown", gone()), at=LATE - 10 * SECOND)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + 40 * SECOND + 1)


def test_nobody_leaves_when_everything_is_lost() -> None:
    on, one = node("n", "Unknown", gone()), pod()
    outcome = reconcile_pod_on_node(one, ObjectIndex([on, one]), seen(on), LATE)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + LOOK_MS)


def test_what_is_said_already_is_not_said_again() -> None:
    marked = Condition(type="DisruptionTarget", status="True", reason="DeletionByTaintManager")
    assert patched(look(pod(ready=marked), node("n", "True", taint("mine"))).effects) == EVICTED[1:]


# Lost nodes whose agents promise to have stopped


def heard(now: int, renewed_at: int, *, fenced: bool = True, on: ManagedNode | None = None) -> Heartbeats:
    heartbeats = seen(OTHER, on or node("n", "Unknown", gone()))
    heartbeats.lease_seen("other", "u", "just now", "9", now)
    heartbeats.lease_seen("n", "u", "last", "17", renewed_at, 40 * SECOND, fenced=fenced)
    return heartbeats


def look_at_lost(
    one: ManagedPod, renewed_at: int = T0, *, fenced: bool = True, on: ManagedNode | None = None
) -> ReconcileResult:
    lost = on or node("n", "Unknown", gone())
    return reconcile_pod_on_node(
        one, ObjectIndex([OTHER, lost, one]), heard(LATE, renewed_at, fenced=fenced, on=lost), LATE
    )


def rebinding(**fields: Any) -> ManagedPod:
    one = pod(**fields)
    return replace(one, metadata=replace(one.metadata, annotations={REBIND: "true"}))


def test_a_terminating_pod_of_a_node_that_must_have_stopped_is_deleted_if_nobody_has_renewed_the_lease_since() -> None:
    status, deletion = look_at_lost(pod(deleted=True)).effects
    assert isinstance(status, PatchStatus)
    assert isinstance(deletion, DeleteObject)
    assert (status.patch, deletion.grace_s) == ({"phase": "Failed"}, 0)
    assert status.lease == deletion.lease == LeaseVersion("n", "17")


def test_it_stays_until_the_lease_has_expired_by_every_clock() -> None:
    outcome = look_at_lost(pod(deleted=True), LATE - 40 * SECOND)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + 8 * SECOND + 1)


def test_it_stays_until_a_person_acts_if_the_agent_promises_nothing() -> None:
    assert look_at_lost(pod(deleted=True), fenced=False) == ReconcileResult()


def test_it_stays_on_a_node_whose_agent_says_itself_that_it_is_not_ready() -> None:
    assert look_at_lost(pod(deleted=True), on=node("n", "False", taint(NOT_READY))) == ReconcileResult()


def test_while_no_renewals_are_seen_nothing_is_known_to_have_stopped() -> None:
    one, lost = pod(deleted=True), node("n", "Unknown", gone())
    heartbeats = heard(LATE, T0)
    heartbeats.end()
    outcome = reconcile_pod_on_node(one, ObjectIndex([OTHER, lost, one]), heartbeats, LATE)
    assert (outcome.effects, outcome.requeue_at) == ((), LATE + LOOK_MS)


def test_a_pod_that_asks_for_it_is_rebound_instead() -> None:
    rebind, event = look_at_lost(rebinding()).effects
    assert isinstance(rebind, RebindPod)
    assert isinstance(event, RecordEvent)
    assert (rebind.resource_version, rebind.lease) == ("3", LeaseVersion("n", "17"))
    assert event.reason == "Rebinding"


@pytest.mark.parametrize(
    "one, on",
    [
        pytest.param(pod(), None, id="not asked for"),
        pytest.param(rebinding(), node("n", "False", taint(NOT_READY)), id="its agent is there and stops it"),
        pytest.param(
            replace(
                rebinding(),
                metadata=replace(
                    rebinding().metadata, owner_references=(Owner(kind="ReplicaSet", uid="o", controller=True),)
                ),
            ),
            None,
            id="its controller creates another",
        ),
    ],
)
def test_other_pods_are_evicted_as_ever(one: ManagedPod, on: ManagedNode | None) -> None:
    assert patched(look_at_lost(one, on=on).effects) == EVICTED


def test_a_pod_that_asks_to_be_rebound_stays_where_it_is_if_its_node_promises_nothing() -> None:
    assert look_at_lost(rebinding(), fenced=False) == ReconcileResult()
    assert look_at_lost(rebinding(), fenced=False, on=node("n", "True", taint(OUT_OF_SERVICE))) == ReconcileResult()
    out_of_service = node("n", "Unknown", gone(), taint(OUT_OF_SERVICE))
    rebind, _ = look_at_lost(rebinding(), fenced=False, on=out_of_service).effects
    assert isinstance(rebind, RebindPod)


def test_a_pod_of_a_deleted_node_is_rebound_too_when_nobody_can_run_it() -> None:
    one, heartbeats = rebinding(), seen(OTHER)
    heartbeats.node_missed("n", T0)
    objects = ObjectIndex([OTHER, one])
    assert reconcile_pod_on_node(one, objects, heartbeats, T0 + 39 * SECOND).effects == ()
    rebind, _ = reconcile_pod_on_node(one, objects, heartbeats, T0 + 40 * SECOND).effects
    assert isinstance(rebind, RebindPod)
    assert rebind.lease == LeaseVersion("n", "")


# Nodes that are not there


def test_a_pod_whose_node_is_gone_fails_and_goes_after_a_while() -> None:
    one, heartbeats = pod(), seen(OTHER)
    heartbeats.node_missed("n", T0)
    objects = ObjectIndex([OTHER, one])
    early = reconcile_pod_on_node(one, objects, heartbeats, T0 + 39 * SECOND)
    assert (early.effects, early.requeue_at) == ((), T0 + 40 * SECOND)
    status, deletion = reconcile_pod_on_node(one, objects, heartbeats, T0 + 40 * SECOND).effects
    assert isinstance(status, PatchStatus)
    assert status.patch["phase"] == "Failed"
    (condition,) = status.patch["conditions"]
    assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
    assert isinstance(deletion, DeleteObject)
    assert deletion.grace_s == 0


def test_a_pod_whose_node_is_gone_stays_while_its_agent_renews_its_lease() -> None:
    """It may not know that its node was deleted, and runs the pod: no other may be made in its place."""
    one, heartbeats = pod(), seen(OTHER)
    heartbeats.node_missed("n", T0)
    heartbeats.lease_seen("n", "uid", "first", "1", T0 + 30 * SECOND, 40 * SECOND)
    objects = ObjectIndex([OTHER, one])
    look = reconcile_pod_on_node(one, objects, heartbeats, T0 + 40 * SECOND)
    assert (look.effects, look.requeue_at) == ((), T0 + 78 * SECOND + 1)
    heartbeats.lease_seen("n", "uid", "second", "2", T0 + 70 * SECOND, 40 * SECOND)
    look = reconcile_pod_on_node(one, objects, heartbeats, T0 + 78 * SECOND + 1)
    assert (look.effects, look.requeue_at) == ((), T0 + 118 * SECOND + 1)
    assert len(reconcile_pod_on_node(one, objects, heartbeats, T0 + 118 * SECOND + 1).effects) == 2


def test_a_node_is_missed_anew_by_who_begins_anew() -> None:
    one, heartbeats = pod(), seen(OTHER, since=T0)
    heartbeats.node_missed("n", T0 - 1_000 * SECOND)
    assert reconcile_pod_on_node(one, ObjectIndex([one]), heartbeats, T0).requeue_at == T0 + 40 * SECOND


@pytest.mark.parametrize(
    "one, effects",
    [
        (pod(phase="Succeeded"), ["DeleteObject p"]),
        (pod(deleted=True), ["PatchStatus p", "DeleteObject p"]),
        (pod(phase="Failed", deleted=True, finalizers=("x",)), []),
    ],
    ids=["it had ended", "it was being deleted", "it waits for others"],
)
def test_what_is_left_to_do_for_a_pod_whose_node_is_gone(one: ManagedPod, effects: list[str]) -> None:
    heartbeats = seen(OTHER)
    heartbeats.node_missed("n", T0)
    assert patched(reconcile_pod_on_node(one, ObjectIndex([OTHER, one]), heartbeats, LATE).effects) == effects


# Nodes that are out of service


@pytest.mark.parametrize(
    "one, on, effects",
    [
        (pod(deleted=True), node("n", "Unknown", taint("node.kubernetes.io/out-of-service")), True),
        (pod(deleted=True), node("n", "Unknown", taint("node.kubernetes.io/out-of-service", "NoSchedule")), True),
        (pod(deleted=True), node("n", "True", taint("node.kubernetes.io/out-of-service")), False),
        (pod(deleted=True), node("n", "Unknown", gone()), False),
    ],
    ids=["out of service", "by any effect", "but ready", "only not reached"],
)
def test_a_pod_that_is_being_deleted_is_forced_only_off_a_node_that_is_out_of_service(
    one: ManagedPod, on: ManagedNode, effects: bool
) -> None:
    assert patched(look(one, on).effects) == (["PatchStatus p", "DeleteObject p"] if effects else [])


def test_a_stateful_sets_pod_on_a_lost_node_is_deleted_once_and_never_forced() -> None:
    on, one = node("n", "Unknown", gone()), pod()
    owner = Owner(api_version="apps/v1", kind="StatefulSet", name="db", uid="u", controller=True)
    held = type(one.metadata)(name="p", namespace="default", uid="uid-p", owner_references=(owner,))
    first = ManagedPod(metadata=held, spec=one.spec, status=one.status)
    deletions = [each for each in look(first, on).effects if isinstance(each, DeleteObject)]
    assert [each.grace_s for each in deletions] == [None]
    for later in (LATE, LATE + 10_000 * SECOND):
        assert look(pod(deleted=True), on, later).effects == ()


# Pods of silent nodes are not ready


READY = Condition(type="Ready", status="True", last_transition_time=format_time(0))
SPOKEN_FOR = Condition(type="Ready", status="False", reason="NodeStatusUnknown", last_transition_time=format_time(0))


def test_a_pod_of_a_silent_node_is_not_ready_until_the_node_is_back() -> None:
    status, event = look(pod(ready=READY), node("n", "Unknown")).effects
    assert isinstance(status, PatchStatus)
    assert isinstance(event, RecordEvent)
    (condition,) = status.patch["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NodeStatusUnknown")
    assert (event.type, event.reason, event.message) == ("Warning", "NodeNotReady", "Node is not ready")
    assert look(pod(ready=SPOKEN_FOR), node("n", "Unknown")).effects == ()
    (back,) = look(pod(ready=SPOKEN_FOR), node()).effects
    assert isinstance(back, PatchStatus)
    assert back.patch["conditions"] == [{"type": "Ready", "status": "True", "lastTransitionTime": format_time(LATE)}]


def test_what_an_agent_said_itself_is_left_as_it_is() -> None:
    own = Condition(type="Ready", status="False", reason="ContainersNotReady")
    assert look(pod(ready=own), node()).effects == ()
    assert look(pod(ready=READY), node("n", "False")).effects == ()


@pytest.mark.parametrize(
    "one, on, risk",
    [
        (pod(), node(), False),
        (pod(on=""), None, False),
        (pod(), None, True),
        (pod(), node("n", "Unknown"), True),
        (pod(), node("n", "True", taint("mine")), True),
        (pod(ready=SPOKEN_FOR), node(), True),
    ],
    ids=["its node is well", "not bound", "its node is gone", "its node is lost", "a taint", "spoken for"],
)
def test_whom_to_ask_about(one: ManagedPod, on: ManagedNode | None, risk: bool) -> None:
    objects = ObjectIndex([one, *([on] if on is not None else [])])
    assert is_at_risk(one, objects) is risk


def test_a_pod_of_a_deleted_node_is_deleted_only_while_the_nodes_lease_is_the_one_that_expired() -> None:
    heartbeats = seen(OTHER)
    heartbeats.lease_seen("n", "u", "once", "7", T0, 15 * SECOND)
    heartbeats.node_missed("n", T0)
    status, deletion = reconcile_pod_on_node(pod(), ObjectIndex([OTHER, pod()]), heartbeats, LATE).effects
    assert isinstance(status, PatchStatus)
    assert isinstance(deletion, DeleteObject)
    assert status.lease == deletion.lease == LeaseVersion("n", "7")
