"""A self-signed certificate for the scheduler's own port, where nobody gave one.

It is made by the OpenSSL that Python's ssl module stands on, called through ctypes: a library of its own for this would
be among the largest dependencies, and containers have no openssl command. Where that OpenSSL cannot be called
(a Python that has it built in), there is no certificate, and the error says what to do instead.
"""

from __future__ import annotations

import ctypes
import os
import ssl
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from situate.wire.errors import InputError

YEAR_S: Final = 365 * 24 * 3_600
NAMES: Final = "DNS:localhost,IP:127.0.0.1"
PAIR_NAME: Final = "kube-scheduler"
"""What the files in --cert-dir are called, as kube-scheduler calls them."""
NONE_CAN_BE_MADE: Final = (
    "no certificate can be made here: give --tls-cert-file and --tls-private-key-file, or --secure-port=0"
)

_MBSTRING_ASC: Final = 0x1001
_NID_SUBJECT_ALT_NAME: Final = 85
_NID_BASIC_CONSTRAINTS: Final = 87
_NID_KEY_USAGE: Final = 83
_NID_EXT_KEY_USAGE: Final = 126
_X509_V3: Final = 2


def self_signed(name: str = PAIR_NAME) -> tuple[bytes, bytes]:
    """A certificate and its key, as PEM. Raises InputError where none can be made."""
    try:
        return _Maker(_openssl()).make(name)
    except (OSError, AttributeError, _OpenSSLError) as error:
        raise InputError(NONE_CAN_BE_MADE) from error


def pair_in(folder: Path, name: str = PAIR_NAME) -> tuple[Path, Path]:
    """The certificate and key of a folder; made there if they are not. Raises InputError or OSError."""
    cert, key = folder / f"{name}.crt", folder / f"{name}.key"
    if not (cert.exists() and key.exists()):
        made_cert, made_key = self_signed(name)
        folder.mkdir(parents=True, exist_ok=True)
        for path, data, mode in ((cert, made_cert, 0o644), (key, made_key, 0o600)):
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
                file.write(data)
    return cert, key


def load(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Into a context. The ssl module reads files only, so these are files for a moment, readable by us alone."""
    with ExitStack() as stack:
        files = []
        for data in (cert, key):
            file = stack.enter_context(tempfile.NamedTemporaryFile(dir=_private_folder()))
            file.write(data)
            file.flush()
            files.append(file.name)
        context.load_cert_chain(*files)


def _private_folder() -> str | None:
    """Memory rather than a disk, where there is such a folder: a root filesystem may be read-only."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a file of ours, made safely


class _OpenSSLError(Exception):
    """A call into OpenSSL failed."""


def _openssl() -> ctypes.CDLL:
    """The very library that the ssl module uses: looking a name up there finds it in what it was linked with."""
    import _ssl

    return ctypes.CDLL(_ssl.__file__)


class _Maker:
    """A thin layer over the calls that are needed; each result is checked, each object freed."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def make(self, name: str) -> tuple[bytes, bytes]:
        with ExitStack() as stack:
            key = self._key()
            stack.callback(self._free, "EVP_PKEY_free", key)
            cert = self._pointer("X509_new")
            stack.callback(self._free, "X509_free", cert)
            self._fill(cert, key, name.encode())
            self._number("X509_sign", cert, key, self._pointer("EVP_sha256"))
            return self._pem("PEM_write_bio_X509", cert), self._pem(
                "PEM_write_bio_PrivateKey", key, None, None, ctypes.c_int(0), None, None
            )

    def _key(self) -> ctypes.c_void_p:
        context = self._pointer("EVP_PKEY_CTX_new_from_name", None, b"EC", None)
        try:
            self._number("EVP_PKEY_keygen_init", context)
            self._number("EVP_PKEY_CTX_set_group_name", context, b"P-256")
            key = ctypes.c_void_p(None)
            self._number("EVP_PKEY_generate", context, ctypes.byref(key))
            return key
        finally:
            self._free("EVP_PKEY_CTX_free", context)

    def _fill(self, cert: ctypes.c_void_p, key: ctypes.c_void_p, name: bytes) -> None:
        self._number("X509_set_version", cert, ctypes.c_long(_X509_V3))
        serial = int.from_bytes(os.urandom(8)) >> 1
        self._number("ASN1_INTEGER_set_uint64", self._pointer("X509_get_serialNumber", cert), ctypes.c_uint64(serial))
        # An hour back, for clocks that are behind.
        self._pointer("X509_gmtime_adj", self._pointer("X509_getm_notBefore", cert), ctypes.c_long(-3_600))
        self._pointer("X509_gmtime_adj", self._pointer("X509_getm_notAfter", cert), ctypes.c_long(YEAR_S))
        subject = self._pointer("X509_get_subject_name", cert)
        where = (ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_int(0))  # its length by itself, at the end, a new set
        self._number("X509_NAME_add_entry_by_txt", subject, b"CN", ctypes.c_int(_MBSTRING_ASC), name, *where)
        self._number("X509_set_issuer_name", cert, subject)
        self._number("X509_set_pubkey", cert, key)
        for kind, value in (
            (_NID_BASIC_CONSTRAINTS, b"critical,CA:TRUE"),
            (_NID_KEY_USAGE, b"critical,digitalSignature,keyEncipherment,keyCertSign"),
            (_NID_EXT_KEY_USAGE, b"serverAuth"),
            (_NID_SUBJECT_ALT_NAME, NAMES.encode()),
        ):
            extension = self._pointer("X509V3_EXT_conf_nid", None, None, ctypes.c_int(kind), value)
            try:
                self._number("X509_add_ext", cert, extension, ctypes.c_int(-1))
            finally:
                self._free("X509_EXTENSION_free", extension)

    def _pem(self, write: str, *arguments: object) -> bytes:
        bio = self._pointer("BIO_new", self._pointer("BIO_s_mem"))
        try:
            self._number(write, bio, *arguments)
            text = ctypes.create_string_buffer(1 << 14)
            length = self._number("BIO_read", bio, text, ctypes.c_int(len(text)))
            return text.raw[:length]
        finally:
            self._free("BIO_free", bio)

    def _pointer(self, name: str, *arguments: object) -> ctypes.c_void_p:
        function = self._library[name]
        function.restype = ctypes.c_void_p
        found = function(*arguments)
        if not found:
            raise _OpenSSLError(name)
        return ctypes.c_void_p(found)

    def _number(self, name: str, *arguments: object) -> int:
        function = self._library[name]
        function.restype = ctypes.c_int
        found = int(function(*arguments))
        if found <= 0:
            raise _OpenSSLError(name)
        return found

    def _free(self, name: str, pointer: ctypes.c_void_p) -> None:
        function = self._library[name]
        function.restype = None
        function(pointer)
