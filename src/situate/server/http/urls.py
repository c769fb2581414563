"""Parses the path of a request into resource, namespace, name and subresource."""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote_to_bytes

from situate.server.errors import StatusError, bad_request
from situate.server.resources import BY_PATH, Resource
from situate.wire.caching import cached_if_short

NO_SUCH: Final = "the server could not find the requested resource"
NOT_ALLOWED: Final = "the server does not allow this method on the requested resource"
MAX_PATH_LENGTH: Final = 4096
PROXY: Final = "proxy"
"""The subresource whose path goes on: the rest is a path of what it is a proxy for."""

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "GET": "get", "HEAD": "get", "DELETE": "delete"}
_WITHOUT_NAME: Final = {"get": "list", "delete": "deletecollection"}
_NAMESPACE_PARTS: Final = ("status", "finalize")
_ROOT_PARTS: Final = {"api": 2, "apis": 3}
"""How many parts of a path precede the resource."""


@dataclass(frozen=True, slots=True)
class RequestUrl:
    """A parsed path. `resource` is None if nothing is served there, or a custom kind is: `with_custom` sets that. The
    parts are set all the same, because authorization comes before 404."""

    path: str
    group: str = ""
    version: str = ""
    plural: str = ""
    """Empty: the path is not one of a resource."""
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    resource: Resource | None = None
    rest: str = ""
    """The path after the subresource."""


NO_URL: Final = RequestUrl("")


def no_such_path() -> StatusError:
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", NO_SUCH, with_details=True)


def wrong_method() -> StatusError:
    return StatusError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", NOT_ALLOWED)


@cached_if_short(entries=4096, length=512)
def parse_url(raw: str) -> RequestUrl:
    """Parse a raw path, without its query. Raises StatusError for a malformed path."""
    path = decode_path(raw)
    parts = path.split("/")[1:]
    if parts and not parts[-1]:
        parts.pop()
    leading = _ROOT_PARTS.get(parts[0]) if parts else None
    if leading is None or len(parts) <= leading or "" in parts or "%2f" in raw.lower():
        return RequestUrl(path)
    group, version = ("", parts[1]) if leading == 2 else (parts[1], parts[2])
    return _resource(path, group, version, parts[leading:])


def _resource(path: str, group: str, version: str, parts: list[str]) -> RequestUrl:
    namespace = ""
    # The namespace of a Namespace is its own name.
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_PARTS:
            parts = parts[2:]
    plural, name, subresource = (*parts[:3], "", "")[:3]
    rest = "/".join(parts[3:])
    resource = BY_PATH.get((group, version, plural))
    if resource is not None and not _fits(resource, namespace, name, subresource):
        resource = None
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")
    if rest and subresource != PROXY:
        resource = None
    return RequestUrl(path, group, version, plural, namespace, name, subresource, resource, rest)


def with_custom(url: RequestUrl, resource: Resource | None) -> RequestUrl:
    """The URL of a custom kind, if its scope is right and the subresource is served."""
    if resource is None or url.rest or not _fits(resource, url.namespace, url.name, url.subresource):
        return url
    return replace(url, resource=resource)


def _fits(resource: Resource, namespace: str, name: str, subresource: str) -> bool:
    """Whether the scope is right and the subresource is served."""
    if subresource and subresource not in resource.subresources:
        return False
    if resource.plural == "namespaces":
        return True
    if namespace:
        return resource.namespaced
    # Across all namespaces, a resource can only be listed.
    return not resource.namespaced or (not name and "list" in resource.verbs)


def decode_path(raw: str) -> str:
    """Percent-decode a path. Raises StatusError if the result is not UTF-8. It may have characters that cannot be
    printed: RBAC's names have almost no rules, and whatever was created must be reachable."""
    if len(raw) > MAX_PATH_LENGTH:
        raise StatusError(HTTPStatus.REQUEST_URI_TOO_LONG, "RequestURITooLong", "the path of the request is too long")
    if not raw.startswith("/"):
        raise bad_request("the request path does not start with a slash")
    try:
        path = unquote_to_bytes(raw).decode() if "%" in raw else raw
        path.encode()
    except UnicodeError:
        raise bad_request("the path of the request is not UTF-8") from None
    return path


def verb_of(method: str, url: RequestUrl, watch: bool) -> str:
    """The verb for RBAC; for a path without a resource, the method in lower case."""
    if not url.plural:
        return method.lower()
    verb = _VERBS.get(method, "")
    if not url.name:
        verb = _WITHOUT_NAME.get(verb, verb)
    return "watch" if verb == "list" and watch else verb
