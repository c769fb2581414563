"""The ConfigMap `kube-root-ca.crt` of every namespace."""

from situate.core.model.managed import CertificateData, ManagedAccount, ManagedConfigMap, ManagedNamespace
from situate.core.model.stored import StoredMeta
from situate.core.reconcile.effects import CreateObject, UpdateObject
from situate.core.reconcile.objects import ObjectIndex
from situate.core.reconcile.root_certificates import DESCRIPTION, PURPOSE
from situate.core.reconcile.table import concerned, reconcile

SPACE = ManagedNamespace(metadata=StoredMeta(name="team", uid="1"))
ACCOUNT = ManagedAccount(metadata=StoredMeta(name="default", namespace="team", uid="2"))
PUBLISHED = ManagedConfigMap(
    metadata=StoredMeta(name="cluster-info", namespace="kube-public", uid="3"), data=CertificateData(certificates="PEM")
)


def held(certificates: str, description: str = PURPOSE) -> ManagedConfigMap:
    meta = StoredMeta(
        name="kube-root-ca.crt",
        namespace="team",
        uid="4",
        resource_version="7",
        annotations={DESCRIPTION: description},
    )
    return ManagedConfigMap(metadata=meta, data=CertificateData(certificates=certificates))


def test_a_namespace_gets_the_published_certificates() -> None:
    (effect,) = reconcile(SPACE, ObjectIndex([SPACE, ACCOUNT, PUBLISHED]), 0).effects
    assert isinstance(effect, CreateObject)
    assert effect.body["data"] == {"ca.crt": "PEM"}
    assert effect.body["metadata"]["annotations"] == {DESCRIPTION: PURPOSE}


def test_without_published_certificates_there_is_nothing_to_copy() -> None:
    assert reconcile(SPACE, ObjectIndex([SPACE, ACCOUNT]), 0).effects == ()


def test_a_copy_that_is_right_is_left_alone() -> None:
    assert reconcile(SPACE, ObjectIndex([SPACE, ACCOUNT, PUBLISHED, held("PEM")]), 0).effects == ()


def test_a_changed_copy_is_put_right() -> None:
    for changed in (held("old"), held("PEM", "mine")):
        (effect,) = reconcile(SPACE, ObjectIndex([SPACE, ACCOUNT, PUBLISHED, changed]), 0).effects
        assert isinstance(effect, UpdateObject)
        assert effect.patch["data"] == {"ca.crt": "PEM"}


def test_a_copy_concerns_its_namespace_and_the_published_ones_concern_all() -> None:
    objects = ObjectIndex([SPACE])
    assert concerned(held("PEM"), objects) == [(ManagedNamespace, "", "team")]
    assert concerned(PUBLISHED, objects) == [(ManagedNamespace, "", "team")]
