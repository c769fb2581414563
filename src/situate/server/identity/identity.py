"""The one thing a request passes: who is it, for whom does it speak, may it; and what it leaves in the log.

The order is that of kube-apiserver: authenticate, impersonate, authorize, then the request itself, then the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from situate.server.identity.attributes import Attributes, AuthorizerDecision, forbidden_error
from situate.server.identity.audit import AuditLog
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization import Authorization, named_by_fields
from situate.server.identity.impersonation import impersonate
from situate.server.requests import Caller

__all__ = ["Identity"]


@dataclass(frozen=True, slots=True)
class Identity:
    authentication: Authentication
    authorization: Authorization
    audit: AuditLog

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller:
        """Who asks. `peer` is the client's certificate (DER) that TLS has verified, `authorization` the header.

        Raises the 401 for what is shown and not good. Somebody who shows nothing is `system:anonymous`.
        """
        return self.authentication.authenticate(peer, authorization, agent)

    def impersonate(self, caller: Caller, headers: Iterable[tuple[str, str]]) -> Caller:
        """The one whom the `Impersonate-` headers name, if the caller may speak for them; else the caller itself."""
        return impersonate(caller, headers, self.authorize)

    def allows(self, caller: Caller, attributes: Attributes) -> AuthorizerDecision:
        """May they? Costs a few microseconds; never raises."""
        return self.authorization.allows(caller, named_by_fields(attributes) if attributes.fields else attributes)

    def authorize(self, caller: Caller, attributes: Attributes) -> None:
        """`allows`, but a no is raised as the 403 that the client is shown."""
        decision = self.allows(caller, attributes)
        if not decision.allowed:
            raise forbidden_error(caller, attributes, decision.reason)
