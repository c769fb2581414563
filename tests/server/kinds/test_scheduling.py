"""PodGroups in the versions that kube-apiserver v1.36 does not serve, and what it has turned off in those it does."""

from typing import Any

import pytest

from server.kinds.corpus_groups import Json, thing
from server.kinds.group_writes import created, updated

ALPHA, BETA, PLUGIN = "scheduling.k8s.io/v1alpha2", "scheduling.k8s.io/v1beta1", "scheduling.x-k8s.io/v1alpha1"
GANG: Json = {"gang": {"minCount": 2}}


def group(version: str = ALPHA, **spec: Any) -> Json:
    return thing(version, "PodGroup", {"spec": {"schedulingPolicy": GANG, **spec}})


def fields(body: Json) -> list[str]:
    return [cause.field for cause in created(body).causes]


def test_a_group_keeps_the_topology_it_asks_for() -> None:
    constraints = {"topology": [{"key": "topology.kubernetes.io/zone"}]}
    made = created(group(schedulingConstraints=constraints))
    assert made.causes == []
    assert made.object["spec"]["schedulingConstraints"] == constraints


@pytest.mark.parametrize(
    "spec, wrong",
    [
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "spec.schedulingConstraints.topology"),
        ({"schedulingConstraints": {"topology": [{"key": "a b"}]}}, "spec.schedulingConstraints.topology[0].key"),
        ({"schedulingConstraints": {"topology": [{}]}}, "spec.schedulingConstraints.topology[0].key"),
        ({"resourceClaims": [{"name": "c"}]}, "spec.resourceClaims[0]"),
        ({"resourceClaims": [{"name": "C", "resourceClaimName": "x"}]}, "spec.resourceClaims[0].name"),
        ({"resourceClaims": [{"name": f"c{n}", "resourceClaimName": "x"} for n in range(5)]}, "spec.resourceClaims"),
        ({"disruptionMode": "Odd"}, "spec.disruptionMode"),
        ({"priorityClassName": "A"}, "spec.priorityClassName"),
        ({"priority": 1_000_000_001}, "spec.priority"),
        ({"podGroupTemplateRef": {}}, "spec.podGroupTemplateRef"),
        (
            {"podGroupTemplateRef": {"workload": {"workloadName": "w"}}},
            "spec.podGroupTemplateRef.workload.podGroupTemplateName",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_group_may_not_ask_for(spec: Json, wrong: str) -> None:
    assert fields(group(**spec)) == [wrong]


def test_a_group_of_the_next_version_names_its_workload_in_its_own_way() -> None:
    assert fields(group(BETA, workloadRef={"workloadName": "w", "templateName": "t"})) == []
    assert fields(group(BETA, workloadRef={"workloadName": "W"})) == [
        "spec.workloadRef.workloadName",
        "spec.workloadRef.templateName",
    ]


def test_a_group_is_disrupted_pod_by_pod_unless_it_says_otherwise() -> None:
    assert created(group(ALPHA)).object["spec"]["disruptionMode"] == "Pod"
    assert created(group(BETA)).object["spec"]["disruptionMode"] == {"single": {}}


def test_how_many_make_a_gang_may_change_in_the_next_version_and_not_before() -> None:
    for version, wrong in ((ALPHA, ["spec.schedulingPolicy"]), (BETA, [])):
        old = created(group(version)).object
        new = {**old, "spec": {**old["spec"], "schedulingPolicy": {"gang": {"minCount": 3}}}}
        assert [cause.field for cause in updated(old, new).causes] == wrong


def test_a_gang_stays_one() -> None:
    old = created(group(BETA)).object
    new = {**old, "spec": {**old["spec"], "schedulingPolicy": {"basic": {}}}}
    assert [cause.field for cause in updated(old, new).causes] == [
        "spec.schedulingPolicy.basic",
        "spec.schedulingPolicy.gang",
    ]
    none = {**old, "spec": {**old["spec"], "schedulingPolicy": {"gang": {"minCount": -1}}}}
    assert [cause.field for cause in updated(old, none).causes] == ["spec.schedulingPolicy.gang.minCount"]


def test_nothing_of_a_group_may_change() -> None:
    old = created(group(BETA)).object
    new = {**old, "spec": {**old["spec"], "priority": 5}}
    assert [cause.field for cause in updated(old, new).causes] == ["spec.priority"]


def test_claims_in_the_status_of_a_group_are_claims_of_the_group() -> None:
    old = created(group(resourceClaims=[{"name": "c", "resourceClaimName": "x"}])).object
    new = {**old, "status": {"resourceClaimStatuses": [{"name": "c"}, {"name": "d"}]}}
    causes = updated(old, new, "status").causes
    assert [cause.field for cause in causes] == ["status.resourceClaimStatuses[1].name"]


def test_the_plugin_s_group_counts_from_nothing() -> None:
    assert fields(thing(PLUGIN, "PodGroup", {"spec": {"minMember": 3}})) == []
    assert fields(thing(PLUGIN, "PodGroup", {"spec": {"minMember": -1}})) == ["spec.minMember"]
