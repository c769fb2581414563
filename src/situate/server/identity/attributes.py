"""What somebody wants to do, as an authorizer sees it, and what it says to that."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, NamedTuple, Protocol

from situate.server.errors import StatusError, forbidden
from situate.server.requests import Caller, Target

__all__ = ["NO", "YES", "Asking", "Attributes", "Decision", "Requirement", "of_target", "refusal", "requirements"]


class Asking(Protocol):
    """What is asked: of a resource, or with no resource of a path."""

    @property
    def verb(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def resource(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def fields(self) -> str: ...


class Attributes(NamedTuple):
    verb: str
    """get list watch create update patch delete deletecollection; of a path the method, in small letters."""
    group: str = ""
    resource: str = ""
    """The plural; empty for a path."""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    fields: str = ""
    """The field selector of a list or watch, as text."""


class Decision(NamedTuple):
    allowed: bool
    reason: str = ""


NO: Final = Decision(False)
YES: Final = Decision(True)


class Requirement(NamedTuple):
    key: str
    equals: bool
    value: str


def requirements(fields: str) -> list[Requirement]:
    """The terms of a field selector. One that cannot be read is left out, and so narrows nothing."""
    found = []
    for term in fields.split(","):
        for operator in ("!=", "==", "="):
            key, parted, value = term.partition(operator)
            if parted:
                found.append(Requirement(key.strip(), operator != "!=", value.strip()))
                break
    return found


def of_target(verb: str, target: Target, fields: str = "") -> Attributes:
    resource = target.resource
    return Attributes(
        verb, resource.group, resource.plural, target.subresource, target.namespace, target.name, "", fields
    )


def refusal(caller: Caller, asked: Asking, reason: str) -> StatusError:
    """The 403 that says what the caller may not do, in kube-apiserver's words."""
    if not asked.resource:
        what = f'User "{caller.name}" cannot {asked.verb} path "{asked.path}"'
        return StatusError(HTTPStatus.FORBIDDEN, "Forbidden", f"forbidden: {_told(what, reason)}")
    resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    scope = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    what = f'User "{caller.name}" cannot {asked.verb} resource "{resource}" in API group "{asked.group}" {scope}'
    return forbidden(asked.resource, asked.group, asked.name, _told(what, reason))


def _told(what: str, reason: str) -> str:
    # A name may hold anything; shown in a browser it must stay text.
    safe = what.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"{safe}: {reason}" if reason else safe
