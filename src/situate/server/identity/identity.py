"""What a request passes, in kube-apiserver's order: authenticate, impersonate, authorize; later the audit log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from situate.server.identity.audit.log import AuditLog
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.attributes import Attributes, AuthorizerDecision, forbidden_error
from situate.server.identity.authorization.authorization import Authorization, named_by_fields
from situate.server.identity.impersonation import impersonate
from situate.server.requests import Caller, Target


@dataclass(frozen=True, slots=True)
class Identity:
    authentication: Authentication
    authorization: Authorization
    audit: AuditLog

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller:
        """The caller. `peer` is the client's certificate (DER) that TLS has verified, `authorization` the header.

        Raises 401 for invalid credentials. Without credentials the caller is `system:anonymous`.
        """
        return self.authentication.authenticate(peer, authorization, agent)

    def impersonate(self, caller: Caller, headers: Iterable[tuple[str, str]]) -> Caller:
        """The user that the `Impersonate-` headers name, or the caller. Raises 403 if the caller may not."""
        return impersonate(caller, headers, self.authorize)

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        """The decision. Takes a few microseconds; never raises."""
        return self.authorization.allows(caller, named_by_fields(attributes) if attributes.fields else attributes)

    def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """Raises 403 if `allows` refuses."""
        decision = self.allows(caller, attributes)
        if not decision.allowed:
            raise forbidden_error(caller, attributes, decision.reason)

    def authorize_create(self, caller: Caller, target: Target) -> None:
        """Raises 403 if the caller may not create this object: for an update or an apply that finds none."""
        resource = target.resource
        # The namespace of a Namespace is its own name.
        namespace = target.name if (resource.group, resource.plural) == ("", "namespaces") else target.namespace
        self.authorize(caller, Attributes("create", resource.group, resource.plural, "", namespace, target.name))
