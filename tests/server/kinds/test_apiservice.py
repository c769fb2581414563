"""APIServices, and what they say of whether they are available."""

from server.kinds.checking import found_by
from server.kinds.group_writes import strategy_of
from situate.server.objects import Object
from situate.server.resources import BY_KIND
from situate.server.tables.printers import cells_of

RESOURCE = BY_KIND["apiregistration.k8s.io/v1", "APIService"]
STRATEGY = strategy_of(RESOURCE)
NOW = "2026-01-01T00:00:00Z"
SERVICE = {"namespace": "default", "name": "sample"}


def created(**spec: object) -> Object:
    known = {"group": "example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
    made: Object = {"metadata": {"name": "v1.example.com", "creationTimestamp": NOW}, "spec": known}
    STRATEGY.default(made)
    STRATEGY.prepare_create(made)
    return made


def test_whether_one_of_another_server_is_available_is_not_known_yet() -> None:
    made = created(service=dict(SERVICE))
    assert found_by(STRATEGY.validate, made) == []
    assert made["spec"]["service"]["port"] == 443
    assert made["status"] == {}
    assert cells_of(RESOURCE, made, 0)[:3] == ["v1.example.com", "default/sample", "Unknown"]


def test_a_local_one_is_available() -> None:
    made = created()
    assert cells_of(RESOURCE, made, 0)[:3] == ["v1.example.com", "Local", "True"]


def test_one_that_gets_another_service_is_asked_anew_and_its_other_conditions_stay() -> None:
    old = created(service=dict(SERVICE))
    old["status"] = {"conditions": [{"type": "Available", "status": "True"}, {"type": "Mine", "status": "True"}]}
    new = {**old, "spec": {**old["spec"], "service": {**SERVICE, "port": 8443}}, "status": {}}
    STRATEGY.prepare_update(new, old)
    assert [one["type"] for one in new["status"]["conditions"]] == ["Mine"]
    del new["spec"]["service"]
    STRATEGY.prepare_update(new, old)
    assert [(one["type"], one.get("reason")) for one in new["status"]["conditions"]] == [
        ("Mine", None),
        ("Available", "Local"),
    ]


def test_an_update_of_the_spec_keeps_the_status() -> None:
    old = created()
    new = {**old, "spec": {**old["spec"], "versionPriority": 11}, "status": {}}
    STRATEGY.prepare_update(new, old)
    assert new["status"] == old["status"]


def test_a_status_is_true_or_false_or_unknown() -> None:
    new = {**created(), "status": {"conditions": [{"type": "Available", "status": "Perhaps"}]}}
    (cause,) = found_by(STRATEGY.validate_status, new, created())
    assert cause.field == "status.conditions[0].status"
    assert cause.message == 'Unsupported value: "Perhaps": supported values: "False", "True", "Unknown"'


def test_one_without_a_name_is_refused_for_what_its_spec_lacks_too() -> None:
    made: Object = {"metadata": {"creationTimestamp": NOW}}
    STRATEGY.default(made)
    STRATEGY.prepare_create(made)
    assert [cause.field for cause in found_by(STRATEGY.validate, made)] == [
        "spec.group",
        "spec.version",
        "spec.groupPriorityMinimum",
        "spec.versionPriority",
    ]
