"""The new pod that replaces one whose node is lost."""

from typing import Any

import pytest

from situate.server.placing.rebinding import OF_THE_BINDING, unbound

NOW = "2026-01-02T03:04:05Z"


def old_pod(**meta: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "old", "creationTimestamp": "2020-01-01T00:00:00Z", **meta},
        "spec": {"nodeName": "n1", "ephemeralContainers": [{"name": "debug"}], "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "qosClass": "Burstable", "podIP": "10.0.0.1", "conditions": []},
    }


def test_it_is_as_new_and_keeps_its_specification() -> None:
    old = old_pod(labels={"app": "web"}, deletionTimestamp=NOW, deletionGracePeriodSeconds=30)
    assert unbound(old, "new", NOW) == {
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "new", "creationTimestamp": NOW, "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


@pytest.mark.parametrize("before, after", [({"generation": 7}, 1), ({}, None)])
def test_its_generation_begins_anew(before: dict[str, Any], after: int | None) -> None:
    assert unbound(old_pod(**before), "new", NOW)["metadata"].get("generation") == after


def test_annotations_of_the_old_binding_are_left_behind() -> None:
    bound = dict.fromkeys(OF_THE_BINDING, "x")
    assert "annotations" not in unbound(old_pod(annotations=bound), "new", NOW)["metadata"]
    kept = unbound(old_pod(annotations={**bound, "mine": "y"}), "new", NOW)["metadata"]["annotations"]
    assert kept == {"mine": "y"}
