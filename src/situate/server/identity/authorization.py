"""May they? Members of system:masters may all; nodes what the node authorizer says; everybody what RBAC says."""

from __future__ import annotations

from typing import Final, Protocol

from situate.server.identity.attributes import Asking, Attributes, Decision, requirements
from situate.server.identity.node_authorizer import NODES, NodeAuthorizer
from situate.server.identity.ports import Objects
from situate.server.identity.rbac import Rbac
from situate.server.requests import Caller

__all__ = ["Authorization", "named_by_fields"]

OF_MANY: Final = ("list", "watch")


class Authorizer(Protocol):
    def allows(self, caller: Caller, asked: Asking) -> Decision: ...


class Authorization:
    """One yes is enough. The reasons of all who said no are told together."""

    def __init__(self, objects: Objects) -> None:
        self.rbac: Final = Rbac(objects)
        self._nodes = NodeAuthorizer(objects)

    def allows(self, caller: Caller, asked: Asking) -> Decision:
        decision = self.rbac.allows(caller, asked)
        if decision.allowed or NODES not in caller.groups:
            return decision
        by_node = self._nodes.allows(caller, asked)
        if by_node.allowed or not decision.reason:
            return by_node
        return Decision(False, f"{by_node.reason}\n{decision.reason}" if by_node.reason else decision.reason)


def named_by_fields(asked: Asking) -> Asking:
    """A list or watch of the one object whose metadata.name is selected counts as one of that name."""
    if not asked.fields or asked.name or asked.verb not in OF_MANY:
        return asked
    for term in requirements(asked.fields):
        if term.key == "metadata.name" and term.equals and term.value:
            return Attributes(
                asked.verb,
                asked.group,
                asked.resource,
                asked.subresource,
                asked.namespace,
                term.value,
                asked.path,
                asked.fields,
            )
    return asked
