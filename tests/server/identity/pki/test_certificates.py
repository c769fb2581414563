"""What is in a certificate: for what it may be used, for how long, and by whose key."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from situate.server.identity.pki import certificates
from situate.server.identity.secret_files import IdentityError

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEY = certificates.new_key()
AUTHORITY = certificates.authority_certificate(KEY, NOW)
OTHER_KEY = certificates.new_key()
OTHER = certificates.authority_certificate(OTHER_KEY, NOW)


def client(life: timedelta = certificates.LEAF_LIFE) -> x509.Certificate:
    name, key = certificates.subject("jane", ["dev"]), certificates.new_key().public_key()
    return certificates.client_certificate(AUTHORITY, KEY, name, key, NOW, life)


def server() -> x509.Certificate:
    return certificates.server_certificate(AUTHORITY, KEY, ["a.example", "10.0.0.1"], NOW)[0]


def usages(certificate: x509.Certificate) -> set[str]:
    found = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    names = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
    )
    return {name for name in names if getattr(found, name)}


def critical(certificate: x509.Certificate) -> set[str]:
    return {type(one.value).__name__ for one in certificate.extensions if one.critical}


def test_an_authority_signs_certificates_but_no_other_authority() -> None:
    limits = AUTHORITY.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (True, 0)
    assert usages(AUTHORITY) == {"digital_signature", "key_cert_sign", "crl_sign"}
    assert critical(AUTHORITY) == {"BasicConstraints", "KeyUsage"}


@pytest.mark.parametrize(
    "made, purpose",
    [(client(), ExtendedKeyUsageOID.CLIENT_AUTH), (server(), ExtendedKeyUsageOID.SERVER_AUTH)],
    ids=["client", "server"],
)
def test_a_leaf_is_for_one_purpose_and_signs_nothing(made: x509.Certificate, purpose: x509.ObjectIdentifier) -> None:
    limits = made.extensions.get_extension_for_class(x509.BasicConstraints).value
    assert (limits.ca, limits.path_length) == (False, None)
    assert usages(made) == {"digital_signature"}
    assert critical(made) == {"BasicConstraints", "KeyUsage"}
    assert list(made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [purpose]
    named = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    assert named == certificates.key_identifier(AUTHORITY)
    assert made.not_valid_before_utc == NOW - certificates.CLOCKS_DIFFER


def test_a_certificate_is_due_when_a_third_of_its_life_is_left() -> None:
    made = client()
    third = (made.not_valid_after_utc - made.not_valid_before_utc) / 3
    at = made.not_valid_after_utc - third
    assert certificates.due(made, at)
    assert not certificates.due(made, at - timedelta(seconds=1))


def test_the_authority_that_signed_is_found() -> None:
    made = client()
    assert certificates.is_issued_by(made, AUTHORITY)
    assert not certificates.is_issued_by(made, OTHER)
    for order in ([AUTHORITY, OTHER], [OTHER, AUTHORITY]):
        assert certificates.issuer_identifier(made, order) == certificates.key_identifier(AUTHORITY)
    assert certificates.issuer_identifier(made, [OTHER]) == b""


def test_a_request_must_be_signed_with_its_own_key() -> None:
    request = certificates.signing_request(KEY, certificates.subject("n1"))
    assert certificates.requested_key(request) == KEY.public_key()
    read = x509.load_pem_x509_csr(request)
    signature = read.signature
    der = read.public_bytes(serialization.Encoding.DER)
    forged = (
        der[: -len(signature)]
        + x509.load_pem_x509_csr(certificates.signing_request(OTHER_KEY, certificates.subject("n1"))).signature.rjust(
            len(signature), b"\0"
        )[: len(signature)]
    )
    for changed in (forged, der.replace(b"n1", b"n2")):
        text = x509.load_der_x509_csr(changed).public_bytes(serialization.Encoding.PEM)
        with pytest.raises(IdentityError, match=r"not signed with its own key|not a certificate signing request"):
            certificates.requested_key(text)


@pytest.mark.parametrize("text", [b"", b"x", certificates.pem(AUTHORITY)])
def test_a_file_without_a_key_is_damaged(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(IdentityError, match="is damaged: it has no private key"):
        certificates.read_key(tmp_path / "k", text)


def test_a_key_is_found_after_a_certificate_and_must_be_ecdsa(tmp_path: Path) -> None:
    for text in (certificates.key_pem(KEY), certificates.pem(AUTHORITY) + certificates.key_pem(KEY)):
        assert certificates.read_key(tmp_path / "k", text).public_key() == KEY.public_key()
    other = rsa.generate_private_key(65537, 2048)
    text = other.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(IdentityError, match="has a key of another type; it must be ECDSA"):
        certificates.read_key(tmp_path / "k", text)


def test_the_names_of_a_server_are_not_critical_and_of_their_kind() -> None:
    names = server().extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert not names.critical
    assert names.value.get_values_for_type(x509.DNSName) == ["a.example"]
    assert [str(one) for one in names.value.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]


def test_a_shorter_life_is_kept() -> None:
    assert client(timedelta(days=1)).not_valid_after_utc == NOW + timedelta(days=1)
