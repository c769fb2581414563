"""Creates the certificates of an authority, a server and a client. Stores none."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from situate.server.identity.secret_files import IdentityError

AUTHORITY_LIFE: Final = timedelta(days=3650)
LEAF_LIFE: Final = timedelta(days=365)
CLOCKS_DIFFER: Final = timedelta(hours=2)
"""How far a verifier's clock may be behind ours, or ours be set back."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def read_key(path: Path, text: bytes) -> ec.EllipticCurvePrivateKey:
    """The key in the text of a file, after a certificate or alone. Raises IdentityError."""
    try:
        key = serialization.load_pem_private_key(text[max(0, text.find(b"-----BEGIN PRIVATE KEY")) :], None)
    except (ValueError, TypeError) as error:
        raise IdentityError(f"{path} is damaged: it has no private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise IdentityError(f"{path} has a key of another type; it must be ECDSA")
    return key


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def subject(user: str, groups: Iterable[str] = ()) -> x509.Name:
    """CN is the user, each O a group."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether a third of its life is left, or less."""
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= end - (end - start) / 3


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def key_identifier(authority: x509.Certificate) -> bytes:
    """The identifier by which the certificates that it has signed name its key."""
    try:
        return authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:  # an authority that others made
        key: Any = authority.public_key()
        return x509.SubjectKeyIdentifier.from_public_key(key).digest


def issuer_identifier(certificate: x509.Certificate, authorities: Iterable[x509.Certificate]) -> bytes:
    """The key identifier of the authority that signed a certificate; empty if none of them did."""
    for authority in authorities:
        with suppress(InvalidSignature, TypeError, ValueError):
            certificate.verify_directly_issued_by(authority)
            return key_identifier(authority)
    return b""


def authority_certificate(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = subject("situate")
    usage = _usage(signs_certificates=True)
    return (
        _begun(name, name, key.public_key(), now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def server_certificate(
    issuer: x509.Certificate, signer: ec.EllipticCurvePrivateKey, names: Sequence[str], now: datetime
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = new_key()
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
    builder = _leaf(issuer, subject("situate-server"), key.public_key(), now, ExtendedKeyUsageOID.SERVER_AUTH)
    return builder.add_extension(alternatives, critical=False).sign(signer, hashes.SHA256()), key


def client_certificate(
    issuer: x509.Certificate,
    signer: ec.EllipticCurvePrivateKey,
    name: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta = LEAF_LIFE,
) -> x509.Certificate:
    return _leaf(issuer, name, key, now, ExtendedKeyUsageOID.CLIENT_AUTH, life).sign(signer, hashes.SHA256())


def requested_certificate(
    issuer: x509.Certificate,
    signer: ec.EllipticCurvePrivateKey,
    request: x509.CertificateSigningRequest,
    now: datetime,
    life: timedelta,
    *,
    serving: bool,
) -> x509.Certificate:
    """A certificate for the subject and the key of a request; with its alternative names, if it is for a server."""
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if serving else ExtendedKeyUsageOID.CLIENT_AUTH
    key: Any = request.public_key()
    builder = _leaf(issuer, request.subject, key, now, purpose, life)
    if serving:
        builder = builder.add_extension(alternative_names(request), critical=False)
    return builder.sign(signer, hashes.SHA256())


def alternative_names(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName:
    """Those that a request asks for; empty if it asks for none."""
    with suppress(x509.ExtensionNotFound, ValueError):
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return x509.SubjectAlternativeName([])


def signing_request(key: ec.EllipticCurvePrivateKey, name: x509.Name) -> bytes:
    """A certificate signing request, PEM: it proves that the sender has the key."""
    return (
        x509.CertificateSigningRequestBuilder()
        .subject_name(name)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )


def requested_key(request: bytes) -> ec.EllipticCurvePublicKey:
    """The public key of the request, which must be signed with it. Raises IdentityError."""
    try:
        read = x509.load_pem_x509_csr(request)
        key, signed = read.public_key(), read.is_signature_valid
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        raise IdentityError("not a certificate signing request") from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise IdentityError("the key must be ECDSA")
    if not signed:
        raise IdentityError("not signed with its own key")
    return key


def key_hash(certificate: x509.Certificate) -> str:
    """The SHA-256 of an authority's public key, as kubeadm writes it: `sha256:<hex>`."""
    key = certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def _begun(
    name: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _leaf(
    issuer: x509.Certificate,
    name: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    purpose: x509.ObjectIdentifier,
    life: timedelta = LEAF_LIFE,
) -> x509.CertificateBuilder:
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    # No certificate outlives its authority.
    life = min(life, issuer.not_valid_after_utc - now)
    return (
        _begun(name, issuer.subject, key, now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )


def _usage(*, signs_certificates: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
