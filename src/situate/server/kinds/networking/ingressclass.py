"""IngressClass: which controller handles an Ingress."""

import re
from typing import Any, Final

from situate.server.kinds.field_errors import Causes
from situate.server.kinds.kind import Kind
from situate.server.kinds.names import dns_label, subdomain
from situate.server.kinds.networking.ingress import reference
from situate.server.kinds.networking.kept import kept
from situate.server.kinds.strategy import Strategy
from situate.server.objects import Object

CONTROLLER_LENGTH: Final = 250
_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_is_path: Final = re.compile(_PATH, re.ASCII).fullmatch
SCOPES: Final = ("Cluster", "Namespace")


def _default(obj: Object) -> None:
    parameters = obj.setdefault("spec", {}).get("parameters")
    if parameters is not None and "scope" not in parameters:
        parameters["scope"] = "Cluster"


def _validate(obj: Object, causes: Causes) -> None:
    spec = obj.get("spec", {})
    controller = spec.get("controller", "")
    if len(controller) > CONTROLLER_LENGTH:
        causes.too_long("spec.controller", CONTROLLER_LENGTH)
    _path(controller, causes)
    if "parameters" in spec:
        _parameters(spec["parameters"], causes)


def _path(controller: str, causes: Causes) -> None:
    """A name with the domain of its owner: `example.com/ingress`."""
    domain, slash, path = controller.partition("/")
    if not controller:
        causes.required("spec.controller", "")
    elif not slash or not domain or not path:
        causes.invalid("spec.controller", controller, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        causes.check(subdomain, domain, "spec.controller")
        if not _is_path(path):
            causes.invalid("spec.controller", path, f"Invalid path (regex used for validation is '{_PATH}')")


def _parameters(found: dict[str, Any], causes: Causes) -> None:
    path = "spec.parameters"
    reference(found, path, causes)
    scope, namespace = found.get("scope"), found.get("namespace")
    if scope is None:
        causes.required(f"{path}.scope")
        return
    if scope not in SCOPES:
        causes.not_supported(f"{path}.scope", scope, SCOPES)
    elif scope == "Namespace":
        if not namespace:
            causes.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
        else:
            causes.check(dns_label, namespace, f"{path}.namespace")
    elif namespace is not None:
        causes.forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def _validate_update(new: Object, old: Object, causes: Causes) -> None:
    causes.immutable(new.get("spec", {}).get("controller"), old.get("spec", {}).get("controller"), "spec.controller")
    _validate(new, causes)


def _shown_parameters(obj: Object) -> str:
    found = (obj.get("spec") or {}).get("parameters")
    if not found:
        return "<none>"
    kind = f"{found.get('kind', '')}.{found['apiGroup']}" if found.get("apiGroup") else found.get("kind", "")
    return f"{kind}/{found.get('name', '')}"


KIND: Final = Kind(
    "networking.k8s.io/v1 ingressclasses IngressClass C - -",
    strategy=Strategy(
        default=_default,
        validate=_validate,
        validate_update=_validate_update,
        warnings=kept("IngressClass"),
        counts_generation=True,
    ),
    columns="Name!, Controller = spec.controller, Parameters, Age",
    cells={"Parameters": _shown_parameters},
    description="IngressClass names the controller that handles an Ingress.",
)
