"""Which requests a webhook or an admission policy is about: rules, selectors, and equivalent versions of a resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from situate.server.errors import StatusError
from situate.server.kinds.label_selectors import is_empty, matches
from situate.server.registry import codec, conversion
from situate.server.registry.cache import Cache
from situate.server.registry.transaction import stored_value
from situate.server.registry.user_admission import NAMESPACES, AdmissionRequest, Operation
from situate.server.requests import Object, Target
from situate.server.resources import BY_KIND, RESOURCES, Resource

GROUP: Final = "admissionregistration.k8s.io"
EXEMPT: Final = frozenset(
    f"{GROUP}/{plural}"
    for plural in (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)
"""What no webhook and no policy is asked about, so that a wrong one can always be deleted."""
ALL: Final = "*"
EQUIVALENT: Final = "Equivalent"
NAMESPACE: Final = BY_KIND["v1", "Namespace"]
SCALE: Final = ("autoscaling/v1", "Scale")
OF_SUBRESOURCES: Final = {
    "scale": SCALE,
    "eviction": ("policy/v1", "Eviction"),
    "binding": ("v1", "Binding"),
    "token": ("authentication.k8s.io/v1", "TokenRequest"),
}
"""The kinds of objects that are not the resource's own."""

Rule = Mapping[str, Any]
CustomResources = Callable[[], Sequence[Resource]]
"""The custom kinds that are served."""


class MatchedAs(NamedTuple):
    """The form in which a request matches: its own resource, or another version of it."""

    resource: Resource
    api_version: str
    """Of the object."""
    kind: str


class RequestMatcher:
    """The rules, selectors and match policy of one webhook or policy."""

    def __init__(
        self,
        rules: Sequence[Rule],
        namespace_selector: Mapping[str, Any] | None,
        object_selector: Mapping[str, Any] | None,
        match_policy: str,
        excluded: Sequence[Rule] = (),
    ) -> None:
        """A selector of None matches everything."""
        self._rules = rules
        self._excluded = excluded
        self._namespaces = namespace_selector
        self._objects = object_selector
        self._equivalent = match_policy == EQUIVALENT

    def concerns(
        self, resource: Resource, subresource: str, operation: Operation, equivalents: Sequence[Resource]
    ) -> bool:
        """Whether a request of this form may match, whatever its object and namespace are."""
        if resource.stored_as in EXEMPT:
            return False
        forms = (resource, *equivalents) if self._equivalent else (resource,)
        return any(_concerns(rule, one, subresource, operation) for rule in self._rules for one in forms)

    def matched(self, request: AdmissionRequest, cache: Cache, equivalents: Sequence[Resource]) -> MatchedAs | None:
        """None: it is not about this request. Raises StatusError (404) if the namespace does not exist."""
        missing: StatusError | None = None
        try:
            if not self._selects_namespace(request, cache):
                return None
        except StatusError as error:
            missing = error
        if not self._selects_object(request):
            return None
        if self._find(self._excluded, request, equivalents) is not None:
            return None
        found = self._find(self._rules, request, equivalents)
        if found is not None and missing is not None:
            raise missing
        return found

    def _find(
        self, rules: Sequence[Rule], request: AdmissionRequest, equivalents: Sequence[Resource]
    ) -> MatchedAs | None:
        resource = request.target.resource
        if any(_matches(rule, resource, request) for rule in rules):
            return MatchedAs(resource, *request.object_kind)
        if not self._equivalent:
            return None
        for rule in rules:
            for one in equivalents:
                if _matches(rule, one, request):
                    api_version, kind = OF_SUBRESOURCES.get(request.target.subresource, (one.api_version, one.kind))
                    return MatchedAs(one, api_version, kind)
        return None

    def _selects_namespace(self, request: AdmissionRequest, cache: Cache) -> bool:
        """Objects outside of namespaces are never left out, but for namespaces themselves."""
        is_namespace = request.target.resource.stored_as == NAMESPACES
        if (not request.namespace and not is_namespace) or self._namespaces is None or is_empty(self._namespaces):
            return True
        own = is_namespace and not request.target.subresource and request.operation in ("CREATE", "UPDATE")
        if own and request.object is not None:
            return matches(self._namespaces, _labels(request.object))
        held = cache.get(NAMESPACE, "", request.namespace)
        if held is None:
            raise cache.missing(NAMESPACE, "", request.namespace)
        return matches(self._namespaces, held.labels)

    def _selects_object(self, request: AdmissionRequest) -> bool:
        selector = self._objects
        if selector is None or is_empty(selector):
            return True
        return any(one is not None and matches(selector, _labels(one)) for one in (request.object, request.old))


def _labels(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _among(items: Sequence[str], wanted: str) -> bool:
    return ALL in items or wanted in items


def _concerns(rule: Rule, resource: Resource, subresource: str, operation: Operation) -> bool:
    """Everything but the names of objects."""
    scope = rule.get("scope") or ALL
    return (
        scope in (ALL, "Namespaced" if resource.namespaced else "Cluster")
        and _among(rule.get("operations") or (), operation)
        and _among(rule.get("apiGroups") or (), resource.group)
        and _among(rule.get("apiVersions") or (), resource.version)
        and any(_names(one, resource.plural, subresource) for one in rule.get("resources") or ())
    )


def _names(pattern: str, plural: str, subresource: str) -> bool:
    """`pods`, `pods/status`, `pods/*`, `*/status`, `*` for all resources, `*/*` with their subresources."""
    name, _, sub = pattern.partition("/")
    return name in (ALL, plural) and sub in (ALL, subresource)


def _matches(rule: Rule, resource: Resource, request: AdmissionRequest) -> bool:
    target = request.target
    if not _concerns(rule, resource, target.subresource, request.operation):
        return False
    names = rule.get("resourceNames")
    return not names or target.name in names


class Equivalents:
    """The other versions of each resource."""

    def __init__(self, custom: CustomResources) -> None:
        self._custom = custom

    def of(self, resource: Resource) -> Sequence[Resource]:
        served = self._custom() if resource.custom is not None else RESOURCES
        return [
            one
            for one in served
            if one.stored_as == resource.stored_as
            and (one.group, one.version, one.plural) != (resource.group, resource.version, resource.plural)
            and "create" in one.verbs
        ]


async def in_version(obj: Object | None, resource: Resource, wanted: Resource) -> Object | None:
    """An object of a request in the version in which it matched. Objects of subresources have one version only. Raises
    StatusError if a webhook that has to convert it fails."""
    if obj is None or obj.get("kind") != resource.kind:
        return obj
    if wanted is resource and obj.get("apiVersion") in (None, wanted.api_version):
        return obj
    revision = int(obj["metadata"].get("resourceVersion") or 0)
    if resource.custom is not None and wanted.custom is not None:
        form = wanted.custom.original or wanted.custom.stored
        (value,) = await form.converted([resource.custom.stored.shown_form(obj)])
        return form.decode(value, revision)
    value = stored_value(Target(resource), obj)
    found = codec.decode(value, wanted.api_version, wanted.kind, revision)
    convert = conversion.from_stored(wanted)
    return convert(found) if convert else found
