"""Encrypts and decrypts values, in the form in which kube-apiserver stores them: `k8s:enc:aesgcm:v1:<key>:` first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ENCRYPTED: Final = b"k8s:enc:"
NONCE_BYTES: Final = 12


class CannotDecryptError(Exception):
    """No configured key decrypts the value. The message is one line for the administrator."""


@dataclass(frozen=True, slots=True)
class AesGcm:
    """AES-GCM with one key. A value is authenticated together with its store key, so nobody can swap two values."""

    prefix: bytes
    cipher: AESGCM

    def encrypt(self, key: str, text: bytes) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return self.prefix + nonce + self.cipher.encrypt(nonce, text, key.encode())

    def decrypt(self, key: str, value: bytes) -> bytes:
        start = len(self.prefix)
        nonce, rest = value[start : start + NONCE_BYTES], value[start + NONCE_BYTES :]
        return self.cipher.decrypt(nonce, rest, key.encode())

    def wrote(self, value: bytes) -> bool:
        return value.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class Plain:
    """Kubernetes' `identity` provider: no encryption."""

    def encrypt(self, _key: str, text: bytes) -> bytes:
        return text

    def decrypt(self, _key: str, value: bytes) -> bytes:
        return value

    def wrote(self, value: bytes) -> bool:
        return not value.startswith(ENCRYPTED)


@dataclass(frozen=True, slots=True)
class Providers:
    """The providers of one resource, in order: the first one encrypts, and any may decrypt."""

    all: Sequence[AesGcm | Plain]

    def encrypt(self, key: str, text: bytes) -> bytes:
        return self.all[0].encrypt(key, text)

    def is_current(self, value: bytes) -> bool:
        return self.all[0].wrote(value)

    def decrypt(self, key: str, value: bytes) -> bytes:
        for provider in self.all:
            if provider.wrote(value):
                try:
                    return provider.decrypt(key, value)
                except (InvalidTag, ValueError):
                    continue  # another key may have the same name
        if not value.startswith(ENCRYPTED):
            raise CannotDecryptError(f"{key} is not encrypted, and the configuration does not allow that: add identity")
        name = value[:128].split(b":", 5)[4:5]
        wanted = name[0].decode(errors="replace") if name else "?"
        raise CannotDecryptError(f"{key} is encrypted with the key {wanted!r}, which the configuration does not have")


def aes_gcm(name: str, key: bytes) -> AesGcm:
    """`key` has 16, 24 or 32 bytes."""
    return AesGcm(b"%baesgcm:v1:%b:" % (ENCRYPTED, name.encode()), AESGCM(key))
