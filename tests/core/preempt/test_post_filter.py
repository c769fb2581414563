"""What is tried for a pod that fits nowhere, and what is said if nothing helps."""

from dataclasses import replace
from typing import Any

from builders import node, pod
from situate.core.contract import Refusal
from situate.core.engine.framework import default_framework
from situate.core.model.pod import Pod
from situate.core.place.diagnosis import diagnose
from situate.core.place.filtering import Filtered, TurnedAway, run_filters
from situate.core.place.profile import Profile
from situate.core.preempt import PostFilterResult, PreemptionOptions, post_filter
from situate.core.state.cluster import Cluster
from situate.core.state.view import View
from situate.core.versions import DEFAULT, V1_37, KubernetesRules

PROFILE = default_framework().profile


def ask(
    waiting: Pod,
    profile: Profile = PROFILE,
    turned_away: TurnedAway | None = None,
    rules: KubernetesRules = DEFAULT,
) -> PostFilterResult:
    """One node, full with a pod of priority 10."""
    cluster = Cluster()
    cluster.add_node(node("n0", cpu="4", pods="10"))
    cluster.add_pod(pod("bound", node_name="n0", cpu="4", priority=10))
    view, kind = View(cluster), cluster.class_of(waiting)
    filtered = run_filters(profile, kind, view)
    if turned_away is not None:
        filtered = Filtered(filtered.codes, filtered.feasible & False, turned_away)
    return post_filter(profile, kind, view, diagnose(profile, kind, view, filtered), PreemptionOptions(rules=rules))


def asking(priority: int, **fields: Any) -> Pod:
    return pod("waiting", cpu="2", priority=priority, **fields)


NO_VICTIMS = "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."


def test_what_helps_is_told_alone() -> None:
    result = ask(asking(20))
    assert (result.node_row, result.code, result.message) == (0, "Success", "")


def test_what_does_not_help_is_told_of_all() -> None:
    result = ask(asking(5))
    assert (result.node_row, result.code, result.message) == (
        None,
        "Unschedulable",
        f"no new claims to deallocate, {NO_VICTIMS}",
    )


def test_1_37_tells_what_helps_and_not_that_no_claim_does() -> None:
    helped, refused = ask(asking(20), rules=V1_37), ask(asking(5), rules=V1_37)
    assert helped.message == "preemption: found a potential placement for pod on node n0, preempting 1 victims"
    assert refused.message == NO_VICTIMS


def test_only_what_is_configured_is_tried() -> None:
    assert ask(asking(5), replace(PROFILE, post_filters=("DefaultPreemption",))).message == NO_VICTIMS
    assert (
        ask(asking(20), replace(PROFILE, post_filters=("DynamicResources",))).message == "no new claims to deallocate"
    )
    nothing = ask(asking(20), replace(PROFILE, post_filters=()))
    assert (nothing.node_row, nothing.code, nothing.message) == (None, "", "")


def test_a_pod_turned_away_before_its_claims_were_looked_at_is_an_error_as_in_kubernetes() -> None:
    result = ask(asking(20), turned_away=TurnedAway("VolumeBinding", Refusal("no"), "VolumeBinding"))
    assert (result.code, result.message) == ("Error", "not found")


def test_a_pod_turned_away_for_good_after_that_is_not_helped_by_preemption() -> None:
    last = PROFILE.before_nodes[-1]
    result = ask(asking(20), turned_away=TurnedAway(last, Refusal("no"), last))
    assert result.message == (
        "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_a_pod_turned_away_for_now_is_helped_where_its_node_can_be_emptied() -> None:
    result = ask(asking(20), turned_away=TurnedAway("VolumeBinding", Refusal("no", eviction_helps=True)))
    assert (result.node_row, [victim.name for victim in result.victims]) == (0, ["bound"])
