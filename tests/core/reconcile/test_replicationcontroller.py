"""ReplicationController: as a ReplicaSet, with a map of labels as its selector."""

import msgspec

from situate.core.model.apps import ManagedReplicationController
from situate.core.model.managed import Budget, ManagedPod
from situate.core.model.stored import Condition
from situate.core.reconcile.effects import CreateObject, DeleteObject, UpdateObject, UpdateStatus
from situate.core.reconcile.objects import ObjectIndex
from situate.core.reconcile.table import concerned, reconcile

BODY = {
    "metadata": {"name": "web", "namespace": "d", "uid": "1", "resourceVersion": "5", "generation": 1},
    "spec": {
        "replicas": 2,
        "selector": {"app": "web"},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}},
    },
}
ONE = msgspec.convert(BODY, ManagedReplicationController)


def pod(name: str, owned: bool = True) -> ManagedPod:
    owner = {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "name": "web",
        "uid": "1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta = {"name": name, "namespace": "d", "uid": name, "labels": {"app": "web"}}
    body = {
        "metadata": {**meta, **({"ownerReferences": [owner]} if owned else {})},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return msgspec.convert(body, ManagedPod)


def test_missing_pods_are_created_in_its_name() -> None:
    effects = reconcile(ONE, ObjectIndex([ONE]), 0).effects
    created = [one for one in effects if isinstance(one, CreateObject)]
    assert len(created) == 2
    (owner,) = created[0].body["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == ("v1", "ReplicationController", "web")


def test_an_orphan_is_adopted_and_a_surplus_goes() -> None:
    (adopt,) = reconcile(ONE, ObjectIndex([ONE, pod("a", owned=False)]), 0).effects
    assert isinstance(adopt, UpdateObject)
    effects = reconcile(ONE, ObjectIndex([ONE, *(pod(name) for name in "abc")]), 0).effects
    assert sum(isinstance(one, DeleteObject) for one in effects) == 1


def test_its_status_has_its_own_fields() -> None:
    (effect,) = reconcile(ONE, ObjectIndex([ONE, pod("a"), pod("b")]), 0).effects
    assert isinstance(effect, UpdateStatus)
    assert effect.status == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }


def test_a_refusal_is_its_condition() -> None:
    effects = reconcile(ONE, ObjectIndex([ONE]), 0, refused="no room").effects
    (status,) = [one for one in effects if isinstance(one, UpdateStatus)]
    assert msgspec.convert(status.status["conditions"][0], Condition).message == "no room"


def test_its_pods_concern_it_and_it_concerns_budgets() -> None:
    assert (ManagedReplicationController, "d", "web") in concerned(pod("a"), ObjectIndex([ONE]))
    assert (ManagedReplicationController, "d", "web") in concerned(pod("a", owned=False), ObjectIndex([ONE]))
    budget = msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "d", "uid": "9"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
        Budget,
    )
    objects = ObjectIndex([ONE, budget, pod("a"), pod("b")])
    assert (Budget, "d", "b") in concerned(ONE, objects)
    (effect,) = [one for one in reconcile(budget, objects, 0).effects if isinstance(one, UpdateStatus)]
    assert effect.status["expectedPods"] == 2
