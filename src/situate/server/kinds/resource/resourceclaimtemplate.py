"""ResourceClaimTemplate: the claim that is created for each pod."""

from typing import Final

from situate.server.kinds.field_errors import IMMUTABLE, Causes
from situate.server.kinds.go_structs import CLAIM, go_struct
from situate.server.kinds.kind import Kind
from situate.server.kinds.resource.resourceclaim import (
    default_claim_spec,
    validate_devices,
)
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object


def _default_template(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("metadata", {})
    default_claim_spec(spec.setdefault("spec", {}))


def _validate_template(obj: Object, causes: Causes) -> None:
    validate_devices(obj.get("spec", {}).get("spec", {}).get("devices", {}), "spec.spec.devices", causes)


def _validate_template_update(new: Object, old: Object, causes: Causes) -> None:
    spec = new.get("spec", {})
    if spec != old.get("spec", {}):
        causes.invalid("spec", {**spec.get("metadata", {}), "Spec": go_struct(spec.get("spec"), CLAIM)}, IMMUTABLE)


KIND: Final = Kind(
    "resource.k8s.io/v1 resourceclaimtemplates ResourceClaimTemplate N - -",
    strategy=Strategy(
        default=_default_template, validate=_validate_template, validate_update=_validate_template_update
    ),
    columns="Name!, Age",
    description="ResourceClaimTemplate describes the claims that are created for each pod.",
)
