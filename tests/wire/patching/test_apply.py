"""Server-side apply, and the owners that all other writes leave behind."""

from typing import Any

import msgspec
import pytest

from situate.wire.patching import LAST_APPLIED, ApplyConflictError, FieldWriter, PatchError, applied, updated
from wire.patching.strategies import Json

NOW, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:00:00Z"


def writer(manager: str, now: str = NOW, subresource: str = "") -> FieldWriter:
    return FieldWriter(manager, "apps/v1", "Deployment", now, subresource)


def deployment(spec: Json | None = None, **metadata: Any) -> Json:
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", **metadata}}
    return found | ({"spec": spec} if spec else {})


def pod(*containers: Json) -> Json:
    return {"template": {"spec": {"containers": list(containers)}}}


def fields(item: Json, manager: str, operation: str = "Apply") -> Any:
    """What a manager owns; None if that is nothing."""
    entries = item["metadata"].get("managedFields", [])
    return next((e["fieldsV1"] for e in entries if (e["manager"], e["operation"]) == (manager, operation)), None)


def content(item: Json) -> Json:
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    return {**item, "metadata": metadata}


def test_an_applier_owns_what_it_applied_and_nothing_else() -> None:
    live = updated(None, deployment({"paused": True}), writer("maker"))
    found = applied(live, deployment({"replicas": 3}, labels={"a": "1"}), writer("me"))
    assert content(found) == deployment({"paused": True, "replicas": 3}, labels={"a": "1"})
    assert fields(found, "me") == {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:replicas": {}}}
    assert fields(found, "maker", "Update") == {"f:spec": {"f:paused": {}}}


def test_what_is_applied_no_more_goes() -> None:
    live = applied(None, deployment(pod({"name": "a"}, {"name": "b"}), labels={"a": "1", "b": "2"}), writer("me"))
    found = applied(live, deployment(pod({"name": "b"}), labels={"b": "2"}), writer("me", LATER))
    assert content(found) == deployment(pod({"name": "b"}), labels={"b": "2"})


def test_what_is_applied_no_more_stays_if_somebody_else_owns_it() -> None:
    live = applied(None, deployment(labels={"a": "1", "b": "2"}), writer("me"))
    live = applied(live, deployment(labels={"a": "1"}), writer("other"))
    found = applied(live, deployment(), writer("me", LATER))
    assert content(found) == deployment(labels={"a": "1"})
    assert fields(found, "me") is None


def test_what_others_put_inside_an_item_keeps_the_item() -> None:
    live = applied(None, deployment(pod({"name": "a", "image": "1"}, {"name": "b"})), writer("me"))
    live = applied(live, deployment(pod({"name": "a", "command": ["x"]})), writer("other"))
    found = applied(live, deployment(pod({"name": "b"})), writer("me"))
    assert content(found) == deployment(pod({"name": "a", "command": ["x"]}, {"name": "b"}))


def test_lists_are_merged_by_their_keys_and_defaults_count() -> None:
    ports = [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]
    live = updated(None, deployment(pod({"name": "a", "ports": ports})), writer("maker"))
    named = {"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}
    found = applied(live, deployment(pod(named)), writer("me"))
    merged = [{"containerPort": 80, "protocol": "TCP", "name": "web"}, {"containerPort": 80, "protocol": "UDP"}]
    assert content(found) == deployment(pod({"name": "a", "ports": merged}))


def test_a_list_with_one_owner_is_replaced_as_a_whole() -> None:
    spec = {"template": {"spec": {"tolerations": [{"key": "a"}]}}}
    live = applied(None, deployment(spec), writer("me"))
    other = {"template": {"spec": {"tolerations": [{"key": "b"}]}}}
    found = applied(live, deployment(other), writer("me"))
    assert content(found) == deployment(other)
    assert fields(found, "me") == {"f:spec": {"f:template": {"f:spec": {"f:tolerations": {}}}}}


def test_an_empty_list_says_nothing() -> None:
    live = updated(None, deployment({"replicas": 1}), writer("maker"))
    assert applied(live, deployment(finalizers=[]), writer("me")) == live


def test_null_removes_what_the_applier_may_remove() -> None:
    live = applied(None, deployment({"replicas": 1, "paused": True}), writer("me"))
    found = applied(live, deployment({"replicas": None, "paused": True}), writer("me"))
    assert found["spec"] == {"paused": True}


def test_another_value_for_what_somebody_owns_is_a_conflict() -> None:
    live = updated(None, deployment({"replicas": 1}), writer("kubectl-client-side-apply"))
    with pytest.raises(ApplyConflictError) as conflict:
        applied(live, deployment({"replicas": 2}), writer("me"))
    assert str(conflict.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )
    assert conflict.value.status == 409
    assert conflict.value.causes == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
            "field": ".spec.replicas",
        }
    ]


