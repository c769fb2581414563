"""A request as the expressions of policies see it: computed once for each form in which it matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from situate.core.cel.values import Value
from situate.server.admission.expressions import request_variables
from situate.server.admission.matching import NAMESPACE, MatchedAs
from situate.server.errors import StatusError, forbidden
from situate.server.identity.authorization.attributes import Authorizer
from situate.server.registry.cache import Cache
from situate.server.registry.user_admission import NAMESPACES, AdmissionRequest
from situate.server.requests import Object

UNKNOWN_NAME: Final = "Unknown"


Given = Sequence[Mapping[str, Value]]


class RequestForms:
    def __init__(self, request: AdmissionRequest, cache: Cache) -> None:
        self._request = request
        self._cache = cache
        self._known: dict[tuple[str, str], Given] = {}

    @property
    def param_namespace(self) -> str:
        """In which a binding that names no namespace finds its parameters."""
        return self._request.namespace

    async def variables(self, matched: MatchedAs, *authorizers: Authorizer) -> Given:
        """Once for an evaluation on the event loop, and once for one beside it: they have authorizers of their own.
        Raises StatusError (404) if there is no namespace."""
        key = (matched.api_version, matched.resource.plural)
        if key not in self._known:
            namespace = self._namespace()
            self._known[key] = [await request_variables(self._request, matched, one, namespace) for one in authorizers]
        return self._known[key]

    def forget(self) -> None:
        """The object has changed."""
        self._known.clear()

    def _namespace(self) -> Object | None:
        request = self._request
        name = request.namespace
        if not name or request.target.resource.stored_as == NAMESPACES:
            return None
        stored = self._cache.get(NAMESPACE, "", name)
        if stored is None:
            raise self._cache.missing(NAMESPACE, "", name)
        return stored.object(NAMESPACE)


def refusal(request: AdmissionRequest, why: str) -> StatusError:
    """Kubernetes' 403."""
    resource = request.target.resource
    return forbidden(resource.plural, resource.group, _name(request), why)


def _name(request: AdmissionRequest) -> str:
    if request.target.name:
        return request.target.name
    metadata = (request.object or {}).get("metadata") or {}
    return metadata.get("name") or metadata.get("generateName") or UNKNOWN_NAME
