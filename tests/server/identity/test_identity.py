"""The gate that a request passes, where the registry asks once more."""

from pathlib import Path

import pytest

from server.identity.clock import Clock
from server.identity.memory import Memory
from situate.server.errors import StatusError
from situate.server.identity.audit.log import AuditLog
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.attributes import Attributes
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.identity import Identity
from situate.server.identity.ports import resource_of
from situate.server.requests import Caller, Object, Target

API = "rbac.authorization.k8s.io/v1"
JANE = Caller("jane")


def gate(tmp_path: Path, *objects: Object) -> Identity:
    audit = AuditLog(tmp_path / "audit.log", wall_ns=lambda: 0)
    return Identity(Authentication(clock=Clock()), Authorization(Memory(*objects)), audit)


def granted(verbs: str, resources: str, names: str = "") -> tuple[Object, Object]:
    """In the namespace shop, to jane."""
    rule = {"verbs": verbs.split(), "apiGroups": [""], "resources": resources.split(), "resourceNames": names.split()}
    metadata = {"name": "r", "namespace": "shop"}
    binding = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "jane"}]}
    return (
        {"apiVersion": API, "kind": "Role", "metadata": metadata, "rules": [rule]},
        {"apiVersion": API, "kind": "RoleBinding", "metadata": metadata, **binding},
    )


def test_an_update_that_creates_needs_the_right_to_create(tmp_path: Path) -> None:
    identity, pods = gate(tmp_path, *granted("create", "pods namespaces")), resource_of("v1", "pods")
    identity.authorize_create(JANE, Target(pods, "shop", "web"))
    with pytest.raises(StatusError, match='cannot create resource "pods" in API group "" in the namespace "other"'):
        identity.authorize_create(JANE, Target(pods, "other", "web"))
    with pytest.raises(StatusError, match='cannot create resource "pods"'):
        gate(tmp_path, *granted("update", "pods")).authorize_create(JANE, Target(pods, "shop", "web"))


def test_a_namespace_is_in_the_namespace_of_its_name(tmp_path: Path) -> None:
    identity, namespaces = gate(tmp_path, *granted("create", "pods namespaces")), resource_of("v1", "namespaces")
    identity.authorize_create(JANE, Target(namespaces, "", "shop"))
    with pytest.raises(StatusError, match='cannot create resource "namespaces"'):
        identity.authorize_create(JANE, Target(namespaces, "", "other"))


def test_a_list_of_one_name_is_allowed_to_whoever_may_read_that_one(tmp_path: Path) -> None:
    identity = gate(tmp_path, *granted("list get", "pods", "web"))
    asked = Attributes("list", "", "pods", "", "shop")
    assert not identity.allows(JANE, asked).allowed
    assert identity.allows(JANE, asked._replace(fields="metadata.name=web")).allowed
    assert not identity.allows(JANE, asked._replace(fields="metadata.name=other")).allowed
    assert not identity.allows(JANE, asked._replace(fields="metadata.name=")).allowed
    assert not identity.allows(JANE, asked._replace(verb="get", fields="metadata.name=web")).allowed
    assert not identity.allows(JANE, asked._replace(name="other", fields="metadata.name=web")).allowed
