"""Revokes one certificate, as `situate user remove` does."""

from datetime import UTC, datetime

from cryptography import x509

from situate.server.identity.pki.authority import Authority
from situate.server.identity.pki.revocation import REVOKED, RevocationList, revoke


def revoke_certificate(authority: Authority, certificate: bytes) -> None:
    read = x509.load_pem_x509_certificate(certificate)
    revoked = RevocationList({read.serial_number: read.not_valid_after_utc})
    revoke(authority.folder / REVOKED, revoked, datetime.now(UTC))
