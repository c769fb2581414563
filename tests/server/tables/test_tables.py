"""Tables against what kube-apiserver v1.36 printed for the same objects in the same second: data/rows.json."""

import json
from pathlib import Path
from typing import Any

import pytest

from situate.server.resources import BY_KIND, RESOURCES, Resource
from situate.server.tables.printers import cells_of, columns_of, conditions_of, printer_of

NS = 10**9
Json = dict[str, Any]
RECORDED: list[Json] = json.loads((Path(__file__).parent / "data" / "rows.json").read_text())

LISTED = [one for one in RESOURCES if "list" in one.verbs]


def named(row: Json) -> str:
    return f"{row['object']['kind']} {row['object']['metadata']['name']}"


@pytest.mark.parametrize("row", RECORDED, ids=named)
def test_a_row_is_as_kube_apiserver_prints_it(row: Json) -> None:
    obj = row["object"]
    resource = BY_KIND[obj["apiVersion"], obj["kind"]]
    cells = cells_of(resource, obj, row["now"] * NS)
    # As JSON: 1, true and 1.0 are equal in Python.
    assert json.dumps(cells) == json.dumps(row["cells"])
    assert conditions_of(resource, obj) == row["conditions"]


@pytest.mark.parametrize("row", RECORDED, ids=named)
def test_columns_are_kube_apiserver_s(row: Json) -> None:
    resource = BY_KIND[row["object"]["apiVersion"], row["object"]["kind"]]
    ours = [[column[key] for key in ("name", "type", "format", "priority")] for column in columns_of(resource)]
    assert ours == row["columns"]


@pytest.mark.parametrize("resource", LISTED, ids=lambda one: f"{one.api_version} {one.plural}")
def test_an_object_with_nothing_but_a_name_has_a_cell_for_each_column(resource: Any) -> None:
    assert len(cells_of(resource, {"metadata": {"name": "a"}}, 0)) == len(columns_of(resource))


def test_every_column_is_described() -> None:
    for resource in LISTED:
        assert all(column["description"] for column in columns_of(resource))


def test_a_resource_without_columns_of_its_own_shows_when_objects_were_created() -> None:
    role = BY_KIND["rbac.authorization.k8s.io/v1", "Role"]
    obj = {"metadata": {"name": "r", "creationTimestamp": "2026-01-02T03:04:05Z"}}
    assert [column["name"] for column in columns_of(role)] == ["Name", "Created At"]
    assert cells_of(role, obj, 0) == ["r", "2026-01-02T03:04:05Z"]


def test_a_decision_shows_its_node_and_when_asked_for_more_its_score() -> None:
    resource = BY_KIND["situate.dev/v1alpha1", "PlacementDecision"]
    metadata = {"name": "p", "creationTimestamp": "1970-01-01T00:00:00Z"}
    spec = {"podUID": "u", "node": "n1", "bindingVersion": 2}
    bound = {"metadata": metadata, "spec": spec, "status": {"phase": "bound", "score": 71}}
    assert cells_of(resource, bound, 90 * NS) == ["p", "n1", "bound", 2, "90s", "71", "<none>"]
    waiting = {"metadata": metadata, "spec": {"podUID": "u"}, "status": {"phase": "pending", "reason": "Unschedulable"}}
    assert cells_of(resource, waiting, 0) == ["p", "<none>", "pending", 0, "0s", "<none>", "Unschedulable"]


def test_a_snapshot_shows_its_revision_and_how_many_pods_it_counts() -> None:
    resource = BY_KIND["situate.dev/v1alpha1", "NodeSnapshot"]
    metadata = {"name": "n1", "resourceVersion": "17", "creationTimestamp": "1970-01-01T00:00:00Z"}
    assert cells_of(resource, {"metadata": metadata, "spec": {"pods": [{}, {}]}}, NS) == ["n1", "17", 2, "1s"]


@pytest.mark.parametrize(
    "version, condition", [("v1beta1", "PodGroupInitiallyScheduled"), ("v1alpha2", "PodGroupScheduled")]
)
@pytest.mark.parametrize("status, shown", [("True", "Scheduled"), ("False", "Unschedulable")])
def test_a_pod_group_shows_what_the_scheduler_wrote(version: str, condition: str, status: str, shown: str) -> None:
    resource = BY_KIND[f"scheduling.k8s.io/{version}", "PodGroup"]
    conditions = [{"type": condition, "status": status}]
    obj = {"metadata": {"name": "g"}, "spec": {}, "status": {"conditions": conditions}}
    assert cells_of(resource, obj, 0)[3] == shown


def test_a_pod_group_names_its_workload_and_why_it_is_disrupted() -> None:
    resource = BY_KIND["scheduling.k8s.io/v1alpha2", "PodGroup"]
    reference = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}
    conditions = [
        {"type": "PodGroupScheduled", "status": "True"},
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    ]
    obj = {"metadata": {"name": "g"}, "spec": {"podGroupTemplateRef": reference}, "status": {"conditions": conditions}}
    assert cells_of(resource, obj, 0) == ["g", "Basic", "w", "PreemptionByScheduler", "<unknown>"]


def test_what_the_plugins_pod_group_does_not_say_is_null() -> None:
    resource = BY_KIND["scheduling.x-k8s.io/v1alpha1", "PodGroup"]
    obj = {"metadata": {"name": "g"}, "spec": {"minMember": 3}, "status": {"phase": "Pending", "running": 0}}
    assert printer_of(resource)(obj, 0) == ["g", "Pending", 3, 0, None, None, "<unknown>"]


@pytest.mark.parametrize(
    "resource", [one for one in LISTED if one.stored], ids=lambda one: f"{one.api_version} {one.plural}"
)
def test_an_object_that_cannot_be_printed_has_a_row_with_its_name(resource: Resource) -> None:
    odd = {"metadata": {"name": "odd", "creationTimestamp": 7, "labels": 7}, "spec": 7, "status": [7], "data": 7}
    cells = cells_of(resource, odd, NS)
    assert len(cells) == len(columns_of(resource))
    assert "odd" in cells or "<unknown>" in cells
    conditions_of(resource, odd)
