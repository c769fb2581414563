"""CustomResourceDefinition: a kind that is defined by an object."""

from typing import Final

from situate.core.model.field_errors import quoted
from situate.server.kinds.apiextensions.definition_rules import (
    validate_definition,
    validate_definition_update,
    validate_status,
)
from situate.server.kinds.apiextensions.structural_rules import walk_schemas
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.strategy import Strategy
from situate.server.kinds.webhook_clients import default_port
from situate.server.objects import Object
from situate.wire.structural.formats import recognised


def _default(crd: Object) -> None:
    spec = crd["spec"]
    names = spec["names"]
    if not names.get("singular"):
        names["singular"] = names.get("kind", "").lower()
    if not names.get("listKind") and names.get("kind"):
        names["listKind"] = f"{names['kind']}List"
    spec.setdefault("conversion", {"strategy": "None"})
    default_port((spec["conversion"].get("webhook") or {}).get("clientConfig"))


def _prepare_create(crd: Object) -> None:
    crd["status"] = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": None}
    _store_version(crd)


def _prepare_update(new: Object, old: Object) -> None:
    new["status"] = {**old["status"]}
    _store_version(new)


def _store_version(crd: Object) -> None:
    """Remember every version in which objects may be stored."""
    status = crd["status"]
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            known = status.get("storedVersions") or []
            if version.get("name") not in known:
                status["storedVersions"] = [*known, version.get("name", "")]
            return


def _validate_status(new: Object, _old: Object, causes: Causes) -> None:
    validate_status(new, causes)


def _unrecognised(crd: Object) -> list[str]:
    found: list[str] = []
    for version in crd["spec"].get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        for one in walk_schemas(schema) if schema else ():
            form = one.get("format", "")
            if form and not recognised(one.get("type", ""), form):
                found.append(f"unrecognized format {quoted(form)}")
    return found


def _newly_unrecognised(new: Object, old: Object) -> list[str]:
    before = _unrecognised(old)
    return [text for text in _unrecognised(new) if text not in before]


KIND: Final = Kind(
    "apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition C crd,crds api-extensions | status",
    strategy=Strategy(
        default=_default,
        prepare_create=_prepare_create,
        prepare_update=_prepare_update,
        validate=validate_definition,
        validate_update=validate_definition_update,
        validate_status=_validate_status,
        warnings=_unrecognised,
        update_warnings=_newly_unrecognised,
        own_finalizers=False,
        counts_generation=True,
        unconditional_update=False,
    ),
    description="CustomResourceDefinition defines a kind of its own, which the server then serves like any other.",
    words={
        "CustomResourceDefinitionSpec.group": "The API group of the kind.",
        "CustomResourceDefinitionSpec.names": "What the kind is called.",
        "CustomResourceDefinitionSpec.scope": "Cluster or Namespaced.",
        "CustomResourceDefinitionSpec.versions": "The versions of the kind, with a schema each. One is stored.",
        "CustomResourceDefinitionSpec.conversion": "How objects are converted between versions.",
    },
)
