"""Metadata: names for people, and who manages an object."""

import pytest

from situate.core.model.base import EMPTY
from situate.core.model.meta import ObjectMeta, OwnerReference, controller_of, key_of


def test_the_key_of_an_object_has_its_namespace_if_it_has_one() -> None:
    assert key_of(ObjectMeta(name="web", namespace="prod")) == "prod/web"
    assert key_of(ObjectMeta(name="n1")) == "n1"


def test_the_controller_is_the_owner_that_says_so() -> None:
    creator, manager = OwnerReference(name="a"), OwnerReference(name="b", controller=True)
    assert controller_of(ObjectMeta(owner_references=(creator, manager))) is manager
    assert controller_of(ObjectMeta(owner_references=(creator,))) is None


def test_absent_mappings_are_one_that_cannot_be_changed() -> None:
    assert ObjectMeta().labels is EMPTY
    assert EMPTY == {}
    with pytest.raises(TypeError, match="cannot be changed"):
        EMPTY["a"] = 1  # type: ignore[index]
    assert EMPTY == {}


def test_metadata_of_two_versions_is_equal_if_it_says_the_same() -> None:
    one, other = (ObjectMeta(name="web", resource_version=version, generation=at) for at, version in enumerate("12"))
    assert one == other
    assert not one != other  # noqa: SIM202 - both are asked for
    assert one != ObjectMeta(name="db", resource_version="1")
    assert one != "web"
