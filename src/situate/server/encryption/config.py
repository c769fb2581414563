"""Reads an EncryptionConfiguration, as kube-apiserver's --encryption-provider-config has it.

Beside `secret`, a key may have `secretFile`, the path of a file, or `secretCommand`, a command that prints it. Both are
extensions of ours. All three give 16, 24 or 32 bytes in base64.
"""

from __future__ import annotations

import base64
import binascii
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct

from situate.server.encryption.providers import AesGcm, Plain, Providers, aes_gcm
from situate.server.identity.secret_files import IdentityError, read_private
from situate.server.registry.keys import prefix_of
from situate.server.resources import RESOURCES
from situate.wire.errors import InputError

API_VERSION: Final = "apiserver.config.k8s.io/v1"
KIND: Final = "EncryptionConfiguration"
KEY_BYTES: Final = (16, 24, 32)
COMMAND_S: Final = 10.0
"""How long a command may take to print a key."""
NOT_HERE: Final = ("secretbox", "aescbc", "kms")


class _Key(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    secret: str = ""
    secretFile: str = ""  # noqa: N815 - the name in the file
    secretCommand: list[str] = []  # noqa: N815


class _Keys(Struct, frozen=True, forbid_unknown_fields=True):
    keys: list[_Key]


class _Resources(Struct, frozen=True, forbid_unknown_fields=True):
    resources: list[str]
    providers: list[dict[str, Any]]


class _Configuration(Struct, frozen=True, forbid_unknown_fields=True):
    apiVersion: str  # noqa: N815
    kind: str
    resources: list[_Resources]


def read_encryption(path: Path) -> dict[str, Providers]:
    """The providers by the prefix of their resource's keys. InputError, in one line, for a file that cannot be used."""
    try:
        text = read_private(path)
        found = msgspec.convert(yaml.safe_load(text), _Configuration)
    except IdentityError as error:
        raise InputError(str(error)) from None
    except yaml.YAMLError as error:  # its text has the line, in which there may be a key
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise InputError(f"{path} is not an {KIND}: it is not YAML{where}") from None
    except msgspec.ValidationError as error:
        raise InputError(f"{path} is not an {KIND}: {error}") from None
    if (found.apiVersion, found.kind) != (API_VERSION, KIND):
        raise InputError(f"{path} is not an {KIND} of {API_VERSION}")
    prefixes = {_name(one.plural, one.group): prefix_of(one) for one in RESOURCES if one.stored}
    made: dict[str, Providers] = {}
    for entry in found.resources:
        providers = Providers([provider for each in entry.providers for provider in _provider(path, each)])
        if not providers.all:
            raise InputError(f"{path}: {', '.join(entry.resources)} has no providers")
        for name in entry.resources:
            if name not in prefixes:
                raise InputError(f"{path}: there is no resource {name!r} to encrypt; wildcards are not supported")
            made.setdefault(prefixes[name], providers)  # the first one counts, as in Kubernetes
    return made


def _name(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _provider(path: Path, entry: Mapping[str, Any]) -> list[AesGcm | Plain]:
    if set(entry) == {"identity"}:
        return [Plain()]
    if set(entry) == {"aesgcm"}:
        try:
            keys = msgspec.convert(entry["aesgcm"], _Keys).keys
        except msgspec.ValidationError as error:
            raise InputError(f"{path}: aesgcm: {error}") from None
        return [aes_gcm(key.name, _secret(path, key)) for key in keys]
    name = ", ".join(sorted(entry))
    reason = "is not supported" if name in NOT_HERE else "is not a provider"
    raise InputError(f"{path}: {name} {reason}; use aesgcm or identity")


def _secret(path: Path, key: _Key) -> bytes:
    where = f"{path}: the key {key.name!r}"
    if not key.name or ":" in key.name:
        raise InputError(f"{where} needs a name without a colon")
    if sum(map(bool, (key.secret, key.secretFile, key.secretCommand))) != 1:
        raise InputError(f"{where} needs one of secret, secretFile and secretCommand")
    text = key.secret or (_from_file(path, key.secretFile) if key.secretFile else _from_command(where, key))
    try:
        secret = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise InputError(f"{where} is not base64") from None
    if len(secret) not in KEY_BYTES:
        raise InputError(f"{where} has {len(secret)} bytes; it needs 16, 24 or 32")
    return secret


def _from_file(path: Path, name: str) -> str:
    try:
        return read_private(path.parent / name)
    except IdentityError as error:
        raise InputError(str(error)) from None


def _from_command(where: str, key: _Key) -> str:
    try:
        done = subprocess.run(
            key.secretCommand, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{where}: its command did not end within {COMMAND_S:.0f} s") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{where}: its command cannot be run: {error}") from None
    if done.returncode:
        raise InputError(f"{where}: its command failed with exit code {done.returncode}")
    return done.stdout