def test_several_conflicts_are_told_by_manager() -> None:
    live = updated(None, deployment({"replicas": 1, "paused": True}), writer("b"))
    live = updated(live, live | {"status": {"replicas": 1}}, writer("b", subresource="status"))
    live = applied(live, deployment(pod({"name": "x", "image": "1"})), writer("a"))
    config = deployment({"replicas": 2, "paused": False, **pod({"name": "x", "image": "2"})})
    with pytest.raises(ApplyConflictError) as conflict:
        applied(live, config, writer("me"))
    assert str(conflict.value) == (
        'Apply failed with 3 conflicts: conflicts with "a":\n'
        '- .spec.template.spec.containers[name="x"].image\n'
        'conflicts with "b" using apps/v1:\n'
        "- .spec.paused\n"
        "- .spec.replicas"
    )


def test_a_conflict_names_the_subresource() -> None:
    live = updated(None, deployment({"replicas": 1}), writer("maker"))
    live = updated(live, live | {"status": {"replicas": 1}}, writer("b", subresource="status"))
    with pytest.raises(
        ApplyConflictError, match=r'conflict with "b" with subresource "status" using apps/v1: \.status'
    ):
        applied(live, deployment() | {"status": {"replicas": 2}}, writer("me", subresource="status"))


def test_the_same_value_is_no_conflict_and_owned_by_both() -> None:
    live = updated(None, deployment({"replicas": 1}), writer("maker"))
    found = applied(live, deployment({"replicas": 1}), writer("me"))
    assert fields(found, "me") == fields(found, "maker", "Update") == {"f:spec": {"f:replicas": {}}}


def test_force_takes_it() -> None:
    live = updated(None, deployment({"replicas": 1, "paused": True}), writer("maker"))
    found = applied(live, deployment({"replicas": 2}), writer("me"), force=True)
    assert found["spec"] == {"paused": True, "replicas": 2}
    assert fields(found, "maker", "Update") == {"f:spec": {"f:paused": {}}}


def test_an_update_takes_what_it_changes_without_asking() -> None:
    live = applied(None, deployment({"replicas": 1, "paused": True}), writer("me"))
    found = updated(live, live | {"spec": {"replicas": 2, "paused": True}}, writer("other", LATER))
    assert fields(found, "me") == {"f:spec": {"f:paused": {}}}
    assert fields(found, "other", "Update") == {"f:spec": {"f:replicas": {}}}
    assert [entry["time"] for entry in found["metadata"]["managedFields"]] == [NOW, LATER]


def test_an_update_that_changes_nothing_leaves_no_trace() -> None:
    live = updated(None, deployment({"replicas": 1}), writer("maker"))
    assert updated(live, live, writer("other", LATER)) == live


def test_what_an_update_removes_nobody_owns() -> None:
    live = applied(None, deployment({"replicas": 1}, labels={"a": "1"}), writer("me"))
    found = updated(live, deployment({"replicas": 1}), writer("other"))
    assert fields(found, "me") == {"f:spec": {"f:replicas": {}}}
    assert fields(found, "other", "Update") is None


def test_status_is_written_by_its_own_way_only() -> None:
    live = updated(None, deployment({"replicas": 1}) | {"status": {"replicas": 1}}, writer("maker"))
    assert fields(live, "maker", "Update") == {"f:spec": {"f:replicas": {}}}
    found = updated(live, live | {"spec": {}, "status": {"replicas": 2}}, writer("agent", subresource="status"))
    assert fields(found, "agent", "Update") == {"f:status": {"f:replicas": {}}}
    assert found["metadata"]["managedFields"][0]["subresource"] == "status"
    assert fields(found, "maker", "Update") == {"f:spec": {"f:replicas": {}}}


def test_what_was_there_before_the_first_apply_has_an_owner_then() -> None:
    found = applied(deployment({"replicas": 1}, uid="u"), deployment({"paused": True}), writer("me"))
    assert fields(found, "before-first-apply", "Update") == {"f:spec": {"f:replicas": {}}}


