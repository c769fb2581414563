"""Who writes a policy or a binding with parameters needs the right to read them: what an expression says of a request
may show what they hold.

For a policy, that is `get` on all objects of its paramKind; for a binding, `get` on the object that its paramRef names,
or `list` if it selects. Where the kind is not known, it is the right on all resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from situate.server.admission.policies import mutating, validating
from situate.server.admission.policies.params import ParamFinder
from situate.server.errors import invalid
from situate.server.identity.authorization.attributes import Attributes, Authorizer
from situate.server.kinds.field_errors import forbidden
from situate.server.registry.cache import Cache
from situate.server.registry.ports import Action
from situate.server.requests import Caller, Object, Target
from situate.server.resources import Resource

ALL: Final = "*"
GROUP: Final = validating.POLICIES.group
POLICIES_OF: Final[Mapping[Resource, Resource]] = {
    validating.BINDINGS: validating.POLICIES,
    mutating.BINDINGS: mutating.POLICIES,
}
NO_KIND: Final = (
    'user {user} must have "get" permission on all objects of the referenced paramKind '
    "(kind={kind}, apiVersion={api_version})"
)
NO_POLICY: Final = (
    "unable to get policy {policy} to determine minimum required permissions and "
    'user {user} does not have "{verb}" permission for all groups, versions and resources'
)
UNKNOWN_KIND: Final = (
    "unable to resolve paramKind &{{{api_version} {kind}}} to determine minimum required permissions and "
    'user {user} does not have "{verb}" permission for all groups, versions and resources'
)
NO_OBJECT: Final = 'user {user} does not have "{verb}" permission on the object referenced by paramRef'
NO_OBJECT_TO_MUTATE: Final = 'user {verb} does not have "{user}" permission on the object referenced by paramRef'
"""Of a MutatingAdmissionPolicyBinding: kube-apiserver swaps the two."""


class ParamRights:
    """The check, for the registry. The authorizer allows system:masters everything."""

    def __init__(self, cache: Cache, params: ParamFinder, authorizer: Authorizer) -> None:
        self._cache = cache
        self._params = params
        self._authorizer = authorizer

    async def check(
        self, action: Action, target: Target, new: Object | None, old: Object | None, caller: Caller
    ) -> None:
        resource = target.resource
        if new is None or target.subresource or action == "delete" or resource.group != GROUP:
            return
        if resource in POLICIES_OF.values():
            path, why = "spec.paramKind", self._policy(new["spec"], (old or {}).get("spec") or {}, caller)
        elif resource in POLICIES_OF:
            path, why = "spec.paramRef", await self._binding(resource, new["spec"], caller)
        else:
            return
        if why:
            raise invalid(resource.kind, resource.group, new["metadata"]["name"], [forbidden(path, why)])

    def _policy(self, new: Mapping[str, Any], old: Mapping[str, Any], caller: Caller) -> str:
        kind = new.get("paramKind")
        if kind is None or kind == old.get("paramKind"):
            return ""
        group, resource = self._resource(kind)
        if self._authorizer.allows(caller, Attributes("get", group, resource, "", ALL, ALL)).allowed:
            return ""
        return NO_KIND.format(user=_shown(caller), kind=kind["kind"], api_version=kind["apiVersion"])

    async def _binding(self, resource: Resource, spec: Mapping[str, Any], caller: Caller) -> str:
        """Asked for with every update, as by kube-apiserver: the kind that the policy has now may be another one."""
        reference = spec.get("paramRef")
        if reference is None:
            return ""
        await self._cache.wait_until_fresh()  # another server may have written the policy just now
        policies = POLICIES_OF[resource]
        stored = self._cache.get(policies, "", spec["policyName"])
        kind = None if stored is None else stored.object(policies)["spec"].get("paramKind")
        group, plural = (ALL, ALL) if kind is None else self._resource(kind)
        name, namespace = reference.get("name", ""), reference.get("namespace", "")
        verb = "get" if name else "list"
        if self._authorizer.allows(caller, Attributes(verb, group, plural, "", namespace, name)).allowed:
            return ""
        if stored is None:
            return NO_POLICY.format(policy=spec["policyName"], user=_shown(caller), verb=verb)
        if kind is not None and plural == ALL:
            return UNKNOWN_KIND.format(
                api_version=kind["apiVersion"], kind=kind["kind"], user=_shown(caller), verb=verb
            )
        text = NO_OBJECT_TO_MUTATE if resource == mutating.BINDINGS else NO_OBJECT
        return text.format(user=_shown(caller), verb=verb)

    def _resource(self, kind: Mapping[str, Any]) -> tuple[str, str]:
        """The group, and the plural, or `*` if the kind is not known."""
        group, _, _ = kind["apiVersion"].rpartition("/")
        found = self._params.served(kind)
        return group, ALL if found is None else found.plural


def _shown(caller: Caller) -> str:
    """As kube-apiserver prints its struct of a user."""
    extra = _joined(f"{name}:[{_joined(values)}]" for name, values in sorted(caller.extra.items()))
    return f"&{{{caller.name} {caller.uid} [{_joined(caller.groups)}] map[{extra}]}}"


def _joined(texts: Iterable[str]) -> str:
    return " ".join(texts)
