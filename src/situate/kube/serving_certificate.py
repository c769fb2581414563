"""A self-signed certificate for the scheduler's own port, if there is no other."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

LIFE: Final = timedelta(days=365)
SLACK: Final = timedelta(hours=1)
"""Validity before now, for clocks that are behind."""
_USAGES: Final = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
PAIR_NAME: Final = "kube-scheduler"
"""kube-scheduler's name for the files in --cert-dir."""


def self_signed(name: str = PAIR_NAME) -> tuple[bytes, bytes]:
    """A certificate and its key, as PEM."""
    # Imported late: most schedulers have a certificate, or no port.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = dict.fromkeys(_USAGES, False) | dict.fromkeys(
        ("digital_signature", "key_encipherment", "key_cert_sign"), True
    )
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SLACK)
        .not_valid_after(now + LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    return made.public_bytes(encoding), key.private_bytes(
        encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def pair_in(folder: Path, name: str = PAIR_NAME) -> tuple[Path, Path]:
    """The certificate and key in a folder, made if they are missing. Raises InputError or OSError."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    if not (cert.exists() and key.exists()):
        made_cert, made_key = self_signed(name)
        folder.mkdir(parents=True, exist_ok=True)
        for path, data, mode in ((cert, made_cert, 0o644), (key, made_key, 0o600)):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
                file.write(data)
    return cert, key
