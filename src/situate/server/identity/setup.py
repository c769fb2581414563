"""Builds all of identity from a folder and the registry's cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from situate.server.http.ports import CreateHandlers
from situate.server.identity.audit.log import AuditLog
from situate.server.identity.audit.policy import AuditPolicy
from situate.server.identity.authentication import Authentication
from situate.server.identity.authorization.authorization import Authorization
from situate.server.identity.authorization.escalation import NoEscalation
from situate.server.identity.authorization.node_restriction import NodeRestriction
from situate.server.identity.authorization.reviews import Reviews
from situate.server.identity.create_handlers import create_handlers
from situate.server.identity.file_names import AUTHORITY
from situate.server.identity.identity import Identity
from situate.server.identity.joining.bootstrap_tokens import BootstrapTokens
from situate.server.identity.joining.csr_admission import CertificateRequestAdmission
from situate.server.identity.pki.account_keys import open_account_keys
from situate.server.identity.pki.authority import NOTHING_GIVEN, Authority, GivenCertificates, open_authority
from situate.server.identity.pki.revocation import REVOKED, Revocations
from situate.server.identity.ports import ObjectReader
from situate.server.identity.tokens.service_account_tokens import ISSUER, AccountTokens
from situate.server.identity.tokens.token_files import UserTokens
from situate.server.identity.tokens.token_requests import TokenRequests

USER_TOKENS: Final = "tokens.json"
AUDIT_LOG: Final = "audit.log"


@dataclass(frozen=True, slots=True)
class IdentityParts:
    identity: Identity
    authority: Authority
    restriction: NodeRestriction
    """The first of the registry's admission. Evictions bypass the registry and use `create_handlers.restricted`."""
    requests: CertificateRequestAdmission
    """Of certificates."""
    escalation: NoEscalation
    """The last of the registry's admission."""
    tokens: TokenRequests
    """For agents in the server's own process."""
    create_handlers: CreateHandlers


def open_identity(
    folder: Path,
    objects: ObjectReader,
    *,
    clock: Callable[[], datetime],
    wall_ns: Callable[[], int],
    new_uid: Callable[[], str],
    anonymous: bool = True,
    audit_policy: AuditPolicy | None = None,
    given: GivenCertificates = NOTHING_GIVEN,
    account_issuer: str = ISSUER,
    allows_all: bool = False,
) -> IdentityParts:
    """Create what `folder`, the server's own, lacks. Start `identity.audit` when the server starts. `allows_all`: every
    request is authorized, as with kube-apiserver's AlwaysAllow.

    Raises IdentityError, in one line, for a file that is damaged or belongs to somebody else.
    """
    authority = open_authority(folder / AUTHORITY, clock(), given)
    users = UserTokens(folder / USER_TOKENS)
    users.find("", clock())  # raises if the file is damaged
    accounts = AccountTokens(open_account_keys(folder / AUTHORITY), objects, account_issuer)
    authorization = Authorization(objects, allows_all=allows_all)
    authentication = Authentication(
        clock=clock,
        users=users,
        accounts=accounts,
        bootstrap=BootstrapTokens(objects),
        revoked=Revocations(folder / AUTHORITY / REVOKED, objects),
        issuers=authority.issuers,
        issuer_of=authority.issuer_of,
        anonymous=anonymous,
    )
    restriction = NodeRestriction(objects, authorization)
    tokens = TokenRequests(objects, accounts, restriction, clock=clock, new_uid=new_uid)
    audit = AuditLog(folder / AUDIT_LOG, wall_ns=wall_ns, policy=audit_policy)
    return IdentityParts(
        identity=Identity(authentication, authorization, audit),
        authority=authority,
        restriction=restriction,
        requests=CertificateRequestAdmission(authorization),
        escalation=NoEscalation(authorization.rbac, authorization),
        tokens=tokens,
        create_handlers=create_handlers(Reviews(authorization, authentication), tokens),
    )