def test_an_object_without_owners_is_not_tracked_by_updates() -> None:
    found = updated(deployment({"replicas": 1}), deployment({"replicas": 2}), writer("other"))
    assert "managedFields" not in found["metadata"]


@pytest.mark.parametrize("entries", [[], [{}]], ids=["an empty list", "an empty entry"])
def test_owners_are_forgotten_on_demand(entries: list[Json]) -> None:
    live = updated(None, deployment({"replicas": 1}), writer("maker"))
    found = updated(live, deployment({"replicas": 2}, managedFields=entries), writer("other"))
    assert "managedFields" not in found["metadata"]


@pytest.mark.parametrize("entries", [None, [{"manager": "x"}], "x"], ids=repr)
def test_owners_are_kept_from_clients_that_do_not_know_them(entries: Any) -> None:
    live = updated(None, deployment({"replicas": 1}), writer("maker"))
    found = updated(live, deployment({"replicas": 1}, managedFields=entries), writer("other"))
    assert found == live


def test_a_client_may_write_owners_itself_as_kubectl_does_when_it_migrates() -> None:
    live = updated(None, deployment({"replicas": 1}), writer("kubectl-client-side-apply"))
    entry = live["metadata"]["managedFields"][0] | {"manager": "kubectl", "operation": "Apply"}
    found = updated(live, deployment({"replicas": 1}, managedFields=[entry]), writer("kubectl"))
    assert found["metadata"]["managedFields"] == [entry]
    assert content(applied(found, deployment({"paused": True}), writer("kubectl"))) == deployment({"paused": True})


def client_side(labels: Json) -> Json:
    written = deployment({"replicas": 1}, labels=labels)
    annotations = {LAST_APPLIED: msgspec.json.encode(written).decode()}
    return updated(None, deployment({"replicas": 1}, labels=labels, annotations=annotations), writer("csa"))


def test_kubectl_may_change_what_client_side_apply_wrote() -> None:
    found = applied(client_side({"a": "1"}), deployment({"replicas": 2}, labels={"a": "1"}), writer("kubectl"))
    assert found["spec"] == {"replicas": 2}
    assert msgspec.json.decode(found["metadata"]["annotations"][LAST_APPLIED])["spec"] == {"replicas": 2}


def test_nobody_else_may() -> None:
    with pytest.raises(ApplyConflictError):
        applied(client_side({"a": "1"}), deployment({"replicas": 2}), writer("another"))


def test_a_configuration_has_a_limit() -> None:
    with pytest.raises(PatchError, match="The allowed maximum fields in an applied configuration is 10000") as refused:
        applied(None, deployment(labels={str(number): "" for number in range(10_001)}), writer("me"))
    assert refused.value.status == 413


def test_a_definition_may_have_more_values_because_its_schemas_name_all_fields_of_a_kind() -> None:
    version, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"

    def definition(count: int) -> Json:
        labels = {str(number): "" for number in range(count)}
        return {"apiVersion": version, "kind": kind, "metadata": {"name": "d", "labels": labels}}

    me = FieldWriter("me", version, kind, NOW, "")
    assert len(applied(None, definition(12_000), me)["metadata"]["labels"]) == 12_000
    with pytest.raises(PatchError, match="The allowed maximum fields in an applied configuration is 32768"):
        applied(None, definition(32_769), me)


@pytest.mark.parametrize(
    "config, message",
    [
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, "invalid object type: v1, Kind=Pod", id="another kind"),
        pytest.param({}, "invalid object type", id="no kind"),
        pytest.param(
            deployment(managedFields=[]), "metadata.managedFields must be nil", id="owners in a configuration"
        ),
        pytest.param(deployment() | {"metadata": 1}, "metadata must be an object", id="metadata that is none"),
        pytest.param(
            deployment(pod({"name": "a"}, {"name": "a"})),
            'containers: duplicate entries for key .name="a".',
            id="an item twice",
        ),
        pytest.param(
            deployment({"template": {"spec": {"containers": ["a"]}}}), "non-map elements", id="an item, no object"
        ),
        pytest.param(
            deployment(finalizers=[{}]), "a list of scalars has an item that is none", id="an object in a set"
        ),
    ],
)
def test_a_bad_configuration_is_refused(config: Json, message: str) -> None:
    with pytest.raises(PatchError, match=message) as refused:
        applied(None, config, writer("me"))
    assert refused.value.status == 400
