"""The keys of a test cluster, made by the openssl command: it is on nearly every machine, so no library is needed.

The API server makes its serving certificate itself (--cert-dir). What is made here: the key that signs the tokens of
service accounts, and an authority with one client certificate, for an administrator who has no token.
"""

import subprocess
from pathlib import Path

ADMIN_SUBJECT = "/O=system:masters/CN=certified-admin"


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


def make_key(path: Path) -> Path:
    # In the older of two spellings: the API server takes no PKCS 8 for a public key.
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    return path


def make_certificates(home: Path) -> None:
    """client-ca.crt, admin.crt, admin.key and service-accounts.key in `home`."""
    make_key(home / "service-accounts.key")
    authority = make_key(home / "client-ca.key")
    openssl(
        "req",
        "-x509",
        "-new",
        "-key",
        authority,
        "-subj",
        "/CN=client-ca",
        "-days",
        "2",
        "-out",
        home / "client-ca.crt",
    )
    request, key = home / "admin.csr", make_key(home / "admin.key")
    openssl("req", "-new", "-key", key, "-subj", ADMIN_SUBJECT, "-out", request)
    signer = ("-CA", home / "client-ca.crt", "-CAkey", authority, "-CAcreateserial")
    openssl("x509", "-req", "-in", request, *signer, "-days", "2", "-out", home / "admin.crt")
