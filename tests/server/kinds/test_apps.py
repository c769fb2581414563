"""apps/v1, beyond what was recorded: changes of what was let in long ago, and counters that only grow."""

import copy

import pytest

from server.kinds.corpus_groups import Json, daemon_set, deployment, merged, replica_set, stateful_set
from server.kinds.group_writes import created, strategy_of, updated
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.int_or_percent import check_at_most_100_percent, number_in
from situate.server.resources import BY_KIND


def changed(old: Json, patch: Json) -> Json:
    found: Json = merged(copy.deepcopy(old), patch)
    return found


@pytest.mark.parametrize("make", [deployment, stateful_set, daemon_set], ids=["Deployment", "StatefulSet", "DaemonSet"])
def test_a_collision_count_may_not_go_back(make: object) -> None:
    assert callable(make)
    old = created(make()).object
    old["status"] = merged(old["status"], {"collisionCount": 3})
    for patch in ({"status": {"collisionCount": 2}}, {"status": {"collisionCount": None}}):
        causes = updated(old, changed(old, patch), "status").causes
        assert [cause.field for cause in causes] == ["status.collisionCount"]
        assert causes[0].message.endswith("cannot be decremented")


def test_a_template_that_was_let_in_once_is_not_refused_when_a_stateful_set_is_scaled() -> None:
    old = created(stateful_set()).object
    old["spec"]["template"]["spec"]["containers"][0]["name"] = "Not_A_Name"
    assert updated(old, changed(old, {"spec": {"replicas": 5}})).causes == []


def test_status_of_an_object_is_nobody_s_to_change_by_an_update() -> None:
    old = created(replica_set()).object
    old["status"] = {"replicas": 2}
    assert updated(old, changed(old, {"status": {"replicas": 7}})).object["status"] == {"replicas": 2}


def test_a_template_counts_its_changes_by_itself() -> None:
    old = created(daemon_set()).object
    key = "deprecated.daemonset.template.generation"
    new = updated(old, changed(old, {"metadata": {"annotations": {key: "99"}}, "spec": {"minReadySeconds": 1}})).object
    assert (new["metadata"]["annotations"][key], new["metadata"]["generation"]) == ("1", 2)
    newer = updated(new, changed(new, {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}})).object
    assert (newer["metadata"]["annotations"][key], newer["metadata"]["generation"]) == ("2", 3)


def test_replica_sets_can_be_found_by_how_many_pods_they_have() -> None:
    strategy = strategy_of(BY_KIND["apps/v1", "ReplicaSet"])
    assert strategy.selectable({"status": {"replicas": 3}}) == {"status.replicas": "3"}
    assert strategy.selectable({}) == {"status.replicas": "0"}


def test_a_percentage_with_thousands_of_digits_is_compared_not_converted() -> None:
    causes = Causes()
    check_at_most_100_percent("9" * 5_000 + "%", "spec.x", causes)
    check_at_most_100_percent("0" * 5_000 + "%", "spec.y", causes)
    assert [one.field for one in causes] == ["spec.x"]
    assert number_in("0" * 5_000 + "%") == 0
    assert number_in("9" * 5_000 + "%") > 0
