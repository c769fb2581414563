"""Authenticates a request by the certificate that TLS has verified, or by a bearer token; else it is anonymous."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

from situate.server.errors import StatusError
from situate.server.identity.joining.bootstrap_tokens import BootstrapTokens
from situate.server.identity.pki.revocation import RevocationList
from situate.server.identity.secret_files import IdentityError
from situate.server.identity.tokens.service_account_tokens import AccountTokens, TokenError, VerifiedToken
from situate.server.identity.tokens.token_files import UserTokens
from situate.server.requests import Caller

AUTHENTICATED: Final = "system:authenticated"
ANONYMOUS: Final = Caller("system:anonymous", ("system:unauthenticated",))
MAX_CACHED_CERTIFICATES: Final = 10_000
"""By certificate and User-Agent."""
MAX_CACHED_AGENT: Final = 256
"""The length of a User-Agent. With a longer one, the certificate is read for each request."""


def unauthorized() -> StatusError:
    return StatusError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


class _Known(NamedTuple):
    caller: Caller
    serial: int
    issuer: bytes
    start: datetime
    end: datetime


class Authentication:
    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        users: UserTokens | None = None,
        accounts: AccountTokens | None = None,
        bootstrap: BootstrapTokens | None = None,
        revoked: Callable[[], RevocationList] = RevocationList,
        issuers: Callable[[], frozenset[bytes]] | None = None,
        issuer_of: Callable[[x509.Certificate], bytes] = lambda _: b"",
        anonymous: bool = True,
    ) -> None:
        self.last_error = ""
        """Why the last look-up of a token failed."""
        self._clock = clock
        self._users = users
        self._accounts = accounts
        self._bootstrap = bootstrap
        self._revoked = revoked
        self._issuers = issuers
        """The authorities that are trusted now. An open connection or the TLS context may still have former ones."""
        self._issuer_of = issuer_of
        self._anonymous = anonymous
        self._known: dict[tuple[bytes, str], _Known] = {}

    def authenticate(self, peer: bytes | None, authorization: str, agent: str = "") -> Caller:
        """Raises 401 for invalid credentials, or for none if anonymous requests are not allowed."""
        if peer:
            found = self._by_certificate(peer, agent)
        else:
            scheme, _, token = authorization.strip().partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                found = _with_agent(self.by_token(token.strip()), agent)
            else:
                # As in Kubernetes, any other scheme counts as no credentials.
                found = _with_agent(ANONYMOUS, agent) if self._anonymous else None
        if found is None:
            raise unauthorized()
        return found

    def by_token(self, token: str) -> Caller | None:
        try:
            return self.review(token).caller
        except TokenError:
            return None

    def review(self, token: str, audiences: Sequence[str] = ()) -> VerifiedToken:
        """The caller of a token, for TokenReview. Raises TokenError."""
        now = self._clock()
        if self._accounts is not None and self._accounts.claims_our_issuer(token):
            return self._accounts.verify(token, now, audiences)
        try:
            found = self._bootstrap.find(token, now) if self._bootstrap is not None else None
            if found is None and self._users is not None:
                found = self._users.find(token, now)
        except IdentityError as error:
            # The file was damaged while the server runs: let nobody in.
            self.last_error = str(error)
            found = None
        if found is None:
            raise TokenError("invalid bearer token")
        ours = self._accounts.audiences if self._accounts is not None else ()
        wanted = tuple(audiences) or ours
        common = tuple(audience for audience in wanted if audience in ours)
        if wanted and not common:
            raise TokenError("token is not valid for any of the audiences asked for")
        return VerifiedToken(found, common)

    def _by_certificate(self, der: bytes, agent: str) -> Caller | None:
        known = self._known.get((der, agent)) if len(agent) <= MAX_CACHED_AGENT else None
        if known is None:
            known = self._read(der, agent)
            if len(self._known) >= MAX_CACHED_CERTIFICATES:
                self._known.clear()
            if len(agent) <= MAX_CACHED_AGENT:
                self._known[der, agent] = known
        # TLS has checked the time when the connection was opened, which may be long ago.
        good = known.start <= self._clock() <= known.end and known.caller.name
        if self._issuers is not None and known.issuer not in self._issuers():
            return None
        return known.caller if good and not self._revoked().has(known.serial, known.caller.name, known.start) else None

    def _read(self, der: bytes, agent: str) -> _Known:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        groups = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
        caller = Caller(
            str(names[0].value) if names else "",
            (*(str(group.value) for group in groups), AUTHENTICATED),
            extra=extra,
            agent=agent,
        )
        return _Known(
            caller,
            certificate.serial_number,
            self._issuer_of(certificate),
            certificate.not_valid_before_utc,
            certificate.not_valid_after_utc,
        )


def _with_agent(caller: Caller | None, agent: str) -> Caller | None:
    if caller is None or caller.agent == agent:
        return caller
    return Caller(caller.name, caller.groups, caller.uid, caller.extra, agent)
