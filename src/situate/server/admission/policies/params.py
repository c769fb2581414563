"""The parameters of a policy: the objects that a binding names or selects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from situate.core.cel.values import StringMap, Value
from situate.server.admission.expressions import cel_value
from situate.server.apiextensions.served import CustomKinds
from situate.server.errors import StatusError
from situate.server.kinds.label_selectors import matches
from situate.server.registry.cache import Cache
from situate.server.registry.converted import all_shown
from situate.server.registry.stored_object import StoredObject
from situate.server.resources import BY_KIND, Resource

MOST_PARAMS: Final = 100
"""Parameters of one binding. A selector that selects more is an error of the binding."""
TOO_MANY: Final = f"paramRef selects more than {MOST_PARAMS} objects"
NO_NAMESPACE: Final = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
NOT_NAMESPACED: Final = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
NONE_FOUND: Final = "no params found for policy binding with `Deny` parameterNotFoundAction"
NO_MAPPING: Final = "failed to find resource referenced by paramKind: '{group_version}, Kind={kind}'"


class ParamError(Exception):
    """The parameters cannot be found; the message is Kubernetes'."""


class Param:
    """A parameter, or the absence of one."""

    __slots__ = ("key", "value")

    def __init__(self, key: tuple[str, str], value: Value) -> None:
        self.key = key
        """Its namespace and name."""
        self.value = value


NO_PARAM: Final = Param(("", ""), None)


class ParamFinder:
    def __init__(self, cache: Cache, custom: CustomKinds) -> None:
        self._cache = cache
        self._custom = custom

    def served(self, kind: Mapping[str, Any]) -> Resource | None:
        """The resource of a kind, whether its objects are stored or not."""
        known = (kind.get("apiVersion", ""), kind.get("kind", ""))
        return BY_KIND.get(known) or self._custom.of_kind(*known)

    def resource_of(self, kind: Mapping[str, Any]) -> Resource | None:
        found = self.served(kind)
        return found if found is not None and found.stored else None

    def check_kind(self, kind: Mapping[str, Any] | None) -> None:
        """Raises ParamError if there is no such kind."""
        if kind is not None:
            self._resource(kind)

    def _resource(self, kind: Mapping[str, Any]) -> Resource:
        found = self.resource_of(kind)
        if found is None:
            group, _, version = kind.get("apiVersion", "").rpartition("/")
            raise ParamError(NO_MAPPING.format(group_version=f"{group}/{version}", kind=kind.get("kind", "")))
        return found

    async def find(
        self, kind: Mapping[str, Any] | None, reference: Mapping[str, Any] | None, namespace: str
    ) -> list[Param]:
        """`namespace`: of the request. Raises ParamError."""
        if kind is None or reference is None:
            return [NO_PARAM]
        resource = self._resource(kind)
        there = reference.get("namespace") or ""
        if resource.namespaced:
            there = there or namespace
            if not there:
                raise ParamError(NO_NAMESPACE)
        elif there:
            raise ParamError(NOT_NAMESPACED)
        found = await self._found(resource, reference, there)
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise ParamError(NONE_FOUND)
        return found

    async def _found(self, resource: Resource, reference: Mapping[str, Any], namespace: str) -> list[Param]:
        if name := reference.get("name"):
            stored = self._cache.get(resource, namespace, name)
            return [] if stored is None else await _params(resource, namespace, [stored])
        found: list[StoredObject] = []
        for one in self._cache.all(resource, namespace):
            if matches(reference.get("selector") or {}, one.labels):
                if len(found) == MOST_PARAMS:
                    raise ParamError(TOO_MANY)
                found.append(one)
        return await _params(resource, namespace, found)


async def _params(resource: Resource, namespace: str, found: Sequence[StoredObject]) -> list[Param]:
    try:
        return [_param(namespace, one.name, one.object(resource)) for one in await all_shown(resource, found)]
    except StatusError as error:  # of a webhook that converts them
        raise ParamError(error.message) from None


def _param(namespace: str, name: str, obj: Any) -> Param:
    value = cel_value(obj)
    return Param((namespace, name), value if isinstance(value, StringMap) else None)
