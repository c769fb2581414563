"""All of identity, put together: from a folder and the registry's cache to what a server needs of it."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from situate.server.http.ports import CreateHandlers
from situate.server.identity.audit import DEFAULT, AuditLog, Policy
from situate.server.identity.authentication import Authentication
from situate.server.identity.authority import Authority, open_authority
from situate.server.identity.authorization import Authorization
from situate.server.identity.create_handlers import create_handlers
from situate.server.identity.escalation import NoEscalation
from situate.server.identity.identity import Identity
from situate.server.identity.node_join import NodeJoin
from situate.server.identity.node_restriction import NodeRestriction
from situate.server.identity.ports import CacheReader
from situate.server.identity.reviews import Reviews
from situate.server.identity.service_account_tokens import AccountTokens
from situate.server.identity.token_files import JoinTokens, UserTokens
from situate.server.identity.token_requests import TokenRequests

__all__ = ["IdentityParts", "open_identity"]

AUTHORITY: Final = "pki"
USER_TOKENS: Final = "tokens.json"
JOIN_TOKENS: Final = "join-tokens.json"
AUDIT_LOG: Final = "audit.log"


@dataclass(frozen=True, slots=True)
class IdentityParts:
    identity: Identity
    authority: Authority
    restriction: NodeRestriction
    """Goes first in the registry's admission. Evictions pass no registry: `create_handlers.restricted` is for them."""
    escalation: NoEscalation
    """Goes last in the registry's admission."""
    create_handlers: CreateHandlers
    node_join: NodeJoin
    user_tokens: UserTokens
    join_tokens: JoinTokens
    account_tokens: AccountTokens

    def tls(self, names: Sequence[str], now: datetime) -> ssl.SSLContext:
        return self.authority.tls(names, now)


def open_identity(
    folder: Path,
    objects: CacheReader,
    *,
    clock: Callable[[], datetime],
    wall_ns: Callable[[], int],
    new_uid: Callable[[], str],
    policy: Policy = DEFAULT,
    anonymous: bool = True,
) -> IdentityParts:
    """`folder` is the server's own; what is missing in it is made. Start `identity.audit` when the server starts.

    Raises IdentityError, in one line, for what is damaged or somebody else's.
    """
    authority = open_authority(folder / AUTHORITY, clock())
    users, joins = UserTokens(folder / USER_TOKENS), JoinTokens(folder / JOIN_TOKENS)
    users.find("")
    joins.check()
    accounts = AccountTokens(authority.accounts_key, objects)
    authorization = Authorization(objects)
    authentication = Authentication(
        clock=clock,
        users=users,
        accounts=accounts,
        joining=joins,
        revoked=authority.revocations(),
        anonymous=anonymous,
    )
    restriction = NodeRestriction(objects, authorization)
    tokens = TokenRequests(objects, accounts, restriction, clock=clock, new_uid=new_uid)
    audit = AuditLog(folder / AUDIT_LOG, wall_ns=wall_ns, policy=policy)
    return IdentityParts(
        identity=Identity(authentication, authorization, audit),
        authority=authority,
        restriction=restriction,
        escalation=NoEscalation(authorization.rbac, authorization),
        create_handlers=create_handlers(Reviews(authorization, authentication), tokens),
        node_join=NodeJoin(authority, joins, clock=clock),
        user_tokens=users,
        join_tokens=joins,
        account_tokens=accounts,
    )
