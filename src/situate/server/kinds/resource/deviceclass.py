"""DeviceClass: a kind of device that claims can ask for."""

from typing import Final

from situate.core.model.resources import is_extended
from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import MAX_SUBDOMAIN, subdomain, too_long_text
from situate.server.kinds.resource.resourceclaim import (
    MAX_CONFIGS,
    config_problems,
    expressions_fit,
    selector_problems,
)
from situate.server.kinds.strategy import Strategy, again
from situate.server.objects import Object


def _default_class(obj: Object) -> None:
    obj.setdefault("spec", {})


def _class_name(name: str) -> tuple[str, ...]:
    """The common rule, with the length in bytes."""
    long = too_long_text(MAX_SUBDOMAIN)
    return tuple(f"must be no more than {MAX_SUBDOMAIN} bytes" if one == long else one for one in subdomain(name))


def _validate_class(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    selectors = spec.get("selectors", ())
    if expressions_fit(selectors, "spec.selectors", causes):
        selector_problems(selectors, "spec.selectors", causes)
    configs = spec.get("config", ())
    causes.at_most(MAX_CONFIGS, configs, "spec.config")
    for index, config in enumerate(configs):
        config_problems(config, f"spec.config[{index}]", causes)
    extended = spec.get("extendedResourceName")
    if extended is not None and not is_extended(extended):
        causes.invalid("spec.extendedResourceName", extended, "must be a valid extended resource name")


KIND: Final = Kind(
    "resource.k8s.io/v1 deviceclasses DeviceClass C - -",
    strategy=Strategy(
        default=_default_class,
        validate=_validate_class,
        validate_update=again(_validate_class),
        name_rule=_class_name,
        counts_generation=True,
    ),
    columns="Name!, Age",
    description="DeviceClass names a kind of device that claims can ask for.",
)
