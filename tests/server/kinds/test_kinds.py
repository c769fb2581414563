"""The table of kinds: complete, and known to everything that is derived from it."""

from importlib import import_module
from pathlib import Path

import pytest

import situate.server.kinds as kinds
from situate.server.kinds import KINDS, Kind
from situate.server.resources import RESOURCES, Resource
from situate.wire.patching.schema import is_served
from situate.wire.schema.table import flat_fields, message, message_of

FOLDER = Path(str(kinds.__file__)).parent
MODULES = [".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in sorted(FOLDER.rglob("*.py"))]


@pytest.mark.parametrize("name", MODULES)
def test_a_kind_that_is_declared_is_in_the_table(name: str) -> None:
    module = import_module(f"situate.server.kinds.{name}".removesuffix(".__init__"))
    declared = [value for value in vars(module).values() if isinstance(value, Kind)]
    assert all(any(one is kind for kind in KINDS) for one in declared)


REPLACED = (
    "admissionregistration.v1.ValidatingAdmissionPolicy",
    "apiextensions.v1.CustomResourceDefinition",
    "certificates.v1.CertificateSigningRequest",
)
"""Kinds whose conditions a strategic merge patch replaces in Kubernetes, too."""


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: f"{one.api_version} {one.kind}")
def test_every_served_version_has_fields_and_merge_rules(resource: Resource) -> None:
    one = message_of(resource.api_version, resource.kind)
    assert one is not None
    assert is_served(resource.api_version, resource.kind)
    # A list of conditions that is replaced as a whole would lose those of other writers.
    for field in flat_fields(one):
        if field.name == "status" and field.type.form == "message" and resource.has_status:
            merges = [inner.merge for inner in flat_fields(message(field.type.name)) if inner.name == "conditions"]
            replaced = ("by type replaced",) if one.name in REPLACED else ()
            known = ("by type", "by type?", "atomic merged type", *replaced)
            assert all(merge in known for merge in merges), resource


def test_a_resource_line_says_what_is_served() -> None:
    kind = Kind("g.io/v2,v1beta1 things Thing C th,tg all | status ! get list = /others ~", description="")
    first, second = kind.resources
    assert (first.api_version, second.api_version) == ("g.io/v2", "g.io/v1beta1")
    assert (first.plural, first.kind, first.singular, first.namespaced) == ("things", "Thing", "thing", False)
    assert (first.short_names, first.categories, first.subresources) == (("th", "tg"), ("all",), ("status",))
    assert (first.verbs, first.stored_as, first.computed) == (("get", "list"), "/others", True)
