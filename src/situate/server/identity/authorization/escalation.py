"""Admission of roles and bindings: nobody grants rights that they do not have.

To write a role, the caller needs all of its rights, or the verb `escalate`; to bind it, all of them, or `bind`.
"""

from __future__ import annotations

from typing import Final, Literal

from situate.server.errors import forbidden
from situate.server.identity.authorization.attributes import Attributes, Authorizer
from situate.server.identity.authorization.rbac import GROUP, MASTERS, Rbac
from situate.server.identity.authorization.rules import (
    EVERYTHING,
    Rule,
    TooManyRulesError,
    described,
    quoted,
    rules_of,
    uncovered,
)
from situate.server.requests import Caller, Object, Target

AGGREGATING: Final = "must have cluster-admin privileges to use the aggregationRule"
COMPARED: Final = 200_000
"""Steps of a comparison: about a quarter of a second."""
TOO_MANY: Final = (
    'its rules have too many combinations of verbs, groups and resources to compare with those of user "{name}": '
    "split them into several roles"
)
ROLES: Final = ("roles", "clusterroles")
BINDINGS: Final = ("rolebindings", "clusterrolebindings")


class NoEscalation:
    def __init__(self, rbac: Rbac, authorizer: Authorizer) -> None:
        self._rbac = rbac
        self._authorizer = authorizer

    async def admit(
        self,
        action: Literal["create", "update", "delete"],
        target: Target,
        new: Object | None,
        old: Object | None,
        caller: Caller,
    ) -> None:
        if target.resource.group != GROUP or action == "delete" or new is None or MASTERS in caller.groups:
            return
        if old is not None and _without_bookkeeping(new) == _without_bookkeeping(old):
            return
        name = target.name or new.get("metadata", {}).get("name", "")
        if target.resource.plural in ROLES:
            why = self._role(target, new, old, caller)
        elif target.resource.plural in BINDINGS:
            why = self._binding(target, new, caller)
        else:
            return
        if why:
            raise forbidden(target.resource.plural, GROUP, name, why)

    def version(self, target: Target) -> int | None:
        return None

    def _role(self, target: Target, new: Object, old: Object | None, caller: Caller) -> str:
        attributes = Attributes("escalate", GROUP, target.resource.plural, "", target.namespace, target.name)
        if self._authorizer.allows(caller, attributes).allowed:
            return ""
        why = self._missing(caller, target.namespace, rules_of(new))
        gathers = new.get("aggregationRule") or (old or {}).get("aggregationRule")
        if not why and gathers and self._missing(caller, target.namespace, EVERYTHING):
            return AGGREGATING
        return why

    def _binding(self, target: Target, new: Object, caller: Caller) -> str:
        reference = new.get("roleRef", {})
        kind, name = reference.get("kind", ""), reference.get("name", "")
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(kind)
        if plural is not None:
            attributes = Attributes("bind", reference.get("apiGroup", ""), plural, "", target.namespace, name)
            if self._authorizer.allows(caller, attributes).allowed:
                return ""
        return self._missing(caller, target.namespace, self._rbac.rules_of_role(kind, name, target.namespace))

    def _missing(self, caller: Caller, namespace: str, wanted: tuple[Rule, ...]) -> str:
        granted, wrong = self._rbac.rules_for(caller, namespace)
        try:
            missing = uncovered([one.rule for one in granted], wanted, COMPARED)
        except TooManyRulesError:
            return TOO_MANY.format(name=caller.name)
        if not missing:
            return ""
        text = (
            f'user "{caller.name}" (groups={quoted(caller.groups)}) is attempting to grant RBAC permissions '
            f"not currently held:\n{described(missing)}"
        )
        return f"{text}; resolution errors: [{' '.join(wrong)}]" if wrong else text


def _without_bookkeeping(found: Object) -> Object:
    """Without the metadata of the garbage collector and of the server."""
    idle = ("ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation")
    metadata = {key: value for key, value in found.get("metadata", {}).items() if key not in idle}
    return {**found, "metadata": metadata}
