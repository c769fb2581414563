"""Reads etcd's credentials from files, once: an authority, a client certificate, a user and password."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from situate.store.errors import InvalidRequestError
from situate.store.etcd.settings import EtcdSettings

MAX_FILE_BYTES: Final = 1 << 20
ETCD: Final = ("etcd://", "etcds://")
TOGETHER: Final = "--etcd-certfile and --etcd-keyfile must be given together"
NOT_ETCD: Final = "--etcd-cafile, --etcd-certfile, --etcd-keyfile and --etcd-user-file need a store on etcd"


def etcd_credentials(
    where: str, ca: Path | None, certificate: Path | None, key: Path | None, user: Path | None
) -> EtcdSettings | None:
    """None if no file is given. Raises InvalidRequestError, in one line."""
    if not any((ca, certificate, key, user)):
        return None
    if not where.startswith(ETCD):
        raise InvalidRequestError(f"{NOT_ETCD}: --store must begin with {' or '.join(ETCD)}")
    if (certificate is None) != (key is None):
        raise InvalidRequestError(TOGETHER)
    checked = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is not None:
        _read(ca)
        _check(ca, partial(checked.load_verify_locations, ca), "has no certificates in PEM")
    if certificate is not None and key is not None:
        _read(certificate)
        _read(key)
        load = partial(checked.load_cert_chain, certificate, key, password=_no_password)
        _check(certificate, load, f"and {key} are not a certificate and its key in PEM, without a password")
    name, password = _user(user) if user is not None else ("", "")
    return EtcdSettings(
        endpoints=(),
        ca=_read(ca) if ca is not None else None,
        certificate=_read(certificate) if certificate is not None else None,
        key=_read(key) if key is not None else None,
        username=name,
        password=password,
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidRequestError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequestError(f"{path} is larger than {MAX_FILE_BYTES} bytes")
    return data


def _check(path: Path, load: Callable[[], None], problem: str) -> None:
    try:
        load()
    except (ssl.SSLError, ValueError) as error:
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise InvalidRequestError(f"the key does not belong to the certificate in {path}") from None
        raise InvalidRequestError(f"{path} {problem}") from None


def _no_password() -> str:
    raise ValueError("the key is encrypted")


def _user(path: Path) -> tuple[str, str]:
    if path.exists() and path.stat().st_mode & 0o077:
        raise InvalidRequestError(f"{path} is readable by others; run chmod 600")
    text = _read(path).decode("utf-8", "replace").strip("\n")
    name, separator, password = text.partition(":")
    if not separator or not name or not password or "\n" in text:
        raise InvalidRequestError(f"{path} must have one line: name:password")
    return name, password
