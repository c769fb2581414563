"""The attributes of a request for an authorizer, and the authorizer's decision."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple, Protocol

from situate.server.errors import StatusError, forbidden
from situate.server.requests import Caller


class Attributes(NamedTuple):
    verb: str
    """get list watch create update patch delete deletecollection; for a path the method in lower case."""
    group: str = ""
    resource: str = ""
    """The plural; empty for a path."""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    fields: str = ""
    """The field selector of a list or watch, as text."""


class AuthorizerDecision(NamedTuple):
    allowed: bool
    reason: str = ""


NO: Final = AuthorizerDecision(False)
YES: Final = AuthorizerDecision(True)


class Authorizer(Protocol):
    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision: ...


class FieldRequirement(NamedTuple):
    key: str
    equals: bool
    value: str


def field_requirements(fields: str) -> list[FieldRequirement]:
    """The terms of a field selector. An unreadable one is left out, and so restricts nothing."""
    found = []
    for term in fields.split(","):
        for operator in ("!=", "==", "="):
            key, parted, value = term.partition(operator)
            if parted:
                found.append(FieldRequirement(key.strip(), operator != "!=", value.strip()))
                break
    return found


def forbidden_error(caller: Caller, attributes: Attributes, reason: str) -> StatusError:
    """The 403, in kube-apiserver's words."""
    if not attributes.resource:
        what = f'User "{caller.name}" cannot {attributes.verb} path "{attributes.path}"'
        return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", f"forbidden: {_escaped(what, reason)}")
    resource = f"{attributes.resource}/{attributes.subresource}" if attributes.subresource else attributes.resource
    scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    what = (
        f'User "{caller.name}" cannot {attributes.verb} resource "{resource}" in API group "{attributes.group}" {scope}'
    )
    return forbidden(attributes.resource, attributes.group, attributes.name, _escaped(what, reason))


def _escaped(what: str, reason: str) -> str:
    # A name may contain anything; in a browser it must stay text.
    safe = what.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"{safe}: {reason}" if reason else safe
