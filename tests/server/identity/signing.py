"""Signing requests, as an agent makes them."""

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from situate.server.identity import certificates


def request(user: str, *groups: str, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> bytes:
    signer = key or certificates.new_key()
    csr = x509.CertificateSigningRequestBuilder().subject_name(certificates.subject(user, groups))
    return csr.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
