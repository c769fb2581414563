"""The ServiceAccount that every namespace has."""

from situate.core.model.managed import ManagedAccount, ManagedNamespace
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.effects import CreateObject
from situate.core.reconcile.objects import ObjectIndex
from situate.core.reconcile.table import concerned, reconcile

SPACE = ManagedNamespace(metadata=StoredMeta(name="team", uid="1"))
ACCOUNT = ManagedAccount(metadata=StoredMeta(name="default", namespace="team", uid="2"))


def test_a_namespace_without_one_gets_one() -> None:
    (effect,) = reconcile(SPACE, ObjectIndex([SPACE]), 0).effects
    assert isinstance(effect, CreateObject)
    assert effect.body == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": "team"},
    }


def test_a_namespace_that_has_one_is_left_alone() -> None:
    assert reconcile(SPACE, ObjectIndex([SPACE, ACCOUNT]), 0).effects == ()


def test_a_namespace_that_goes_gets_none() -> None:
    going = ManagedNamespace(metadata=StoredMeta(name="team", uid="1", deletion_timestamp="2026-01-01T00:00:00Z"))
    assert reconcile(going, ObjectIndex([going]), 0).effects == ()


def test_one_that_is_deleted_concerns_its_namespace() -> None:
    assert (ManagedNamespace, "", "team") in concerned(ACCOUNT, ObjectIndex([SPACE]))
