"""Authorizes a request: by system:masters, by RBAC, or, for nodes, by the node authorizer."""

from __future__ import annotations

from typing import Final

from situate.server.identity.authorization.attributes import YES, Attributes, AuthorizerDecision, field_requirements
from situate.server.identity.authorization.node_authorizer import NODES, NodeAuthorizer
from situate.server.identity.authorization.rbac import Rbac
from situate.server.identity.ports import ObjectReader
from situate.server.requests import Caller

OF_MANY: Final = ("list", "watch")


class Authorization:
    """One authorizer that allows is enough. A refusal has the reasons of all."""

    def __init__(self, objects: ObjectReader, *, allows_all: bool = False) -> None:
        self.rbac: Final = Rbac(objects)
        self._nodes = NodeAuthorizer(objects)
        self._allows_all = allows_all

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        if self._allows_all:
            return YES
        decision = self.rbac.allows(caller, attributes)
        if decision.allowed or NODES not in caller.groups:
            return decision
        by_node = self._nodes.allows(caller, attributes)
        if by_node.allowed or not decision.reason:
            return by_node
        return AuthorizerDecision(False, f"{by_node.reason}\n{decision.reason}" if by_node.reason else decision.reason)


def named_by_fields(attributes: Attributes) -> Attributes:
    """A list or watch with metadata.name in its field selector counts as one of that name."""
    if not attributes.fields or attributes.name or attributes.verb not in OF_MANY:
        return attributes
    for term in field_requirements(attributes.fields):
        if term.key == "metadata.name" and term.equals and term.value:
            return attributes._replace(name=term.value)
    return attributes
